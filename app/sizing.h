#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// How much memory and how many cores a job needs, from bytes that the code lays down and cycles that cachewire-bench
// has measured. Pure: `cachewire plan FILE --rate R` prints it, docs/sizing.md works examples.
#include <cstdint>
#include <string>

#include "base/json.h"

namespace cachewire::app {

struct Job {
    double packets_per_second = 0;
    std::uint32_t sessions = 0;    // capacity, split over the workers
    unsigned session_buckets = 0;  // a session: places that have a policer with `per_session`
    std::size_t rules = 0, routes = 0;
    double cycles_per_packet = 0;  // 0: built_in_cycles(sessions)
    double clock_hz = 2.6e9;       // of what the cycles were measured in: the TSC's
};

struct Sizing {
    double cycles_per_packet, packets_per_core;
    unsigned workers;                                       // at kLoad of what a core can do
    double session_bytes, rule_bytes, route_bytes;          // each
    std::size_t sessions_total, rules_total, routes_total;  // bytes
    std::size_t buckets_total;                              // of sessions_total
};

// A worker that is loaded more than this has nothing left for bursts, reloads and sessions that begin.
inline constexpr double kLoad = 0.7;

// Of the whole path with a memo hit, by sessions in use: docs/performance.md's machine, between the measured points by
// the logarithm of the sessions.
double built_in_cycles(std::uint32_t sessions);

// Packets a second at a rate of bits on the wire. `frame_bytes`: L2 without FCS; preamble, FCS and gap are 24 more.
double packets_at(double bits_per_second, std::uint32_t frame_bytes);

Sizing size_up(const Job& job);
std::string to_text(const Job& job, const Sizing& sizing);
nlohmann::ordered_json to_json(const Job& job, const Sizing& sizing);

}  // namespace cachewire::app
