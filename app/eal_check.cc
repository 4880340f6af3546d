// SPDX-License-Identifier: BSD-3-Clause
#include "app/eal_check.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "app/eal_arguments.h"
#include "app/lcores.h"
#include "base/error.h"
#include "port/port.h"

namespace cachewire::app {

namespace {

struct NamedLcores {
    Lcores lcores;
    std::size_t at;  // the argument that names them
};

// nullopt: the file leaves them to the machine, to the command line, or to what only EAL can read.
std::optional<NamedLcores> lcores_of(const std::vector<std::string>& eal) {
    std::optional<NamedLcores> named;
    std::optional<unsigned> main;
    for (const Option& option : read_options(eal, base::ExitStatus::configuration, "")) {
        if (option.name == "main-lcore")
            if (const auto lcores = lcores_in_list(option.value)) main = lcores->front();
        if (option.group != "lcores") continue;
        const bool list = option.name == "l" || option.name == "lcores";
        if (!list && option.name != "c" && option.name != "coremask") return std::nullopt;
        auto lcores = list ? lcores_in_list(option.value) : lcores_in_mask(option.value);
        if (!lcores) return std::nullopt;
        named = NamedLcores{{lcores->front(), std::move(*lcores)}, option.at};
    }
    if (!named) return std::nullopt;
    named->lcores.main = main.value_or(named->lcores.main);
    std::erase(named->lcores.others, named->lcores.main);
    return named;
}

std::optional<config::Diagnostic> check_lcores(const config::Config& config) {
    const auto named = lcores_of(config.eal);
    if (!named) return std::nullopt;
    try {
        share_out(named->lcores, config.workers.lcores, !config.schedulers.empty());
        return std::nullopt;
    } catch (const base::Error& error) {
        std::string text = error.what();
        constexpr std::string_view kKey = "workers.lcores";
        if (text.starts_with(kKey)) text.erase(0, kKey.size() + 2);
        const bool of_eal = named->lcores.others.empty() || config.workers.lcores.empty();
        const config::FilePlace at = of_eal ? config.eal_at[named->at] : config.workers.lcores_at;
        return config::Diagnostic{config::Diagnostic::Severity::error,
                                  config.sources[at.file].path,
                                  at.line,
                                  at.column,
                                  of_eal ? fmt::format("eal[{}]", named->at) : std::string(kKey),
                                  std::move(text)};
    }
}

}  // namespace

std::vector<config::Diagnostic> check_eal(const config::Config& config) {
    std::vector<port::Device> devices;
    for (const config::Port& port : config.ports) {
        std::string why;
        if (auto device = port::parse_device(port.device, why)) devices.push_back(std::move(*device));
    }
    std::vector<config::Diagnostic> diagnostics;
    for (const OptionProblem& problem : judge_file(config.eal, devices)) {
        const config::FilePlace at = config.eal_at[problem.at];
        diagnostics.push_back({config::Diagnostic::Severity::error, config.sources[at.file].path, at.line, at.column,
                               fmt::format("eal[{}]", problem.at), problem.text});
    }
    if (!diagnostics.empty()) return diagnostics;
    if (auto problem = check_lcores(config)) diagnostics.push_back(std::move(*problem));
    return diagnostics;
}

}  // namespace cachewire::app
