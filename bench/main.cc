// SPDX-License-Identifier: BSD-3-Clause
// cachewire-bench CLAIM: runs one claim, or all, and prints the tables. EAL is started here: with 2 MB pages where the
// machine has some free, without otherwise, and the table says which.
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <rte_eal.h>
#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "base/json.h"
#include "claims.h"

namespace cachewire::bench {

void print_table(const std::string& title, const std::vector<Result>& results) {
    fmt::print("\n{}\n{:<24} {:>8} {:>14} {:>8} {:>7} {:>12}\n", title, "variant", "Mpps", "cycles/packet", "spread",
               "ratio", "difference");
    for (const auto& r : results)
        fmt::print("{:<24} {:>8.2f} {:>14.1f} {:>8.1f} {:>7.3f} {:>12.1f}\n", r.name, r.mpps, r.cycles_per_packet,
                   r.spread, r.ratio, r.difference);
}

namespace {

bool free_huge_pages() {
    std::ifstream file("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    unsigned long pages = 0;
    return (file >> pages) && pages >= 512;
}

void start_eal(bool huge) {
    std::vector<std::string> arguments = {
        "cachewire-bench", "-l",          "0",  "--no-pci", "--no-telemetry", "--file-prefix",
        "cachewire-bench", "--log-level", "*:4"};
    if (!huge) arguments.insert(arguments.end(), {"--no-huge", "-m", "1024"});
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    if (rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0) throw std::runtime_error("EAL does not start");
}

nlohmann::ordered_json to_json(const std::string& claim, const std::vector<Result>& results) {
    nlohmann::ordered_json variants = nlohmann::ordered_json::array();
    for (const auto& r : results)
        variants.push_back({{"name", r.name},
                            {"mpps", r.mpps},
                            {"cycles_per_packet", r.cycles_per_packet},
                            {"spread", r.spread},
                            {"ratio", r.ratio}});
    return {{"claim", claim}, {"machine", fmt::format("{} MHz TSC", base::tsc_hz() / 1000000)}, {"variants", variants}};
}

int run(int argc, char** argv) {
    CLI::App app{"Measures what cachewire claims; variants take turns in one process."};
    const std::map<std::string, std::vector<Result> (*)(const Options&)> claims = {
        {"acl", acl}, {"fib", fib}, {"flows", flows}, {"handoff", handoff}, {"memo", memo}, {"session", session}};
    Options options;
    std::string claim, json;
    std::vector<std::string> names = {"all"};
    for (const auto& [name, function] : claims) names.push_back(name);
    app.add_option("CLAIM", claim)->required()->check(CLI::IsMember(names));
    app.add_flag("--quick", options.quick, "at most 60 s a claim");
    app.add_flag("--sweep", options.sweep, "of session: look-ups by prefetch distance and burst size, nothing else");
    app.add_option("--prefixes-v4", options.prefixes_v4, "of fib: a file with a prefix a line");
    app.add_option("--prefixes-v6", options.prefixes_v6, "of fib: the same");
    app.add_option("--json", json, "write the results there");
    app.add_option("--only-slices", options.only_slices, "run N slices of the last variant alone, for callgrind");
    CLI11_PARSE(app, argc, argv);

    const bool huge = free_huge_pages();
    start_eal(huge);
    fmt::print("{} pages, TSC {} MHz\n", huge ? "2 MB" : "4 KB", base::tsc_hz() / 1000000);
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const auto& [name, function] : claims)
        if (claim == "all" || claim == name) all.push_back(to_json(name, function(options)));
    if (!json.empty()) std::ofstream(json) << (all.size() == 1 ? all[0] : all).dump(2) << '\n';
    rte_eal_cleanup();
    return 0;
}

}  // namespace

}  // namespace cachewire::bench

int main(int argc, char** argv) try { return cachewire::bench::run(argc, argv); } catch (const std::exception& error) {
    fmt::print(stderr, "cachewire-bench: {}\n", error.what());
    return 3;
}
