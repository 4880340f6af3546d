// SPDX-License-Identifier: BSD-3-Clause
#include "app/eal_options.h"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

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
    // What is wrong with an option makes its value a riddle too, so that is passed over.
    std::vector<OptionProblem> problems() {
        std::vector<OptionProblem> result;
        while (at_ < tokens_.size()) {
            const std::size_t at = at_;
            try {
                next();
            } catch (const base::Error& error) {
                result.push_back({at, error.what()});
                while (next_is_value()) ++at_;
            }
        }
        return result;
    }

  private:
    [[noreturn]] void fail(const std::string& text) const {
        throw base::Error(status_, (where_.empty() ? "" : where_ + ": ") + text);
    }

    Option next() {
        const std::string& token = tokens_[at_++];
        if (token == "--") fail("\"--\" is no EAL option; it separates EAL's arguments from cachewire's");
        if (token.size() < 2 || token[0] != '-') fail(fmt::format("\"{}\" is no EAL option", token));
        Option option;
        option.at = at_ - 1;
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

}  // namespace

std::vector<Option> read_options(const std::vector<std::string>& arguments, base::ExitStatus status,
                                 const std::string& where) {
    return Parser(arguments, status, where).all();
}

std::vector<OptionProblem> find_problems(const std::vector<std::string>& arguments) {
    return Parser(arguments, base::ExitStatus::configuration, "").problems();
}

}  // namespace cachewire::app
