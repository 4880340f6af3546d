// SPDX-License-Identifier: BSD-3-Clause
#include "app/check.h"

#include <cstdio>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "app/eal_check.h"
#include "base/error.h"
#include "config/json.h"
#include "config/load.h"

namespace cachewire::app {
namespace {

std::string counted(std::size_t n, std::string_view one, std::string_view many) {
    return fmt::format("{} {}", n, n == 1 ? one : many);
}

config::LoadResult load_and_judge(const std::string& file) {
    config::LoadResult result = config::load_file(file);
    if (!result.config) return result;
    const auto problems = check_eal(*result.config);
    result.diagnostics.insert(result.diagnostics.end(), problems.begin(), problems.end());
    if (!problems.empty()) result.config.reset();
    return result;
}

void print_summary(const config::Config& config) {
    std::size_t rules = 0;
    for (const config::Acl& acl : config.acls) rules += acl.rules.size();
    fmt::print("{}: right: {}, {}, {}, {}, {}, {} with {}, {}\n", config.path,
               counted(config.ports.size(), "port", "ports"), counted(config.tenants.size(), "tenant", "tenants"),
               counted(config.interfaces.size(), "interface", "interfaces"),
               counted(config.neighbors.size(), "neighbor", "neighbors"),
               counted(config.routes.size(), "route", "routes"), counted(config.acls.size(), "list", "lists"),
               counted(rules, "rule", "rules"), counted(config.policers.size(), "policer", "policers"));
}

void print_json(const std::string& file, const config::LoadResult& result) {
    const nlohmann::ordered_json answer{
        {"ok", result.config.has_value()}, {"file", file}, {"diagnostics", config::to_json(result.diagnostics)}};
    // A file's name may be any bytes; what is no UTF-8 in it is replaced.
    fmt::print("{}\n", answer.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace

int run_check(const std::string& file, bool json) {
    const config::LoadResult result = load_and_judge(file);
    if (json) {
        print_json(file, result);
    } else {
        for (const config::Diagnostic& diagnostic : result.diagnostics) {
            fmt::print(stderr, "{}\n", config::to_string(diagnostic));
        }
        if (result.config) print_summary(*result.config);
    }
    return static_cast<int>(result.config ? base::ExitStatus::ok : base::ExitStatus::configuration);
}

}  // namespace cachewire::app
