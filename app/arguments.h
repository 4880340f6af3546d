#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The program's own command line. What is wrong with it is base::Error with status usage.
#include <optional>
#include <string>
#include <vector>

#include "app/plan.h"

namespace cachewire::app {

// cachewire [EAL options] -- --config FILE [options]
struct RunArguments {
    std::vector<std::string> eal;  // before "--", untouched
    std::string config;
    unsigned stats_period_s = 0;  // 0: no table
    std::optional<unsigned> duration_s;
    std::optional<unsigned> idle_s;
    bool interactive = false;
};

// cachewire check FILE [--json]
struct CheckArguments {
    std::string file;
    bool json = false;
};

// cachewire import FORMAT FILE...
struct ImportArguments {
    std::string format;
    std::vector<std::string> files;
};

// What main() does: exactly one member is set.
struct Arguments {
    std::optional<RunArguments> run;
    std::optional<CheckArguments> check;
    std::optional<ImportArguments> import_files;
    std::optional<PlanArguments> plan;
    std::optional<std::string> print;  // --help, --version: to stdout, exit 0
};

Arguments parse_arguments(const std::vector<std::string>& arguments);  // without the program's name

std::string usage_text();

}  // namespace cachewire::app
