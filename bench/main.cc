// SPDX-License-Identifier: BSD-3-Clause
// cachewire-bench CLAIM: runs one claim, or all, and prints the tables. EAL is started here: with 2 MB pages where the
// machine has some free, without otherwise, and the table says which.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <rte_eal.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "base/json.h"
#include "claims.h"
#include "report.h"

namespace cachewire::bench {

void print_table(const std::string& title, const std::vector<Result>& results) {
    std::size_t width = 24;
    for (const auto& r : results) width = std::max(width, r.name.size());
    fmt::print("\n{}\n{:<{}} {:>8} {:>14} {:>8} {:>7} {:>12}\n", title, "variant", width, "Mpps", "cycles/packet",
               "spread", "ratio", "difference");
    for (const auto& r : results)
        fmt::print("{:<{}} {:>8.2f} {:>14.1f} {:>8.1f} {:>7.3f} {:>12.1f}\n", r.name, width, r.mpps,
                   r.cycles_per_packet, r.spread, r.ratio, r.difference);
}

namespace {

bool free_huge_pages() {
    std::ifstream file("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    unsigned long pages = 0;
    return (file >> pages) && pages >= 512;
}

// `simulated`: under valgrind, with the same code on every machine.
// `shared`: another process maps its memory.
void start_eal(bool huge, bool simulated, bool shared) {
    std::vector<std::string> arguments = {"cachewire-bench", "-l",          "0",  "--no-pci",
                                          "--no-telemetry",  "--log-level", "*:4"};
    // Nothing that a second one beside this one would find or that stays when it has ended.
    if (huge) {
        arguments.push_back("--in-memory");
        // All at once: memif's zero-copy takes it for one piece without gaps.
        if (shared) arguments.insert(arguments.end(), {"--single-file-segments", "-m", "512"});
    } else {
        arguments.insert(arguments.end(), {"--no-huge", "-m", "1024", "--no-shconf", "--file-prefix",
                                           fmt::format("cachewire-bench-{}", getpid())});
    }
    if (simulated) arguments.push_back("--force-max-simd-bitwidth=64");
    std::vector<char*> argv;
    argv.reserve(arguments.size());
    for (auto& argument : arguments) argv.push_back(argument.data());
    if (rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0) throw std::runtime_error("EAL does not start");
}

using Claims = std::map<std::string, std::vector<Result> (*)(const Options&)>;

// Each claim in a process of its own: devices of rings live as long as a process, and DPDK has room for 32.
nlohmann::ordered_json run_all(const Claims& claims, const Options& options) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    const std::string file =
        (std::filesystem::temp_directory_path() / fmt::format("cachewire-bench-{}.json", getpid())).string();
    std::string flags = options.quick ? " --quick" : "";
    if (options.cachesim) flags += options.cachesim_only ? " --cachesim-only" : " --cachesim";
    if (!options.prefixes_v4.empty()) flags += fmt::format(" --prefixes-v4 '{}'", options.prefixes_v4);
    if (!options.prefixes_v6.empty()) flags += fmt::format(" --prefixes-v6 '{}'", options.prefixes_v6);
    auto all = nlohmann::ordered_json::array();
    for (const auto& [name, function] : claims) {
        const std::string command = fmt::format("{} {} --json {}{}", self, name, file, flags);
        std::fflush(stdout);
        if (std::system(command.c_str()) != 0) throw std::runtime_error("claim " + name + " failed");
        all.push_back(nlohmann::ordered_json::parse(std::ifstream(file)));
    }
    std::filesystem::remove(file);
    return all;
}

nlohmann::ordered_json run_one(const std::string& claim, std::vector<Result> (*function)(const Options&),
                               const Options& options) {
    const bool simulated = options.only_slices != 0;
    const bool huge = !simulated && free_huge_pages();
    start_eal(huge, simulated, claim == "peer");
    fmt::print("{} pages, TSC {} MHz\n", huge ? "2 MB" : "4 KB", base::tsc_hz() / 1000000);
    if (options.quick) limit_time(45);
    auto document = to_json(claim, function(options));
    rte_eal_cleanup();
    return document;
}

int run(int argc, char** argv) {
    CLI::App app{"Measures what cachewire claims; variants take turns in one process."};
    const Claims claims = {
        {"acl", acl},        {"fib", fib},     {"flows", flows}, {"handoff", handoff}, {"layout", layout},
        {"memo", memo},      {"noisy", noisy}, {"qos", qos},     {"reload", reload},   {"scenarios", scenarios},
        {"session", session}};
    Options options;
    std::string claim, json, png;
    std::vector<std::string> names = {"all", "peer"};
    for (const auto& [name, function] : claims) names.push_back(name);
    app.add_option("CLAIM", claim)->required()->check(CLI::IsMember(names));
    app.add_flag("--quick", options.quick, "at most 60 s a claim");
    app.add_flag("--sweep", options.sweep,
                 "of session: look-ups by prefetch distance and burst size, of flows: the whole path by distances; "
                 "nothing else");
    app.add_flag("--cachesim", options.cachesim,
                 "of flows, layout, scenarios: also instructions and simulated misses by stage (valgrind)");
    app.add_flag("--cachesim-only", options.cachesim_only, "the same and no cycles");
    app.add_option("--prefixes-v4", options.prefixes_v4, "of fib: a file with a prefix a line");
    app.add_option("--prefixes-v6", options.prefixes_v6, "of fib: the same");
    app.add_option("--peer", options.peers,
                   "of peer: another forwarder, as NAME=COMMAND, several times; {west} and {east} become its memif "
                   "devices, {prefix} a file prefix, {memory} --in-memory, or --no-huge where there are no 2 MB pages")
        ->take_all()
        ->allow_extra_args(false);
    app.add_option("--starts", options.starts, "of peer: starts of each program, 5 if not given")
        ->check(CLI::Range(1, 1000));
    app.add_option("--cachewire", options.cachewire, "of peer: our program, if not the one of this build");
    app.add_option("--json", json, "write the results there");
    app.add_option("--plot", png, "draw the results there, a PNG (gnuplot)");
    app.add_option("--only-slices", options.only_slices, "run N slices of one variant alone, for callgrind");
    app.add_option("--only-variant", options.only_variant, "which one");
    CLI11_PARSE(app, argc, argv);
    options.cachesim |= options.cachesim_only;

    if ((claim == "peer") == options.peers.empty())
        throw std::runtime_error("peer needs --peer, and nothing else has it");

    const auto document = claim == "all"    ? run_all(claims, options)
                          : claim == "peer" ? run_one(claim, peer, options)
                                            : run_one(claim, claims.at(claim), options);
    if (!json.empty()) write_json(json, document);
    if (!png.empty()) plot(png, document);
    const auto& variants = claim == "all" ? nlohmann::ordered_json::array() : document.at("variants");
    return std::any_of(variants.begin(), variants.end(), [](const auto& v) { return v.contains("failure"); }) ? 3 : 0;
}

}  // namespace

}  // namespace cachewire::bench

int main(int argc, char** argv) try { return cachewire::bench::run(argc, argv); } catch (const std::exception& error) {
    fmt::print(stderr, "cachewire-bench: {}\n", error.what());
    return 3;
}
