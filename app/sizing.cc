// SPDX-License-Identifier: BSD-3-Clause
#include "app/sizing.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "session/table.h"

namespace cachewire::app {

namespace {

constexpr double kWireBytes = 24;  // preamble 8, FCS 4, gap 12

// docs/performance.md, the whole path.
struct Measured {
    double sessions, cycles;
};
constexpr Measured kMeasured[] = {{1e3, 100}, {1e5, 160}, {1e6, 169}};

// docs/performance.md: 10 k and 100 k rules of a site's edge take 610 and 650 bytes each, ClassBench's 700 to 1600;
// 900 k IPv4 prefixes of a real table 735 each, both copies, 160 k IPv6 ones 2570.
constexpr double kRuleBytes = 650;
constexpr double kRouteBytes = 735;

}  // namespace

double built_in_cycles(std::uint32_t sessions) {
    const double n = std::max<double>(sessions, kMeasured[0].sessions);
    // Beyond the last point as between the last two.
    const Measured* to = std::find_if(std::begin(kMeasured) + 1, std::end(kMeasured) - 1,
                                      [n](const Measured& m) { return n <= m.sessions; });
    const Measured* from = to - 1;
    const double share = std::log(n / from->sessions) / std::log(to->sessions / from->sessions);
    return from->cycles + share * (to->cycles - from->cycles);
}

double packets_at(double bits_per_second, std::uint32_t frame_bytes) {
    return bits_per_second / (8 * (frame_bytes + kWireBytes));
}

Sizing size_up(const Job& job) {
    Sizing s{};
    s.cycles_per_packet = job.cycles_per_packet != 0 ? job.cycles_per_packet : built_in_cycles(job.sessions);
    s.packets_per_core = job.clock_hz / s.cycles_per_packet;
    s.workers = std::max(1u, static_cast<unsigned>(std::ceil(job.packets_per_second / (s.packets_per_core * kLoad))));
    const std::uint32_t each = job.sessions / s.workers;
    s.buckets_total = session::Besides::memory_needed(std::max(each, 1u)) * job.session_buckets * s.workers;
    s.sessions_total = session::Table::memory_needed(std::max(each, 1u)) * s.workers + s.buckets_total;
    s.session_bytes = static_cast<double>(s.sessions_total) / job.sessions;
    s.rule_bytes = kRuleBytes;
    s.route_bytes = kRouteBytes;
    s.rules_total = static_cast<std::size_t>(kRuleBytes * static_cast<double>(job.rules));
    s.routes_total = static_cast<std::size_t>(kRouteBytes * static_cast<double>(job.routes));
    return s;
}

std::string to_text(const Job& job, const Sizing& s) {
    const auto mib = [](std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
    return fmt::format(
        "rate: {:.2f} Mpps; {:.0f} cycles a packet{}, so {:.2f} Mpps a core at {:.2f} GHz\n"
        "workers: {}, each loaded to {:.0f} % at most; and the main lcore\n"
        "sessions: {} at {:.0f} bytes, {:.0f} MiB{}\n"
        "rules: {} at about {:.0f} bytes, {:.1f} MiB\n"
        "routes: {} at about {:.0f} bytes (IPv4, both copies), {:.1f} MiB\n",
        job.packets_per_second / 1e6, s.cycles_per_packet,
        job.cycles_per_packet != 0 ? "" : " (docs/performance.md's machine; --cycles gives your own)",
        s.packets_per_core / 1e6, job.clock_hz / 1e9, s.workers, 100 * kLoad, job.sessions, s.session_bytes,
        mib(s.sessions_total),
        s.buckets_total == 0 ? "" : fmt::format(" ({:.0f} MiB of it for `per_session`)", mib(s.buckets_total)),
        job.rules, s.rule_bytes, mib(s.rules_total), job.routes, s.route_bytes, mib(s.routes_total));
}

nlohmann::ordered_json to_json(const Job& job, const Sizing& s) {
    return {{"packets_per_second", job.packets_per_second},
            {"cycles_per_packet", s.cycles_per_packet},
            {"clock_hz", job.clock_hz},
            {"packets_per_core", s.packets_per_core},
            {"load", kLoad},
            {"workers", s.workers},
            {"sessions",
             {{"count", job.sessions},
              {"bytes_each", s.session_bytes},
              {"bytes", s.sessions_total},
              {"bucket_bytes", s.buckets_total}}},
            {"rules", {{"count", job.rules}, {"bytes_each", s.rule_bytes}, {"bytes", s.rules_total}}},
            {"routes", {{"count", job.routes}, {"bytes_each", s.route_bytes}, {"bytes", s.routes_total}}}};
}

}  // namespace cachewire::app
