// SPDX-License-Identifier: BSD-3-Clause
// What does the whole path cost above receiving and sending? 64-byte UDP packets, every stage at work: session look-up,
// a stateful list of ten rules, a table of routes, a policer. Frames in flight: 4096, headers in L2. First 4096
// sessions, a packet each; then packets of sessions chosen uniformly from 1 k, 100 k and 1 M; and from 1 M while a
// thousand routes a second change.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <random>
#include <string>

#include <fmt/format.h>

#include "claims.h"
#include "control/route_feed.h"
#include "net/prefix.h"
#include "rig.h"
#include "traffic.h"

namespace cachewire::bench {

namespace {

constexpr unsigned kFlows = 4096;

// `quota`: of sessions, 0 for none.
std::string configuration(unsigned capacity, const std::string& pipeline = "", unsigned quota = 0) {
    std::string text = fmt::format("version: 1\npipeline: {{{}}}\n", pipeline) + R"(ports:
  - {name: west, device: "net_ring_west"}
  - {name: east, device: "net_ring_east"}
interfaces:
  - {name: lan, port: west, addresses: ["10.0.0.1/8"]}
  - {name: wan, port: east, addresses: ["192.0.2.1/24"]}
neighbors:
  - {tenant: red, address: 192.0.2.2, mac: "02:00:00:00:00:02"}
qos:
  policers: [{name: fat, type: single, rate: 1000Gbit, burst: 64MiB}]
tenants:
  - name: red
    id: 10
    match: [{port: west}, {port: east}]
    acl: edge
    policer: {in: fat}
    sessions: track
)";
    if (quota != 0) text += fmt::format("    quota: {{sessions: {}}}\n", quota);
    text += R"(acl:
  - name: edge
    default: deny
    stateful: true
    rules:
)";
    auto out = std::back_inserter(text);
    for (unsigned i = 0; i < 9; ++i)
        fmt::format_to(out, "      - {{action: deny, proto: tcp, dst: 203.0.113.{}/32, dst_ports: {}}}\n", i, 1000 + i);
    fmt::format_to(out, "      - {{action: permit, proto: udp, src: 10.0.0.0/8}}\nroutes:\n");
    for (unsigned i = 0; i < 256; ++i)
        fmt::format_to(out, "  - {{tenant: red, prefix: 198.18.{}.0/24, via: 192.0.2.2}}\n", i);
    // Nothing may end while the bench runs.
    fmt::format_to(out, "sessions: {{capacity: {}, timeouts: {{new: 6h, established_udp: 6h}}}}\n", capacity);
    return text;
}

// A rig whose `sessions` sessions exist already and are chosen from at random.
class RandomSessions {
  public:
    explicit RandomSessions(unsigned sessions, const std::string& name = "flows", const std::string& pipeline = "",
                            unsigned quota = 0)
        : sessions_(sessions),
          rig_(name + std::to_string(sessions), configuration(2 * sessions, pipeline, quota), udp_frames(kFlows),
               [this](Rig::Frames& frames) { choose(frames); }) {
        for (unsigned i = 0; i < sessions; i += kFlows) rig_.pipeline();
        in_order_ = false;
    }
    RandomSessions(const RandomSessions&) = delete;
    RandomSessions& operator=(const RandomSessions&) = delete;
    Slice pipeline() { return rig_.pipeline(); }
    Slice by_stage() { return rig_.by_stage(); }
    void evict(std::size_t bytes) { rig_.evict(bytes); }
    // From here on every packet begins a session, as many as there are to be, or is refused for the tenant's quota.
    void begin_anew() { in_order_ = true, next_ = sessions_, sessions_ = ~0u; }
    void be_refused() {
        begin_anew();
        rig_.expect_drops();
    }
    // At ten million packets a second a thousand changes a second, published twenty times a second, are fifty changes
    // in half a million packets.
    Slice pipeline_with_route_changes() {
        constexpr unsigned kSlices = 500000 / kFlows, kChanges = 50;
        if (slices_++ % kSlices == 0) change_routes(kChanges);
        return rig_.pipeline();
    }
    [[nodiscard]] std::uint64_t flushes() noexcept { return rig_.routes().stats().flushes; }
    [[nodiscard]] std::uint64_t stale() const noexcept { return rig_.worker().memo.stale.read(); }

  private:
    // Routes of the kind that the packets take, more specific ones of the same next hop, so that nothing is lost.
    void change_routes(unsigned count) {
        const auto tenant = *rig_.registry().tenants.find("red");
        const auto wan = *rig_.registry().interfaces.find("wan");
        const net::Address via = net::parse_address("192.0.2.2")->address;
        for (unsigned i = 0; i < count; ++i) {
            const net::Prefix prefix{net::Address::from_v4(0xc6120000 + (random_() % 4096) * 16), 28, net::Family::ip4};
            if (random_() % 2 == 0) {
                rig_.routes().set_route(control::RouteSource::kernel, tenant, prefix, {{wan, via, 1}});
            } else {
                rig_.routes().withdraw(control::RouteSource::kernel, tenant, prefix);
            }
        }
        rig_.routes().flush(now_ms_ += 1000 / control::RouteFeed::kFlushesPerSecond);
    }

    void choose(Rig::Frames& frames) {
        for (auto& frame : frames) set_flow(frame, in_order_ ? next_++ % sessions_ : random_() % sessions_);
    }
    unsigned sessions_, next_ = 0, slices_ = 0;
    std::uint64_t now_ms_ = 0;
    bool in_order_ = true;
    std::minstd_rand random_{7};
    Rig rig_;
};

// For the simulator. Frames wait in the last level, where refill() has left them.
constexpr const char* kSimulated[] = {"memo hit, 4096 sessions", "memo hit, 50 k sessions", "memoize: false",
                                      "new sessions", "over its quota"};
constexpr unsigned kSimulatedSlices = 4;

void run_simulated(const std::string& variant, unsigned slices) {
    const bool few = variant == kSimulated[0];
    const bool refused = variant == kSimulated[4];
    RandomSessions rig(few ? kFlows : 50000, "simulated", variant == kSimulated[2] ? "memoize: false" : "",
                       refused ? 50000 : 0);
    if (variant == kSimulated[3]) rig.begin_anew();
    if (refused) rig.be_refused();
    for (unsigned i = 0; i < slices; ++i) rig.by_stage();
}

std::vector<Result> simulate_all() {
    std::vector<Result> results;
    for (const char* variant : kSimulated) {
        results.push_back({.name = variant, .stages = simulate("flows", variant, kSimulatedSlices, kFlows)});
        print_costs(fmt::format("flows, {}", variant), results.back().stages);
    }
    return results;
}

// --sweep: the whole path by prefetch distances, 100 k sessions, frames in L3 as after DMA. Against what is built in.
std::vector<Result> sweep_distances(unsigned pairs) {
    constexpr std::size_t kEvict = 4 << 20;
    std::vector<std::string> distances = {"header: 8, session: auto"};
    for (const unsigned header : {0u, 2u, 4u, 16u, 32u})
        distances.push_back(fmt::format("header: {}, session: auto", header));
    for (const unsigned session : {4u, 8u, 16u, 24u})
        distances.push_back(fmt::format("header: 8, session: {}", session));
    std::vector<std::unique_ptr<RandomSessions>> rigs;
    std::vector<Variant> variants;
    for (const std::string& distance : distances) {
        rigs.push_back(std::make_unique<RandomSessions>(100000, fmt::format("sweep{}x", rigs.size()),
                                                        fmt::format("prefetch: {{{}}}", distance)));
        rigs.back()->evict(kEvict);
        variants.push_back({distance, [rig = rigs.back().get()] { return rig->pipeline(); }});
    }
    auto results = measure(variants, pairs);
    print_table("flows: whole path by prefetch distance, 100 k sessions, frames in L3", results);
    const Result& best = *std::min_element(results.begin(), results.end(),
                                           [](const Result& a, const Result& b) { return a.ratio < b.ratio; });
    fmt::print("best: {}; what is built in costs {:.3f} of it\n", best.name, 1 / best.ratio);
    return results;
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
    if (!options.only_variant.empty())
        return run_simulated(options.only_variant, options.only_slices), std::vector<Result>{};
    if (options.cachesim_only) return simulate_all();
    if (options.sweep) return sweep_distances(options.quick ? 300 : options.pairs);
    Rig rig("flows", configuration(65536), udp_frames(kFlows));
    if (options.only_slices != 0) {
        for (unsigned i = 0; i < options.only_slices; ++i) rig.pipeline();  // the first one makes the sessions
        fmt::print("{} packets through the pipeline\n", options.only_slices * kFlows);
        return {};
    }
    RandomSessions few(1000), many(100000), million(1000000), changing(1000000, "churn");
    auto results = measure({{"io loop", [&] { return rig.io(); }},
                            {"4096 sessions in turn", [&] { return rig.pipeline(); }},
                            {"1 k sessions, random", [&] { return few.pipeline(); }},
                            {"100 k sessions, random", [&] { return many.pipeline(); }},
                            {"1 M sessions, random", [&] { return million.pipeline(); }},
                            {"1 M, routes change", [&] { return changing.pipeline_with_route_changes(); }}},
                           options.quick ? 1000 : options.pairs);
    print_table("flows: whole path, 64 B, one worker", results);
    fmt::print("4096 sessions above the io loop: {:.1f} cycles a packet; 1 M against 1 k sessions: {:.2f}x\n",
               results[1].difference, results[4].cycles_per_packet / results[2].cycles_per_packet);
    fmt::print("1 M sessions while 1000 routes a second change: {:.2f}x; {} publications, {} packets looked up anew\n",
               results[5].cycles_per_packet / results[4].cycles_per_packet, changing.flushes(), changing.stale());
    print_stages(rig.worker());
    if (options.cachesim) {
        const auto simulated = simulate_all();
        results.insert(results.end(), simulated.begin(), simulated.end());
    }
    return results;
}

}  // namespace cachewire::bench
