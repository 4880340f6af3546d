// SPDX-License-Identifier: BSD-3-Clause
// How many sessions there are, how long they last, and what happens when the table runs full.
#include <fmt/format.h>

#include "config/sections.h"
#include "config/units.h"

namespace cachewire::config {
namespace {

constexpr Key kSessions[] = {{"capacity"}, {"high_watermark"},   {"on_full"},
                             {"timeouts"}, {"on_policy_change"}, {"state_file", kLater}};
constexpr Key kTimeouts[] = {
    {"new"}, {"established_udp"}, {"established_tcp"}, {"half_close"}, {"time_wait"}, {"closed"}, {"icmp"}};
constexpr Choice<OnFull> kOnFull[] = {{"evict_embryonic", OnFull::evict_embryonic}, {"deny_new", OnFull::deny_new}};
constexpr Choice<OnPolicyChange> kOnPolicyChange[] = {
    {"revalidate", OnPolicyChange::revalidate}, {"keep", OnPolicyChange::keep}, {"kill", OnPolicyChange::kill}};

void read_percent(Reporter& reporter, const std::optional<Value>& value, std::uint8_t& out) {
    const auto percent = read_parsed(reporter, value, "1% to 100%", parse_percent,
                                     [](std::uint64_t n) { return n < 1 || n > 100 ? kOutOfRange : ""; });
    if (percent) out = static_cast<std::uint8_t>(*percent);
}

// The clock of sessions ticks four to eight times a second, so a time-out is whole seconds.
void read_timeout(Reporter& reporter, const std::optional<Value>& value, std::uint32_t& out) {
    constexpr std::uint64_t kYearMs = 365ull * 86'400'000;
    const auto ms =
        read_parsed(reporter, value, "1s to 365d in whole seconds, in s, m, h or d", parse_time,
                    [](std::uint64_t n) { return n < 1000 || n > kYearMs || n % 1000 != 0 ? kOutOfRange : ""; });
    if (ms) out = static_cast<std::uint32_t>(*ms / 1000);
}

void read_timeouts(Reporter& reporter, const Value& value, Timeouts& timeouts) {
    const MapReader map(reporter, value, kTimeouts);
    read_timeout(reporter, map.get("new"), timeouts.fresh);
    read_timeout(reporter, map.get("established_udp"), timeouts.established_udp);
    read_timeout(reporter, map.get("established_tcp"), timeouts.established_tcp);
    read_timeout(reporter, map.get("half_close"), timeouts.half_close);
    read_timeout(reporter, map.get("time_wait"), timeouts.time_wait);
    read_timeout(reporter, map.get("closed"), timeouts.closed);
    read_timeout(reporter, map.get("icmp"), timeouts.icmp);
}

}  // namespace

void read_sessions(Loading& loading, const MapReader& top) {
    const auto value = top.get("sessions");
    if (!value) return;
    Reporter& reporter = loading.reporter;
    Sessions& sessions = loading.config.sessions;
    const MapReader map(reporter, *value, kSessions);
    read_number(reporter, map.get("capacity"), sessions.capacity, 1, 1u << 28);
    read_percent(reporter, map.get("high_watermark"), sessions.high_watermark_percent);
    read_choice(reporter, map.get("on_full"), sessions.on_full, kOnFull);
    read_choice(reporter, map.get("on_policy_change"), sessions.on_policy_change, kOnPolicyChange);
    if (const auto timeouts = map.get("timeouts")) read_timeouts(reporter, *timeouts, sessions.timeouts);
}

}  // namespace cachewire::config
