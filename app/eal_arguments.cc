// SPDX-License-Identifier: BSD-3-Clause
#include "app/eal_arguments.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "base/nearest.h"

namespace cachewire::app {

namespace {

enum class Takes { nothing, value, optional_value };  // an optional value comes with '=' only

// `group`: one name for all spellings of an option and for those that exclude each other.
struct OptionKind {
    std::string_view name;  // without dashes
    Takes takes;
    std::string_view group;
};

// EAL's options, 22.11 to 25.11 (25.11 gave the short ones long names).
constexpr std::array kOptions = {
    OptionKind{"l", Takes::value, "lcores"},
    OptionKind{"c", Takes::value, "lcores"},
    OptionKind{"lcores", Takes::value, "lcores"},
    OptionKind{"coremask", Takes::value, "lcores"},
    OptionKind{"s", Takes::value, "lcores"},
    OptionKind{"S", Takes::value, "lcores"},
    OptionKind{"service-coremask", Takes::value, "lcores"},
    OptionKind{"service-corelist", Takes::value, "lcores"},
    OptionKind{"R", Takes::nothing, "lcores"},
    OptionKind{"remap-lcore-ids", Takes::optional_value, "lcores"},
    OptionKind{"main-lcore", Takes::value, "main-lcore"},
    OptionKind{"a", Takes::value, "devices"},
    OptionKind{"allow", Takes::value, "devices"},
    OptionKind{"b", Takes::value, "devices"},
    OptionKind{"block", Takes::value, "devices"},
    OptionKind{"no-pci", Takes::nothing, "devices"},
    OptionKind{"vdev", Takes::value, "vdev"},
    OptionKind{"m", Takes::value, "memory"},
    OptionKind{"memory-size", Takes::value, "memory"},
    OptionKind{"socket-mem", Takes::value, "memory"},
    OptionKind{"numa-mem", Takes::value, "memory"},
    OptionKind{"socket-limit", Takes::value, "memory-limit"},
    OptionKind{"numa-limit", Takes::value, "memory-limit"},
    OptionKind{"no-huge", Takes::nothing, "huge pages"},
    OptionKind{"huge-dir", Takes::value, "huge pages"},
    OptionKind{"huge-unlink", Takes::optional_value, "huge-unlink"},
    OptionKind{"huge-worker-stack", Takes::optional_value, "huge-worker-stack"},
    OptionKind{"in-memory", Takes::nothing, "in-memory"},
    OptionKind{"legacy-mem", Takes::nothing, "legacy-mem"},
    OptionKind{"single-file-segments", Takes::nothing, "single-file-segments"},
    OptionKind{"match-allocations", Takes::nothing, "match-allocations"},
    OptionKind{"n", Takes::value, "channels"},
    OptionKind{"memory-channels", Takes::value, "channels"},
    OptionKind{"r", Takes::value, "ranks"},
    OptionKind{"memory-ranks", Takes::value, "ranks"},
    OptionKind{"d", Takes::value, "drivers"},
    OptionKind{"driver-path", Takes::value, "drivers"},
    OptionKind{"telemetry", Takes::nothing, "telemetry"},
    OptionKind{"no-telemetry", Takes::nothing, "telemetry"},
    OptionKind{"file-prefix", Takes::value, "file-prefix"},
    OptionKind{"no-shconf", Takes::nothing, "no-shconf"},
    OptionKind{"proc-type", Takes::value, "proc-type"},
    OptionKind{"base-virtaddr", Takes::value, "base-virtaddr"},
    OptionKind{"iova-mode", Takes::value, "iova-mode"},
    OptionKind{"log-level", Takes::value, "log-level"},
    OptionKind{"log-color", Takes::optional_value, "log-color"},
    OptionKind{"log-timestamp", Takes::optional_value, "log-timestamp"},
    OptionKind{"syslog", Takes::value, "syslog"},
    OptionKind{"trace", Takes::value, "trace"},
    OptionKind{"trace-dir", Takes::value, "trace-dir"},
    OptionKind{"trace-bufsz", Takes::value, "trace-bufsz"},
    OptionKind{"trace-mode", Takes::value, "trace-mode"},
    OptionKind{"mbuf-pool-ops-name", Takes::value, "mbuf-pool-ops-name"},
    OptionKind{"force-max-simd-bitwidth", Takes::value, "force-max-simd-bitwidth"},
    OptionKind{"vfio-intr", Takes::value, "vfio-intr"},
    OptionKind{"vfio-vf-token", Takes::value, "vfio-vf-token"},
    OptionKind{"create-uio-dev", Takes::nothing, "create-uio-dev"},
    OptionKind{"vmware-tsc-map", Takes::nothing, "vmware-tsc-map"},
    OptionKind{"no-hpet", Takes::nothing, "no-hpet"},
    OptionKind{"h", Takes::nothing, "help"},
    OptionKind{"help", Takes::nothing, "help"},
    OptionKind{"v", Takes::nothing, "version"},
    OptionKind{"version", Takes::nothing, "version"},
};

struct Option {
    std::string name;   // "l", "no-huge"; abbreviations written out
    std::string group;  // an option that is not in the table is its own group
    std::string value;
    std::vector<std::string> tokens;  // as given
};

// EAL's getopt takes "--no-p" for "--no-pci" as long as only one option begins so.
std::optional<OptionKind> find_option(std::string_view name, bool is_long) {
    std::optional<OptionKind> found;
    for (const OptionKind& kind : kOptions) {
        if ((kind.name.size() > 1) != is_long) continue;
        if (kind.name == name) return kind;
        if (!is_long || !kind.name.starts_with(name)) continue;
        if (found) return std::nullopt;
        found = kind;
    }
    return found;
}

class Parser {
  public:
    Parser(const std::vector<std::string>& tokens, base::ExitStatus status, std::string where)
        : tokens_(tokens), status_(status), where_(std::move(where)) {}

    std::vector<Option> all() {
        std::vector<Option> options;
        while (at_ < tokens_.size()) options.push_back(next());
        return options;
    }

  private:
    [[noreturn]] void fail(const std::string& text) const { throw base::Error(status_, where_ + ": " + text); }

    Option next() {
        const std::string& token = tokens_[at_++];
        if (token == "--") fail("\"--\" is no EAL option; it separates EAL's arguments from cachewire's");
        if (token.size() < 2 || token[0] != '-') fail(fmt::format("\"{}\" is no EAL option", token));
        Option option;
        option.tokens.push_back(token);
        return token[1] == '-' ? read_long(std::move(option)) : read_short(std::move(option));
    }

    static std::string unknown(const std::string& name) {
        std::vector<std::string_view> names;
        for (const OptionKind& kind : kOptions)
            if (kind.name.size() > 1) names.push_back(kind.name);
        const std::string_view near = base::nearest(name, names);
        return fmt::format("\"--{}\" is no EAL option{}", name,
                           near.empty() ? "" : fmt::format("; did you mean \"--{}\"?", near));
    }

    Option read_long(Option option) {
        const std::string& token = option.tokens.front();
        const auto equals = token.find('=');
        option.name = token.substr(2, equals == std::string::npos ? std::string::npos : equals - 2);
        const auto kind = find_option(option.name, true);
        // The table knows every option to 25.11. A later one can still be given on the command line, where EAL judges
        // it.
        if (!kind && status_ == base::ExitStatus::configuration) fail(unknown(option.name));
        if (kind) option.name = kind->name;
        option.group = kind ? std::string(kind->group) : option.name;
        if (equals != std::string::npos)
            option.value = token.substr(equals + 1);
        else if (kind ? kind->takes == Takes::value : next_is_value())
            take_value(option);
        return option;
    }

    Option read_short(Option option) {
        const std::string& token = option.tokens.front();
        option.name = token.substr(1, 1);
        const auto kind = find_option(option.name, false);
        if (!kind) fail(fmt::format("\"{}\" is no EAL option; `-- --help` lists cachewire's own", token));
        option.group = kind->group;
        if (token.size() > 2)
            option.value = token.substr(2);
        else if (kind->takes == Takes::value)
            take_value(option);
        return option;
    }

    // Of an option that a later DPDK may know.
    [[nodiscard]] bool next_is_value() const { return at_ < tokens_.size() && !tokens_[at_].starts_with("-"); }

    void take_value(Option& option) {
        if (at_ == tokens_.size() || tokens_[at_] == "--") fail(fmt::format("{} needs a value", option.tokens.front()));
        option.value = tokens_[at_];
        option.tokens.push_back(tokens_[at_++]);
    }

    const std::vector<std::string>& tokens_;
    base::ExitStatus status_;
    std::string where_;
    std::size_t at_ = 0;
};

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

void refuse_contradictions(const std::vector<port::Device>& devices, const std::vector<Option>& options,
                           base::ExitStatus status) {
    const auto pci = std::find_if(devices.begin(), devices.end(),
                                  [](const port::Device& d) { return d.kind == port::DeviceKind::pci; });
    if (pci == devices.end()) return;
    for (const Option& option : options)
        if (option.group == "devices" && !is_allow(option))
            throw base::Error(status,
                              fmt::format("{} can't go with the port on the PCI device {}: cachewire allows its "
                                          "ports' devices with -a and no others",
                                          option.tokens.front(), pci->name));
}

void append(std::vector<std::string>& to, const std::vector<Option>& options) {
    for (const Option& option : options) to.insert(to.end(), option.tokens.begin(), option.tokens.end());
}

}  // namespace

std::vector<std::string> merge_eal_arguments(const EalSources& sources) {
    const auto command_line = Parser(sources.command_line, base::ExitStatus::usage, "command line").all();
    const auto file =
        without_replaced(Parser(sources.file, base::ExitStatus::configuration, "`eal:`").all(), command_line);
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

base::ExitStatus who_is_wrong(const EalSources& sources, std::string_view log) {
    const auto command_line = Parser(sources.command_line, base::ExitStatus::usage, "command line").all();
    const auto file =
        without_replaced(Parser(sources.file, base::ExitStatus::configuration, "`eal:`").all(), command_line);
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
    const auto options = Parser(arguments, base::ExitStatus::usage, "EAL").all();
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
    for (const Option& option : Parser(arguments, base::ExitStatus::usage, "EAL").all())
        for (const char* name : {"no-huge", "in-memory", "no-shconf"})
            if (option.name == name) return std::string("--") + name;
    return "";
}

}  // namespace cachewire::app
