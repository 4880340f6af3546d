// SPDX-License-Identifier: BSD-3-Clause
#include "config/units.h"

#include <algorithm>
#include <charconv>
#include <span>

#include <fmt/format.h>

#include "config/diagnostics.h"

namespace cachewire::config {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool all_digits(std::string_view s) { return !s.empty() && std::all_of(s.begin(), s.end(), is_digit); }

// Why a text that some YAML reader would take for a number is none here.
std::string number_trap(std::string_view text) {
    if (text.starts_with("0x") || text.starts_with("0o")) return "is not decimal";
    if (text.find('_') != std::string_view::npos) return "has an underscore in a number";
    if (text.starts_with('-') || text.starts_with('+')) return "has a sign";
    if (is_digit(text.front()) && text.find_first_of("eE.") != std::string_view::npos) return "is not a whole number";
    return "is not a number";
}

__extension__ using Wide = unsigned __int128;

struct Unit {
    std::string_view name;
    std::uint64_t factor;
};

// digits [. digits] unit, as a whole multiple of the base unit. `which` is the index of the unit.
std::optional<std::uint64_t> parse_quantity(std::string_view text, std::span<const Unit> units, std::size_t& which,
                                            std::string& why) {
    const auto end = std::find_if_not(text.begin(), text.end(), [](char c) { return is_digit(c) || c == '.'; });
    const std::string_view number(text.begin(), end), unit(end, text.end());
    const std::size_t point = number.find('.');
    const std::string_view whole = number.substr(0, point);
    const std::string_view fraction = point == std::string_view::npos ? "" : number.substr(point + 1);
    const bool fraction_is_wrong = point != std::string_view::npos && !all_digits(fraction);
    if (!all_digits(whole) || fraction_is_wrong || (whole.size() > 1 && whole[0] == '0')) {
        why = fmt::format("{} is not a number with a unit", quote(text));
        return std::nullopt;
    }
    const auto found = std::find_if(units.begin(), units.end(), [unit](const Unit& u) { return u.name == unit; });
    if (found == units.end()) {
        why = fmt::format("{} {}", quote(text), unit.empty() ? "has no unit" : "has the unknown unit " + quote(unit));
        return std::nullopt;
    }
    which = static_cast<std::size_t>(found - units.begin());
    Wide value = 0, scale = 1;
    for (const char c : whole) value = std::min<Wide>(value * 10 + static_cast<unsigned>(c - '0'), UINT64_MAX);
    for (const char c : fraction.substr(0, 9)) {
        value = value * 10 + static_cast<unsigned>(c - '0');
        scale *= 10;
    }
    // 2^64 * 10^9 does not leave room for every factor: clip first, such values are out of any range.
    const Wide limit = static_cast<Wide>(UINT64_MAX) * scale;
    const Wide product = value > limit / found->factor ? limit : value * found->factor;
    if (fraction.size() > 9 || product % scale != 0) {
        why = fmt::format("{} is not a whole number of {}", quote(text), units.front().name);
        return std::nullopt;
    }
    return static_cast<std::uint64_t>(product / scale);
}

constexpr Unit kRates[] = {
    {"bit", 1}, {"kbit", 1000}, {"Mbit", 1000'000}, {"Gbit", 1000'000'000}, {"Tbit", 1000'000'000'000},
    {"pps", 1}, {"kpps", 1000}, {"Mpps", 1000'000}};
constexpr std::size_t kFirstPacketRate = 5;
constexpr Unit kSizes[] = {{"B", 1},     {"KiB", 1ull << 10}, {"MiB", 1ull << 20}, {"GiB", 1ull << 30},
                           {"kB", 1000}, {"MB", 1000'000},    {"GB", 1000'000'000}};
constexpr Unit kPercent[] = {{"%", 1}};
constexpr Unit kTimes[] = {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3600'000}, {"d", 86'400'000}};

}  // namespace

std::optional<std::uint64_t> parse_decimal(std::string_view text, std::string& why) {
    if (!all_digits(text)) {
        why = text.empty() ? "'' is not a number" : quote(text) + " " + number_trap(text);
        return std::nullopt;
    }
    if (text.size() > 1 && text[0] == '0') {
        why = quote(text) + " has a leading zero, octal to some readers";
        return std::nullopt;
    }
    std::uint64_t value = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) {
        why = quote(text) + " is out of range";
        return std::nullopt;
    }
    return value;
}

std::optional<Rate> parse_rate(std::string_view text, std::string& why) {
    std::size_t unit = 0;
    const auto value = parse_quantity(text, kRates, unit, why);
    if (!value) return std::nullopt;
    return Rate{*value, unit < kFirstPacketRate ? RateKind::bits : RateKind::packets};
}

std::optional<std::uint64_t> parse_size(std::string_view text, std::string& why) {
    std::size_t unit = 0;
    return parse_quantity(text, kSizes, unit, why);
}

std::optional<std::uint64_t> parse_time(std::string_view text, std::string& why) {
    std::size_t unit = 0;
    return parse_quantity(text, kTimes, unit, why);
}

std::optional<std::uint64_t> parse_percent(std::string_view text, std::string& why) {
    std::size_t unit = 0;
    return parse_quantity(text, kPercent, unit, why);
}

std::optional<Range> parse_range(std::string_view text, std::string& why) {
    const std::size_t dash = text.find('-');
    const auto first = parse_decimal(text.substr(0, dash), why);
    if (!first) return std::nullopt;
    if (dash == std::string_view::npos) return Range{*first, *first};
    const auto last = parse_decimal(text.substr(dash + 1), why);
    if (!last) return std::nullopt;
    if (*last < *first) {
        why = fmt::format("{} ends before it begins", quote(text));
        return std::nullopt;
    }
    return Range{*first, *last};
}

std::optional<std::vector<unsigned>> parse_lcores(std::string_view text, std::string& why) {
    std::vector<unsigned> lcores;
    std::vector<bool> seen(kMaxLcores);
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const auto range = parse_range(text.substr(begin, end - begin), why);
        if (!range) return std::nullopt;
        if (range->last >= kMaxLcores) {
            why = fmt::format("lcore {} is out of range; allowed: 0 to {}", range->last, kMaxLcores - 1);
            return std::nullopt;
        }
        for (auto lcore = static_cast<unsigned>(range->first); lcore <= range->last; ++lcore) {
            if (seen[lcore]) {
                why = fmt::format("lcore {} stands twice", lcore);
                return std::nullopt;
            }
            seen[lcore] = true;
            lcores.push_back(lcore);
        }
        begin = end + 1;
    }
    std::sort(lcores.begin(), lcores.end());
    return lcores;
}

}  // namespace cachewire::config
