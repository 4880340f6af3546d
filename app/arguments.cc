// SPDX-License-Identifier: BSD-3-Clause
#include "app/arguments.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string_view>

#include <fmt/format.h>
#include <rte_version.h>
#include <CLI/CLI.hpp>

#include "base/error.h"

namespace cachewire::app {

namespace {

constexpr std::array<std::string_view, 2> kNotYet = {"doctor", "explain"};

constexpr const char* kUsage =
    "Usage: cachewire [EAL options] -- --config FILE [options]     forward packets\n"
    "       cachewire check FILE [--json]                          say what is wrong with a configuration\n"
    "       cachewire import {l3fwd|l3fwd-acl} FILE...             another forwarder's files as YAML on stdout\n"
    "       cachewire plan FILE [--topology X.xml] [--json]        which CPUs the lcores should run on,\n"
    "                           [--rate R --packet N]              how many, and how much memory\n"
    "\n"
    "EAL options are DPDK's (-l, -a, --vdev, --no-huge, ...); the file's `eal:` gives defaults for them.\n"
    "Try: cachewire -- --config conf/demo.yaml --stats-period 1\n\n";

struct Formatter : CLI::Formatter {
    std::string make_usage(const CLI::App*, std::string) const override { return kUsage; }
    std::string make_description(const CLI::App*) const override { return ""; }
};

[[noreturn]] void usage_error(const std::string& text) { throw base::Error(base::ExitStatus::usage, text); }

std::string version_text() { return fmt::format("cachewire {} ({})", CACHEWIRE_VERSION, rte_version()); }

bool is_one_of(const std::string& text, std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), text) != words.end();
}

// CLI11 would read 010 as octal and 0x10 as 16.
std::string why_not_decimal(const std::string& text) {
    const bool decimal = text.find_first_not_of("0123456789") == std::string::npos && (text == "0" || text[0] != '0');
    return decimal ? "" : fmt::format("\"{}\" is no whole number of seconds", text);
}

struct RunParser {
    RunArguments arguments;
    CLI::App app;

    RunParser() {
        const auto seconds = CLI::Range(1u, std::numeric_limits<unsigned>::max() / 1000);
        app.formatter(std::make_shared<Formatter>());
        app.set_help_flag("-h,--help", "print this and exit");
        app.set_version_flag("--version", version_text(), "print cachewire's and DPDK's version and exit");
        app.add_option("--config", arguments.config, "configuration file")->type_name("FILE")->required();
        app.add_option("--stats-period", arguments.stats_period_s, "print a table that often")
            ->type_name("SECONDS")
            ->check(why_not_decimal)
            ->check(seconds);
        app.add_option("--duration", arguments.duration_s, "stop after that long")
            ->type_name("SECONDS")
            ->check(why_not_decimal)
            ->check(seconds);
        app.add_option("--exit-on-idle", arguments.idle_s, "stop when no port has received for that long")
            ->type_name("SECONDS")
            ->check(why_not_decimal)
            ->check(seconds);
        app.add_flag("-i,--interactive", arguments.interactive, "prompt for the commands of cwctl");
    }
    RunParser(const RunParser&) = delete;
    RunParser& operator=(const RunParser&) = delete;
};

Arguments parse_with(CLI::App& app, std::vector<std::string> tokens) {
    Arguments result;
    std::reverse(tokens.begin(), tokens.end());  // as CLI11 takes a vector
    try {
        app.parse(tokens);
    } catch (const CLI::CallForHelp&) {
        result.print = app.help();
    } catch (const CLI::CallForVersion& version) {
        result.print = std::string(version.what()) + "\n";
    } catch (const CLI::ParseError& error) {
        usage_error(error.what());
    }
    return result;
}

Arguments parse_run(const std::vector<std::string>& eal, const std::vector<std::string>& own) {
    RunParser parser;
    Arguments result = parse_with(parser.app, own);
    if (result.print) return result;
    parser.arguments.eal = eal;
    result.run = parser.arguments;
    return result;
}

Arguments parse_check(const std::vector<std::string>& tokens) {
    CheckArguments check;
    CLI::App app{
        "Reads a configuration as a start would, without EAL: every error on a line, exit status 1 if there is any.",
        "cachewire check"};
    app.add_option("FILE", check.file, "configuration file")->required();
    app.add_flag("--json", check.json, "diagnostics as JSON on stdout");
    Arguments result = parse_with(app, tokens);
    if (!result.print) result.check = check;
    return result;
}

Arguments parse_import(const std::vector<std::string>& tokens) {
    ImportArguments wanted;
    CLI::App app{"Other forwarders' files as YAML on stdout; what can't be translated is listed on stderr.",
                 "cachewire import"};
    app.add_option("FORMAT", wanted.format,
                   "l3fwd: route files of its LPM and FIB modes; l3fwd-acl: rule files of dpdk-l3fwd's ACL mode")
        ->required();
    app.add_option("FILE", wanted.files, "one or more")->required();
    Arguments result = parse_with(app, tokens);
    if (!result.print) result.import_files = wanted;
    return result;
}

Arguments parse_plan(const std::vector<std::string>& tokens) {
    PlanArguments wanted;
    CLI::App app{
        "Which CPUs the lcores should run on, as a picture and as EAL's arguments; exit status 1 if the file says "
        "strict and it can't be had.",
        "cachewire plan"};
    app.add_option("FILE", wanted.file, "configuration file")->required();
    app.add_option("--topology", wanted.topology, "another machine, as lstopo writes it")->type_name("X.xml");
    auto* rate = app.add_option("--rate", wanted.rate, "also what this rate needs: 100Gbit on the wire, 20Mpps");
    app.add_option("--packet", wanted.packet_bytes, "mean frame length in bytes, without FCS")
        ->check(CLI::Range(60, 65535))
        ->needs(rate);
    app.add_option("--cycles", wanted.cycles, "a packet, as cachewire-bench flows has measured on that machine")
        ->check(CLI::Range(1, 1000000))
        ->needs(rate);
    app.add_option("--clock", wanted.clock_ghz, "GHz of that machine's TSC")->check(CLI::Range(0.1, 10.0))->needs(rate);
    app.add_flag("--json", wanted.json, "as JSON on stdout");
    Arguments result = parse_with(app, tokens);
    if (!result.print) result.plan = wanted;
    return result;
}

}  // namespace

std::string usage_text() { return RunParser().app.help(); }

Arguments parse_arguments(const std::vector<std::string>& arguments) {
    if (arguments.empty()) usage_error("no configuration: cachewire [EAL options] -- --config FILE, or --help");
    const std::string& first = arguments.front();
    const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
    if (first == "check") return parse_check(rest);
    if (first == "import") return parse_import(rest);
    if (first == "plan") return parse_plan(rest);
    if (std::find(kNotYet.begin(), kNotYet.end(), first) != kNotYet.end())
        usage_error(fmt::format("`{}` is not supported yet", first));
    if (first[0] != '-')
        usage_error(fmt::format("\"{}\" is no command; now there are `check`, `import` and `plan`", first));

    const auto separator = std::find(arguments.begin(), arguments.end(), "--");
    if (separator == arguments.end()) {
        if (is_one_of(first, {"-h", "--help", "--version"})) return parse_run({}, {first});
        usage_error("cachewire's own options stand after \"--\": cachewire [EAL options] -- --config FILE, or --help");
    }
    return parse_run({arguments.begin(), separator}, {separator + 1, arguments.end()});
}

}  // namespace cachewire::app
