// SPDX-License-Identifier: BSD-3-Clause
#include "app/stats_table.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/drop_reason.h"

namespace cachewire::app {

namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kMaxReasons = 10;

std::string grouped(std::uint64_t n) {
    std::string digits = std::to_string(n);
    for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
    return digits;
}

std::string pps(double packets_per_second) {
    if (packets_per_second >= 1e6) return fmt::format("{:.3f} Mpps", packets_per_second / 1e6);
    if (packets_per_second >= 1e4) return fmt::format("{:.1f} kpps", packets_per_second / 1e3);
    return fmt::format("{:.0f} pps", packets_per_second);
}

// Whole words only.
std::string cut(std::string_view text, std::size_t width) {
    if (text.size() <= width) return std::string(text);
    const auto space = text.rfind(' ', width - 3);
    return std::string(text.substr(0, space == std::string_view::npos ? width - 3 : space)) + "...";
}

// Breaks before the term that would not fit.
std::string wrapped(std::string equation) {
    constexpr std::size_t kIndent = 7;
    std::string text;
    while (equation.size() > kColumns) {
        const auto plus = equation.rfind(" + ", kColumns - 1);
        if (plus == std::string::npos || plus <= kIndent) break;
        text += equation.substr(0, plus) + "\n";
        equation = std::string(kIndent, ' ') + equation.substr(plus);
    }
    return text + equation;
}

std::uint64_t count(const telemetry::Json& object, const char* key) { return object.value(key, std::uint64_t{0}); }

}  // namespace

std::uint64_t StatsTable::moved(const std::string& counter, std::uint64_t value) {
    const std::uint64_t before = std::exchange(last_[counter], value);
    return value - std::min(before, value);
}

std::string StatsTable::rate(std::uint64_t packets) const {
    return elapsed_s_ > 0 ? pps(static_cast<double>(packets) / elapsed_s_) : "-";
}

std::string StatsTable::port_line(const std::string& name) {
    const telemetry::Json stats = query_("/cachewire/port/stats", name);
    const std::uint64_t rx = count(stats, "rx_packets"), tx = count(stats, "tx_packets");
    const std::uint64_t rx_lost = count(stats, "rx_missed") + count(stats, "rx_errors") + count(stats, "rx_nombuf");
    return fmt::format("{:<12}{:>14}{:>12}{:>14}{:>12}{:>8}{:>8}\n", name.size() > 12 ? name.substr(0, 11) + "~" : name,
                       grouped(rx), rate(moved(name + " rx", rx)), grouped(tx), rate(moved(name + " tx", tx)),
                       grouped(rx_lost), grouped(count(stats, "tx_dropped")));
}

std::string StatsTable::ports() {
    std::string text = fmt::format("{:<12}{:>14}{:>12}{:>14}{:>12}{:>8}{:>8}\n", "port", "rx packets", "rx rate",
                                   "tx packets", "tx rate", "rx lost", "tx lost");
    for (std::string cursor;;) {
        const telemetry::Json page = query_("/cachewire/port/list", cursor);
        for (const auto& [key, entry] : page.items())
            if (entry.is_object()) text += port_line(entry.at("name").get<std::string>());
        if (!page.contains("next")) return text;
        cursor = std::to_string(page.at("next").get<std::uint64_t>());
    }
}

// What moves most comes first; what rests keeps its total.
std::string StatsTable::drops() {
    struct Reason {
        std::string name;
        std::uint64_t total, moved;
    };
    std::vector<Reason> reasons;
    const telemetry::Json answer = query_("/cachewire/drops", "");
    for (const auto& [name, value] : answer.items()) {
        const auto total = value.get<std::uint64_t>();
        if (name != "total" && total != 0) reasons.push_back({name, total, moved("drop " + name, total)});
    }
    if (reasons.empty()) return "\nnothing dropped\n";
    std::stable_sort(reasons.begin(), reasons.end(), [](const Reason& a, const Reason& b) {
        return std::pair(a.moved, a.total) > std::pair(b.moved, b.total);
    });
    std::string text = fmt::format("\n{:<20}{:>14}{:>12}  why\n", "dropped as", "packets", "rate");
    const std::size_t shown = std::min(reasons.size(), kMaxReasons);
    for (std::size_t i = 0; i < shown; ++i) {
        const std::string line =
            fmt::format("{:<20}{:>14}{:>12}  ", reasons[i].name, grouped(reasons[i].total), rate(reasons[i].moved));
        text += line + cut(pipeline::drop_reason_text(reasons[i].name), kColumns - line.size()) + "\n";
    }
    if (shown < reasons.size())
        text += fmt::format("and {} reasons more: `cwctl show drops`\n", reasons.size() - shown);
    return text;
}

// As an equation, so that a reader can check it; terms that are zero on every start are left out.
std::string StatsTable::ledger() const {
    const telemetry::Json line = query_("/cachewire/ledger", "");
    std::string left = "rx " + grouped(count(line, "rx"));
    if (count(line, "originated") != 0) left += " + originated " + grouped(count(line, "originated"));
    std::string right = "tx " + grouped(count(line, "tx")) + " + dropped " + grouped(count(line, "dropped"));
    for (const char* term : {"punted", "consumed"})
        if (count(line, term) != 0) right += fmt::format(" + {} {}", term, grouped(count(line, term)));
    right += " + held " + grouped(count(line, "held"));
    const std::string unaccounted = line.value("unaccounted", telemetry::Json(0)).dump();
    return "\n" + wrapped(fmt::format("ledger: {} = {}, unaccounted {}", left, right, unaccounted)) + "\n";
}

std::string StatsTable::next(double now_s) {
    elapsed_s_ = last_s_ > 0 ? now_s - last_s_ : 0;
    last_s_ = now_s;
    return ports() + drops() + ledger();
}

}  // namespace cachewire::app
