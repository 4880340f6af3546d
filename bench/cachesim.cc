// SPDX-License-Identifier: BSD-3-Clause
#include "cachesim.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <unistd.h>

namespace cachewire::bench {

namespace {

constexpr const char* kEvents[] = {"Ir", "Dr", "Dw", "I1mr", "D1mr", "D1mw", "DLmr", "DLmw"};
using Counts = std::map<std::string, double>;

// "...bench_stage<cachewire::pipeline::stages::Session, ...>..." -> "Session".
std::string stage_of(const std::string& function) {
    const auto begin = function.find("bench_stage<");
    if (begin == std::string::npos) return "";
    auto from = begin + 12;
    const auto end = function.find_first_of(",>", from);
    const auto name = function.rfind("::", end);
    if (name != std::string::npos && name > from) from = name + 2;
    return function.substr(from, end - from);
}

// callgrind's file: under each "fn=" the function's own lines, and after each "calls=" one line with what was called
// cost, so that all of them are the function with its callees.
class Profile {
  public:
    explicit Profile(const std::string& path) {
        std::ifstream file(path);
        std::string line;
        while (std::getline(file, line)) read(line);
    }
    [[nodiscard]] const std::map<std::string, Counts>& stages() const { return stages_; }
    [[nodiscard]] const Counts& all() const { return all_; }
    // In the order of the file's events line.
    [[nodiscard]] bool empty() const { return events_.empty() || all_.empty(); }

  private:
    void read(const std::string& line) {
        if (line.starts_with("events: ")) {
            std::istringstream names(line.substr(8));
            for (std::string name; names >> name;) events_.push_back(name);
        } else if (line.starts_with("fn=")) {
            const std::string stage = stage_of(line);
            current_ = stage.empty() ? nullptr : &stages_[stage];
        } else if (line.starts_with("summary: ") || line.starts_with("totals: ")) {
            all_.clear();
            add(line.substr(line.find(' ') + 1), all_);
        } else if (current_ != nullptr && !line.empty() &&
                   (std::isdigit(line[0]) != 0 || line[0] == '+' || line[0] == '-' || line[0] == '*')) {
            const auto space = line.find(' ');
            if (space != std::string::npos) add(line.substr(space + 1), *current_);
        }
    }
    void add(const std::string& numbers, Counts& to) const {
        std::istringstream in(numbers);
        double value = 0;
        for (std::size_t i = 0; i < events_.size() && in >> value; ++i) to[events_[i]] += value;
    }

    std::vector<std::string> events_;
    std::map<std::string, Counts> stages_;
    Counts all_;
    Counts* current_ = nullptr;
};

StageCost cost_of(const std::string& stage, Counts counts, double packets) {
    for (const char* event : kEvents) counts[event] /= packets;
    return {stage,
            counts["Ir"],
            counts["Dr"] + counts["Dw"],
            counts["D1mr"] + counts["D1mw"],
            counts["DLmr"] + counts["DLmw"],
            counts["I1mr"]};
}

void subtract(StageCost& from, const StageCost& part) {
    from.instructions -= part.instructions;
    from.references -= part.references;
    from.l1_misses -= part.l1_misses;
    from.ll_misses -= part.ll_misses;
    from.l1i_misses -= part.l1i_misses;
}

std::vector<StageCost> costs_of(const Profile& profile, double packets) {
    static constexpr const char* kOrder[] = {"Rx",      "Parse", "Session", "Acl", "Route",
                                             "Install", "Qos",   "Count",   "Tx",  "Flush"};
    const StageCost all = cost_of("all", profile.all(), packets);
    StageCost rest = all;
    rest.stage = "rest";
    std::vector<StageCost> costs;
    for (const char* name : kOrder) {
        const auto found = profile.stages().find(name);
        if (found == profile.stages().end()) continue;
        costs.push_back(cost_of(name, found->second, packets));
        subtract(rest, costs.back());
    }
    costs.push_back(rest);
    costs.push_back(all);
    return costs;
}

}  // namespace

std::vector<StageCost> simulate(const std::string& claim, const std::string& variant, unsigned slices,
                                unsigned packets) {
    const auto base = std::filesystem::temp_directory_path() / fmt::format("cachewire-bench-{:08}", getpid());
    const std::string out = base.string() + ".callgrind", log = base.string() + ".log";
    // Where the stack begins, and so which lines of L1 it shares with what, depends on the length of the environment
    // and of the program's path: up to 0.8 lines a packet. So both have one length everywhere.
    const std::string self = base.string();
    std::error_code ignored;
    std::filesystem::remove(self, ignored);
    std::filesystem::create_symlink(std::filesystem::read_symlink("/proc/self/exe"), self);
    // Without address randomisation: DPDK wants its memory where valgrind would not put it.
    const std::string command = fmt::format(
        "env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin setarch -R valgrind --tool=callgrind --callgrind-out-file={} "
        "--compress-strings=no --compress-pos=no "
        "--cache-sim=yes --I1=32768,8,64 --D1=32768,8,64 --LL=2097152,16,64 --collect-atstart=no "
        "'--toggle-collect=*measured_by_stage*' {} {} --only-variant '{}' --only-slices {} > {} 2>&1",
        out, self, claim, variant, slices, log);
    const int status = std::system(command.c_str());
    const Profile profile(out);
    std::filesystem::remove(out, ignored);
    std::filesystem::remove(self, ignored);
    if (status != 0 || profile.empty()) {
        fmt::print("\n{}, {}: no simulated misses; is valgrind installed? {} has what it said\n", claim, variant, log);
        return {};
    }
    std::filesystem::remove(log, ignored);
    return costs_of(profile, static_cast<double>(slices) * packets);
}

void print_costs(const std::string& title, const std::vector<StageCost>& costs) {
    if (costs.empty()) return;
    fmt::print("\n{}: simulated, a packet\n{:<10} {:>12} {:>10} {:>10} {:>8} {:>10} {:>11}\n", title, "stage",
               "instructions", "data refs", "L1 misses", "of refs", "LL misses", "L1i misses");
    for (const auto& c : costs)
        fmt::print("{:<10} {:>12.1f} {:>10.1f} {:>10.2f} {:>7.1f}% {:>10.2f} {:>11.3f}\n", c.stage, c.instructions,
                   c.references, c.l1_misses, c.references == 0 ? 0 : 100 * c.l1_misses / c.references, c.ll_misses,
                   c.l1i_misses);
}

}  // namespace cachewire::bench
