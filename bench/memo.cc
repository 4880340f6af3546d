// SPDX-License-Identifier: BSD-3-Clause
// What does remembering a verdict save? The same packets of 4096 UDP sessions through the shipped pipeline: with the
// memo, with `memoize: false` (list and routes asked for every packet, the session kept), and with `sessions: none` (no
// session at all). The rules are random 5-tuples that match none of the packets but the last, as policy mostly does;
// rule count from 10 to 10 000. Each rule count is a group of three that take turns.
#include <cstdint>
#include <iterator>
#include <memory>
#include <random>

#include <fmt/format.h>

#include "claims.h"
#include "rig.h"
#include "support/packet_builder.h"

namespace cachewire::bench {

namespace {

constexpr unsigned kFlows = 4096;

std::string configuration(unsigned rules, bool sessions, bool memoize) {
    std::string text = fmt::format(R"(version: 1
pipeline: {{memoize: {}}}
ports:
  - {{name: west, device: "net_ring_west"}}
  - {{name: east, device: "net_ring_east"}}
tenants:
  - {{name: red, id: 10, match: [{{port: west}}, {{port: east}}], acl: edge, sessions: {}}}
interfaces:
  - {{name: lan, port: west, addresses: ["10.0.0.1/16"]}}
  - {{name: wan, port: east, addresses: ["192.0.2.1/24"]}}
neighbors:
  - {{tenant: red, address: 192.0.2.2, mac: "02:00:00:00:00:02"}}
routes:
  - {{tenant: red, prefix: 198.18.0.0/16, via: 192.0.2.2}}
sessions: {{capacity: 65536}}
acl:
  - name: edge
    stateful: {}
    rules:
)",
                                   memoize, sessions ? "track" : "none", sessions);
    std::minstd_rand random(rules);
    auto out = std::back_inserter(text);
    for (unsigned i = 0; i + 1 < rules; ++i) {
        const unsigned a = random() % 256, b = random() % 256, c = random() % 256, low = 1000 + random() % 60000;
        fmt::format_to(
            out, "      - {{action: deny, proto: {}, src: 10.{}.{}.0/24, dst: 198.{}.{}.0/24, dst_ports: {}-{}}}\n",
            i % 2 == 0 ? "tcp" : "udp", a % 4, b, 18 + a % 2, c, low, low + random() % 1000);
    }
    fmt::format_to(out, "      - {{action: permit, proto: udp, src: 10.0.0.0/16}}\n");
    return text;
}

std::vector<std::vector<std::uint8_t>> traffic() {
    std::vector<std::vector<std::uint8_t>> frames;
    for (unsigned i = 0; i < kFlows; ++i)
        frames.push_back(test::PacketBuilder()
                             .eth()
                             .ip4(fmt::format("10.0.{}.{}", 1 + i / 250, 1 + i % 250),
                                  fmt::format("198.18.{}.{}", i * 7 % 256, 1 + i % 250))
                             .udp(static_cast<std::uint16_t>(1024 + i), 53)
                             .payload(18)
                             .bytes());
    return frames;
}

// Cycles a packet of the stages that a hit skips, from the worker's own counters.
double policy_cycles(const Rig& rig) {
    double cycles = 0;
    for (const auto stage : {pipeline::StageId::acl, pipeline::StageId::route}) {
        const auto& c = rig.worker().stages[static_cast<unsigned>(stage)];
        cycles += static_cast<double>(c.cycles.read()) / static_cast<double>(c.packets.read());
    }
    return cycles;
}

}  // namespace

std::vector<Result> memo(const Options& options) {
    std::vector<Result> all;
    for (const unsigned rules : {10u, 100u, 1000u, 10000u}) {
        const std::string n = std::to_string(rules);
        Rig hit("hit" + n, configuration(rules, true, true), traffic());
        Rig slow("slow" + n, configuration(rules, true, false), traffic());
        Rig none("none" + n, configuration(rules, false, true), traffic());
        auto results = measure({{n + " rules, memoised", [&] { return hit.pipeline(); }},
                                {n + " rules, memoize: false", [&] { return slow.pipeline(); }},
                                {n + " rules, sessions: none", [&] { return none.pipeline(); }}},
                               options.quick ? 300 : options.pairs);
        print_table(fmt::format("memo: whole path, 64 B, {} rules", rules), results);
        const double with = policy_cycles(hit), without = policy_cycles(slow);
        fmt::print("policy part (acl and route stages): {:.1f} with the memo, {:.1f} without: {:.0f} % less\n", with,
                   without, 100 * (1 - with / without));
        all.insert(all.end(), results.begin(), results.end());
    }
    return all;
}

}  // namespace cachewire::bench
