// SPDX-License-Identifier: BSD-3-Clause
#include "app/eal_arguments.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "app/eal_options.h"
#include "base/error.h"

namespace cachewire::app {

namespace {

bool is_allow(const Option& option) { return option.name == "a" || option.name == "allow"; }

// The device that -a or --vdev names, as ports name theirs; nullopt for other options.
std::optional<std::string> device_of(const Option& option) {
    if (option.group != "vdev" && !is_allow(option)) return std::nullopt;
    std::string why;
    const auto device = port::parse_device(option.value, why);
    return device ? device->name : option.value.substr(0, option.value.find(','));
}

// A new set of lcores makes the file's choice of the main one meaningless.
bool replaces(const Option& given, const Option& in_file) {
    return given.group == in_file.group || (given.group == "lcores" && in_file.group == "main-lcore");
}

std::vector<Option> without_replaced(std::vector<Option> file, const std::vector<Option>& command_line) {
    std::erase_if(file, [&](const Option& in_file) {
        return std::any_of(command_line.begin(), command_line.end(),
                           [&](const Option& given) { return replaces(given, in_file); });
    });
    return file;
}

// The ports' devices that no explicit option names already: those carry the arguments that somebody chose.
std::vector<std::string> port_arguments(const std::vector<port::Device>& devices, const std::vector<Option>& given) {
    std::set<std::string> named;
    bool devices_given = false;
    for (const Option& option : given) {
        if (auto name = device_of(option)) named.insert(*name);
        devices_given |= option.group == "devices";
    }
    std::vector<port::Device> rest;
    std::copy_if(devices.begin(), devices.end(), std::back_inserter(rest),
                 [&](const port::Device& d) { return !named.contains(d.name); });
    std::vector<std::string> arguments = port::eal_arguments(rest);
    if (devices_given) std::erase(arguments, "--no-pci");
    return arguments;
}

std::optional<OptionProblem> find_contradiction(const std::vector<port::Device>& devices,
                                                const std::vector<Option>& options) {
    const auto pci = std::find_if(devices.begin(), devices.end(),
                                  [](const port::Device& d) { return d.kind == port::DeviceKind::pci; });
    if (pci == devices.end()) return std::nullopt;
    for (const Option& option : options)
        if (option.group == "devices" && !is_allow(option))
            return OptionProblem{option.at,
                                 fmt::format("{} can't go with the port on the PCI device {}: cachewire allows "
                                             "its ports' devices with -a and no others",
                                             option.tokens.front(), pci->name)};
    return std::nullopt;
}

void refuse_contradictions(const std::vector<port::Device>& devices, const std::vector<Option>& options,
                           base::ExitStatus status) {
    if (const auto problem = find_contradiction(devices, options)) throw base::Error(status, problem->text);
}

void append(std::vector<std::string>& to, const std::vector<Option>& options) {
    for (const Option& option : options) to.insert(to.end(), option.tokens.begin(), option.tokens.end());
}

}  // namespace

std::vector<std::string> merge_eal_arguments(const EalSources& sources) {
    const auto command_line = read_options(sources.command_line, base::ExitStatus::usage, "command line");
    const auto file =
        without_replaced(read_options(sources.file, base::ExitStatus::configuration, "`eal:`"), command_line);
    refuse_contradictions(sources.devices, file, base::ExitStatus::configuration);
    refuse_contradictions(sources.devices, command_line, base::ExitStatus::usage);

    std::vector<Option> given = file;
    given.insert(given.end(), command_line.begin(), command_line.end());
    std::vector<std::string> merged;
    append(merged, file);
    const auto of_ports = port_arguments(sources.devices, given);
    merged.insert(merged.end(), of_ports.begin(), of_ports.end());
    append(merged, command_line);
    return merged;
}

std::vector<OptionProblem> judge_file(const std::vector<std::string>& file, const std::vector<port::Device>& devices) {
    std::vector<OptionProblem> problems = find_problems(file);
    if (!problems.empty()) return problems;
    if (auto problem = find_contradiction(devices, read_options(file, base::ExitStatus::configuration, "")))
        problems.push_back(std::move(*problem));
    return problems;
}

base::ExitStatus who_is_wrong(const EalSources& sources, std::string_view log) {
    const auto command_line = read_options(sources.command_line, base::ExitStatus::usage, "command line");
    const auto file =
        without_replaced(read_options(sources.file, base::ExitStatus::configuration, "`eal:`"), command_line);
    if (command_line.empty()) return base::ExitStatus::configuration;
    const auto is_named = [log](const Option& option) {
        const std::string name = (option.name.size() > 1 ? "--" : "-") + option.name;
        for (auto at = log.find(name); at != std::string_view::npos; at = log.find(name, at + 1)) {
            const std::string_view rest = log.substr(at + name.size());
            if (rest.empty() || std::string_view(" \n,:;='\"").find(rest.front()) != std::string_view::npos)
                return true;
        }
        return false;
    };
    const bool file_is_named = std::any_of(file.begin(), file.end(), is_named);
    const bool line_is_named = std::any_of(command_line.begin(), command_line.end(), is_named);
    return file_is_named && !line_is_named ? base::ExitStatus::configuration : base::ExitStatus::usage;
}

bool asks_for_help(const std::vector<std::string>& arguments) {
    const auto options = read_options(arguments, base::ExitStatus::usage, "EAL");
    return std::any_of(options.begin(), options.end(),
                       [](const Option& option) { return option.group == "help" || option.group == "version"; });
}

std::string to_shell(const std::vector<std::string>& arguments) {
    constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=,.:/@%+";
    std::string line;
    for (const std::string& argument : arguments) {
        if (!line.empty()) line += ' ';
        if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) {
            line += argument;
            continue;
        }
        line += '\'';
        for (const char c : argument) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
        line += '\'';
    }
    return line;
}

std::string unshared_by(const std::vector<std::string>& arguments) {
    for (const Option& option : read_options(arguments, base::ExitStatus::usage, "EAL"))
        for (const char* name : {"no-huge", "in-memory", "no-shconf"})
            if (option.name == name) return std::string("--") + name;
    return "";
}

}  // namespace cachewire::app
