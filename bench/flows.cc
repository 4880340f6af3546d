// SPDX-License-Identifier: BSD-3-Clause
// What does the whole path cost above receiving and sending? 64-byte UDP packets of 4096 sessions, every stage at work:
// session look-up, a stateful list of ten rules, a table of routes, a policer. Frames in flight: 4096, headers in L2.
#include <array>
#include <cstdint>
#include <iterator>

#include <fmt/format.h>

#include "claims.h"
#include "rig.h"
#include "support/packet_builder.h"

namespace cachewire::bench {

namespace {

constexpr unsigned kFlows = 4096;

std::string configuration() {
    std::string text = R"(version: 1
ports:
  - {name: west, device: "net_ring_west"}
  - {name: east, device: "net_ring_east"}
tenants:
  - {name: red, id: 10, match: [{port: west}, {port: east}], acl: edge, policer: {in: fat}, sessions: track}
interfaces:
  - {name: lan, port: west, addresses: ["10.0.0.1/16"]}
  - {name: wan, port: east, addresses: ["192.0.2.1/24"]}
neighbors:
  - {tenant: red, address: 192.0.2.2, mac: "02:00:00:00:00:02"}
sessions: {capacity: 65536}
qos:
  policers: [{name: fat, type: single, rate: 1000Gbit, burst: 64MiB}]
acl:
  - name: edge
    default: deny
    stateful: true
    rules:
)";
    auto out = std::back_inserter(text);
    for (unsigned i = 0; i < 9; ++i)
        fmt::format_to(out, "      - {{action: deny, proto: tcp, dst: 203.0.113.{}/32, dst_ports: {}}}\n", i, 1000 + i);
    fmt::format_to(out, "      - {{action: permit, proto: udp, src: 10.0.0.0/16}}\nroutes:\n");
    for (unsigned i = 0; i < 256; ++i)
        fmt::format_to(out, "  - {{tenant: red, prefix: 198.18.{}.0/24, via: 192.0.2.2}}\n", i);
    return text;
}

std::vector<std::vector<std::uint8_t>> traffic() {
    std::vector<std::vector<std::uint8_t>> frames;
    for (unsigned i = 0; i < kFlows; ++i) {
        const std::string src = fmt::format("10.0.{}.{}", 1 + i / 250 % 250, 1 + i % 250);
        const std::string dst = fmt::format("198.18.{}.{}", i * 7 % 256, 1 + i % 250);
        frames.push_back(test::PacketBuilder()
                             .eth()
                             .ip4(src, dst)
                             .udp(static_cast<std::uint16_t>(1024 + i), 53)
                             .payload(18)
                             .bytes());
    }
    return frames;
}

void print_stages(const pipeline::WorkerState& worker) {
    fmt::print("\nstage      cycles/packet  packets/burst   (mean, the two readings of the TSC included)\n");
    for (std::size_t i = 0; i < pipeline::kStages; ++i) {
        const auto& c = worker.stages[i];
        if (c.packets.read() == 0) continue;
        const auto packets = static_cast<double>(c.packets.read());
        fmt::print("{:<10} {:>13.1f} {:>14.1f}\n", pipeline::kStageNames[i],
                   static_cast<double>(c.cycles.read()) / packets, packets / static_cast<double>(c.bursts.read()));
    }
}

}  // namespace

std::vector<Result> flows(const Options& options) {
    Rig rig("flows", configuration(), traffic());
    if (options.only_slices != 0) {
        rig.pipeline();  // sessions are made here, not counted: callgrind toggles on Rig::pipeline after the first
        for (unsigned i = 0; i < options.only_slices; ++i) rig.pipeline();
        fmt::print("{} packets through the pipeline\n", (options.only_slices + 1) * kFlows);
        return {};
    }
    const auto results =
        measure({{"io loop", [&rig] { return rig.io(); }}, {"whole path", [&rig] { return rig.pipeline(); }}},
                options.quick ? 1000 : options.pairs);
    print_table("flows: 64 B, 4096 sessions, one worker", results);
    fmt::print("whole path above the io loop: {:.1f} cycles a packet\n", results[1].difference);
    print_stages(rig.worker());
    return results;
}

}  // namespace cachewire::bench
