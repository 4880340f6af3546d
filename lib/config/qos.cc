// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "config/sections.h"
#include "config/units.h"

namespace cachewire::config {
namespace {

constexpr Key kQos[] = {{"policers"}, {"classes", kLater}, {"schedulers", kLater}};
constexpr Key kPolicer[] = {{"name"},           {"type"},        {"rate"},          {"burst"},
                            {"accounting"},     {"cir", kLater}, {"pir", kLater},   {"eir", kLater},
                            {"cbs", kLater},    {"pbs", kLater}, {"ebs", kLater},   {"colour_aware", kLater},
                            {"yellow", kLater}, {"red", kLater}, {"shared", kLater}};
constexpr Choice<PolicerType> kTypes[] = {{"single", PolicerType::single},
                                          {"srtcm_2697", std::nullopt},
                                          {"trtcm_2698", std::nullopt},
                                          {"trtcm_4115", std::nullopt}};
constexpr Choice<Accounting> kAccounting[] = {{"l1", Accounting::l1}, {"l2", Accounting::l2}, {"l3", Accounting::l3}};

constexpr std::uint64_t kMinRate = 8'000, kMaxRate = 1'000'000'000'000;
constexpr std::uint64_t kMinBurst = 64, kMaxBurst = 1ull << 32;

void read_rate(Reporter& reporter, const std::optional<Value>& value, std::uint64_t& rate_bps) {
    constexpr std::string_view kAllowed = "8kbit to 1Tbit, in bit, kbit, Mbit, Gbit or Tbit";
    const auto text = read_scalar(reporter, value, kAllowed);
    if (!text) return;
    std::string why;
    const auto rate = parse_rate(*text, why);
    if (!rate) {
        reporter.error(*value, fmt::format("{}; allowed: {}", why, kAllowed));
    } else if (rate->kind == RateKind::packets) {
        reporter.error(*value,
                       fmt::format("{}: packets a second are not supported yet; allowed: {}", quote(*text), kAllowed));
    } else if (rate->per_second < kMinRate || rate->per_second > kMaxRate) {
        reporter.error(*value, fmt::format("{} is out of range; allowed: {}", quote(*text), kAllowed));
    } else {
        rate_bps = rate->per_second;
    }
}

void read_burst(Reporter& reporter, const std::optional<Value>& value, std::uint64_t& burst_bytes) {
    constexpr std::string_view kAllowed = "auto, or 64B to 4GiB, in B, KiB, MiB, GiB, kB, MB or GB";
    if (is_auto(value)) return;
    const auto text = read_scalar(reporter, value, kAllowed);
    if (!text) return;
    std::string why;
    const auto burst = parse_size(*text, why);
    if (!burst) {
        reporter.error(*value, fmt::format("{}; allowed: {}", why, kAllowed));
    } else if (*burst < kMinBurst || *burst > kMaxBurst) {
        reporter.error(*value, fmt::format("{} is out of range; allowed: {}", quote(*text), kAllowed));
    } else {
        burst_bytes = *burst;
    }
}

// The meter counts in steps of some hundred cycles: a bucket shorter than that can't hold its rate (qos::make_profile
// refuses it with the TSC's real rate; here 200 ns, which covers a TSC of 1 GHz).
void check_burst(Reporter& reporter, const std::optional<Value>& value, const Policer& policer) {
    constexpr std::uint64_t kBitsPerStep = 40'000'000;  // 8 bits a byte in 200 ns
    const std::uint64_t least = policer.rate_bps / kBitsPerStep;
    if (policer.burst_bytes != 0 && policer.burst_bytes < least)
        reporter.error(*value,
                       fmt::format("too short to be metered at this rate; allowed: auto, or at least {}B", least));
}

}  // namespace

void read_qos(Loading& loading, const MapReader& top) {
    Reporter& reporter = loading.reporter;
    const auto value = top.get("qos");
    if (!value) return;
    const MapReader qos(reporter, *value, kQos);
    for (const Value& item : read_list(reporter, qos.get("policers"))) {
        const MapReader map(reporter, item, kPolicer);
        Policer policer;
        const auto name = map.require("name");
        policer.name = read_name(reporter, name).value_or("");
        // Another type has other keys: its missing `rate` would only be noise.
        const auto type = map.get("type");
        const bool single = !type || read_choice(reporter, type, policer.type, kTypes);
        read_rate(reporter, single ? map.require("rate") : map.get("rate"), policer.rate_bps);
        read_burst(reporter, map.get("burst"), policer.burst_bytes);
        check_burst(reporter, map.get("burst"), policer);
        read_choice(reporter, map.get("accounting"), policer.accounting, kAccounting);
        if (!policer.name.empty()) loading.policers.add(reporter, *name, policer.name, loading.config.policers.size());
        loading.config.policers.push_back(std::move(policer));
    }
}

}  // namespace cachewire::config
