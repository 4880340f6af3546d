// SPDX-License-Identifier: BSD-3-Clause
// One policer: which keys its type has, and what no meter could keep.
#include <algorithm>

#include <fmt/format.h>

#include "config/sections.h"
#include "config/units.h"

namespace cachewire::config {
namespace {

constexpr Key kPolicer[] = {{"name"},         {"type"},   {"rate"},   {"burst"},      {"accounting"}, {"cir"},
                            {"pir"},          {"eir"},    {"cbs"},    {"pbs"},        {"ebs"},        {"red"},
                            {"colour_aware"}, {"yellow"}, {"shared"}, {"per_session"}};
constexpr Choice<PolicerType> kTypes[] = {{"single", PolicerType::single},
                                          {"srtcm_2697", PolicerType::srtcm_2697},
                                          {"trtcm_2698", PolicerType::trtcm_2698},
                                          {"trtcm_4115", PolicerType::trtcm_4115}};
constexpr Choice<Accounting> kAccounting[] = {{"l1", Accounting::l1}, {"l2", Accounting::l2}, {"l3", Accounting::l3}};

// What a type calls its numbers; "": it has none.
struct Names4 {
    std::string_view rate, burst, excess_rate, excess_burst;
};
constexpr Names4 kNames[] = {
    {"rate", "burst", "", ""}, {"cir", "cbs", "", "ebs"}, {"cir", "cbs", "pir", "pbs"}, {"cir", "cbs", "eir", "ebs"}};
constexpr std::string_view kNumbers[] = {"rate", "burst", "cir", "cbs", "pir", "pbs", "eir", "ebs"};

constexpr std::uint64_t kMinRate = 8'000, kMaxRate = 1'000'000'000'000;
constexpr std::uint64_t kMinBurst = 64, kMaxBurst = 1ull << 32;

void read_burst(Reporter& reporter, const std::optional<Value>& value, std::uint64_t& burst_bytes) {
    constexpr std::string_view kAllowed = "auto, or 64B to 4GiB, in B, KiB, MiB, GiB, kB, MB or GB";
    if (is_auto(value)) return;
    const auto burst = read_parsed(reporter, value, kAllowed, parse_size, [](std::uint64_t bytes) {
        return bytes < kMinBurst || bytes > kMaxBurst ? kOutOfRange : "";
    });
    if (burst) burst_bytes = *burst;
}

// The meter counts in steps of some hundred cycles: a bucket shorter than that can't hold its rate (qos::make_profile
// refuses it with the TSC's real rate; here 200 ns, which covers a TSC of 1 GHz).
void check_burst(Reporter& reporter, const std::optional<Value>& value, std::uint64_t rate_bps,
                 std::uint64_t burst_bytes) {
    constexpr std::uint64_t kBitsPerStep = 40'000'000;  // 8 bits a byte in 200 ns
    const std::uint64_t least = rate_bps / kBitsPerStep;
    if (burst_bytes != 0 && burst_bytes < least)
        reporter.error(*value,
                       fmt::format("too short to be metered at this rate; allowed: auto, or at least {}B", least));
}

// A frame that no bucket can ever hold is lost however slowly its like come. `widest` is the bucket that holds most.
void warn_of_short_burst(Loading& loading, const std::optional<Value>& widest, const Policer& policer,
                         std::uint64_t burst_bytes) {
    if (!widest || burst_bytes == 0) return;
    std::uint64_t frame = 0;
    for (const Port& port : loading.config.ports) frame = std::max<std::uint64_t>(frame, port.mtu);
    constexpr unsigned kMore[] = {14 + 24, 14, 0};  // l1, l2, l3
    frame += kMore[static_cast<unsigned>(policer.accounting)];
    if (burst_bytes < frame)
        loading.reporter.warning(
            widest->node->line, widest->node->column, widest->path.text(),
            fmt::format("shorter than a full frame of {} bytes, which will always be over the rate", frame));
}

void refuse_foreign_numbers(Reporter& reporter, const MapReader& map, PolicerType type) {
    const Names4& names = kNames[static_cast<unsigned>(type)];
    std::string own;
    for (const std::string_view name : {names.rate, names.burst, names.excess_rate, names.excess_burst})
        if (!name.empty()) own += fmt::format("{}{}", own.empty() ? "" : " ", name);
    for (const std::string_view key : kNumbers) {
        if (key == names.rate || key == names.burst || key == names.excess_rate || key == names.excess_burst) continue;
        if (const auto value = map.get(key))
            reporter.error(*value, fmt::format("type {} has no such number; allowed: {}",
                                               kTypes[static_cast<unsigned>(type)].text, own));
    }
}

void read_numbers(Loading& loading, const MapReader& map, Policer& policer) {
    Reporter& reporter = loading.reporter;
    const Names4& names = kNames[static_cast<unsigned>(policer.type)];
    const auto burst = map.get(names.burst);
    read_bit_rate(reporter, map.require(names.rate), policer.rate_bps);
    read_burst(reporter, burst, policer.burst_bytes);
    check_burst(reporter, burst, policer.rate_bps, policer.burst_bytes);
    std::optional<Value> widest = burst;
    std::uint64_t most = policer.burst_bytes;
    if (!names.excess_rate.empty()) {
        const auto rate = map.require(names.excess_rate);
        read_bit_rate(reporter, rate, policer.excess_rate_bps);
        if (policer.type == PolicerType::trtcm_2698 && policer.excess_rate_bps != 0 &&
            policer.excess_rate_bps < policer.rate_bps)
            reporter.error(*rate, "a peak rate under the committed one; allowed: `cir` or more");
    }
    if (!names.excess_burst.empty()) {
        const auto excess = map.get(names.excess_burst);
        read_burst(reporter, excess, policer.excess_burst_bytes);
        check_burst(reporter, excess,
                    policer.type == PolicerType::srtcm_2697 ? policer.rate_bps : policer.excess_rate_bps,
                    policer.excess_burst_bytes);
        // RFC 2698: nothing passes that the peak's bucket does not hold. Else one of both is enough.
        const std::uint64_t more = policer.excess_burst_bytes;
        if (policer.type == PolicerType::trtcm_2698 || (most != 0 && (more == 0 || more > most))) {
            widest = excess;
            most = more;
        }
    }
    read_choice(reporter, map.get("accounting"), policer.accounting, kAccounting);
    warn_of_short_burst(loading, widest, policer, most);
}

void read_action(Reporter& reporter, const std::optional<Value>& value, ColourAction& action) {
    constexpr std::string_view kAllowed = "pass, drop, or {dscp: NAME}";
    if (!value) return;
    if (value->node->kind == Node::Kind::map) {
        constexpr Key kRemark[] = {{"dscp"}};
        const MapReader map(reporter, *value, kRemark);
        if (const auto dscp = read_dscp(reporter, map.require("dscp"))) action = {ColourAction::Kind::remark, *dscp};
        return;
    }
    const auto text = read_scalar(reporter, value, kAllowed);
    if (!text) return;
    if (*text == "pass") {
        action = {ColourAction::Kind::pass};
    } else if (*text == "drop") {
        action = {ColourAction::Kind::drop};
    } else {
        reporter.error(*value, fmt::format("{} is not known; allowed: {}", quote(*text), kAllowed));
    }
}

}  // namespace

void read_bit_rate(Reporter& reporter, const std::optional<Value>& value, std::uint64_t& rate_bps) {
    constexpr std::string_view kAllowed = "8kbit to 1Tbit, in bit, kbit, Mbit, Gbit or Tbit";
    const auto rate = read_parsed(reporter, value, kAllowed, parse_rate, [](const Rate& r) -> std::string_view {
        if (r.kind == RateKind::packets) return ": packets a second are not supported yet";
        return r.per_second < kMinRate || r.per_second > kMaxRate ? kOutOfRange : "";
    });
    if (rate) rate_bps = rate->per_second;
}

Policer read_policer(Loading& loading, const Value& item) {
    Reporter& reporter = loading.reporter;
    const MapReader map(reporter, item, kPolicer);
    Policer policer;
    const auto name = map.require("name");
    policer.name = read_name(reporter, name).value_or("");
    const auto type = map.get("type");
    // Of a type that can't be read, which numbers it lacks would only be noise.
    if (!type || read_choice(reporter, type, policer.type, kTypes)) {
        refuse_foreign_numbers(reporter, map, policer.type);
        read_numbers(loading, map, policer);
    }
    read_bool(reporter, map.get("colour_aware"), policer.colour_aware);
    read_bool(reporter, map.get("shared"), policer.shared);
    read_bool(reporter, map.get("per_session"), policer.per_session);
    if (policer.shared && policer.per_session)
        reporter.error(*map.get("per_session"),
                       "one bucket for all, or one for each session; allowed: `shared` or this");
    read_action(reporter, map.get("yellow"), policer.yellow);
    read_action(reporter, map.get("red"), policer.red);
    if (policer.type == PolicerType::single) {
        for (const std::string_view key : {"yellow", "colour_aware"})
            if (const auto value = map.get(key))
                reporter.error(*value, "one rate knows green and red only; allowed: with another `type`");
    }
    if (!policer.name.empty()) loading.policers.add(reporter, *name, policer.name, loading.config.policers.size());
    return policer;
}

}  // namespace cachewire::config
