// SPDX-License-Identifier: BSD-3-Clause
// What does each step towards the cache buy? 100 tenants behind VLAN tags, a thousand flows each, 64 bytes, one worker:
//   A  naive: in-place parsing packet by packet, a shared table behind a lock, atomic counters, no prefetch (naive.h)
//   B  the shipped receive and parse stages into the descriptor, a linear pass over the header; the rest as in A
//   C  the shipped pipeline
// All three send the same bytes, which is checked first. One lcore, so A's and B's lock is never fought over.
#include <cstring>
#include <iterator>
#include <random>
#include <stdexcept>

#include <fmt/format.h>
#include <rte_mbuf.h>

#include "cachesim.h"
#include "claims.h"
#include "naive.h"
#include "rig.h"

namespace cachewire::bench {

namespace {

constexpr unsigned kTenants = 100;
constexpr unsigned kFlows = 1000 * kTenants;
constexpr unsigned kFrames = 2048;
constexpr std::uint16_t kFirstVlan = 101;
constexpr std::size_t kEvict = 4 << 20;

std::string configuration(unsigned prefetch_header) {
    std::string tenants, interfaces, neighbors, routes;
    for (unsigned i = 0; i < kTenants; ++i) {
        const unsigned vlan = kFirstVlan + i;
        fmt::format_to(std::back_inserter(tenants),
                       "  - {{name: t{0}, id: {0}, match: [{{port: west, vlan: {0}}}, {{port: east, vlan: {0}}}], acl: "
                       "edge, sessions: track}}\n",
                       vlan);
        fmt::format_to(std::back_inserter(interfaces),
                       "  - {{name: lan{0}, port: west, vlan: {0}, addresses: [\"10.0.0.1/8\"]}}\n"
                       "  - {{name: wan{0}, port: east, vlan: {0}, addresses: [\"192.0.2.1/24\"]}}\n",
                       vlan);
        fmt::format_to(std::back_inserter(neighbors),
                       "  - {{tenant: t{}, address: 192.0.2.2, mac: \"02:00:00:00:00:02\"}}\n", vlan);
        fmt::format_to(std::back_inserter(routes), "  - {{tenant: t{}, prefix: 198.18.0.0/16, via: 192.0.2.2}}\n",
                       vlan);
    }
    std::string rules;
    for (unsigned i = 0; i < 9; ++i)
        fmt::format_to(std::back_inserter(rules),
                       "      - {{action: deny, proto: tcp, dst: 203.0.113.{}/32, dst_ports: {}}}\n", i, 1000 + i);
    return fmt::format(R"(version: 1
pipeline: {{prefetch: {{header: {}}}}}
ports:
  - {{name: west, device: "net_ring_west"}}
  - {{name: east, device: "net_ring_east"}}
sessions: {{capacity: {}, timeouts: {{new: 6h, established_udp: 6h}}}}
tenants:
{}interfaces:
{}neighbors:
{}routes:
{}acl:
  - name: edge
    default: deny
    stateful: true
    rules:
{}      - {{action: permit, proto: udp, src: 10.0.0.0/8}}
)",
                       prefetch_header, 2 * kFlows, tenants, interfaces, neighbors, routes, rules);
}

// One variant's rig, its flows made.
class Arm {
  public:
    Arm(char which, unsigned prefetch_header)
        : which_(which),
          rig_(fmt::format("scenario{}", which), configuration(prefetch_header), udp_frames(kFrames, kFirstVlan),
               [this](Frames& frames) { choose(frames); }),
          naive_(fmt::format("naive{}", which), rig_.snapshot(), kFlows, rig_.west(), rig_.east()) {
        for (unsigned i = 0; i < kFlows; i += kFrames) slice();
        for (unsigned i = 0; i < kFrames; ++i) sent_.push_back(rig_.frame(i));
        in_order_ = false;
        rig_.evict(kEvict);
    }
    Arm(const Arm&) = delete;
    Arm& operator=(const Arm&) = delete;

    Slice slice() {
        if (which_ == 'A') return rig_.other([this] { naive_.in_place<false>(); });
        if (which_ == 'B') return rig_.other([this] { naive_.after_descriptor<false>(rig_.state(), rig_.queue()); });
        return rig_.pipeline();
    }
    Slice by_stage();
    [[nodiscard]] const Frames& sent() const noexcept { return sent_; }

  private:
    void choose(Frames& frames) {
        for (auto& frame : frames) {
            const unsigned id = in_order_ ? next_++ % kFlows : random_() % kFlows;
            set_flow(frame, id);
            set_vlan(frame, static_cast<std::uint16_t>(kFirstVlan + id % kTenants));
        }
    }
    char which_;
    unsigned next_ = 0;
    bool in_order_ = true;
    std::minstd_rand random_{7};
    Rig rig_;
    naive::Forwarder naive_;
    Frames sent_;  // of the last warm-up slice
};

// Their name is what callgrind collects under.
[[gnu::noinline]] void measured_by_stage_a(naive::Forwarder& naive) noexcept { naive.in_place<true>(); }
[[gnu::noinline]] void measured_by_stage_b(naive::Forwarder& naive, Rig& rig) noexcept {
    naive.after_descriptor<true>(rig.state(), rig.queue());
}

Slice Arm::by_stage() {
    if (which_ == 'A') return rig_.other([this] { measured_by_stage_a(naive_); });
    if (which_ == 'B') return rig_.other([this] { measured_by_stage_b(naive_, rig_); });
    return rig_.by_stage();
}

constexpr unsigned kPrefetchHeader = 8;

unsigned prefetch_of(char which) { return which == 'C' ? kPrefetchHeader : 0; }

const char* name_of(char which) {
    return which == 'A' ? "A naive" : which == 'B' ? "B descriptor, linear header" : "C shipped";
}

}  // namespace

std::vector<Result> scenarios(const Options& options) {
    if (options.only_slices != 0) {
        Arm arm(options.only_variant.empty() ? 'C' : options.only_variant[0], prefetch_of(options.only_variant[0]));
        for (unsigned i = 0; i < options.only_slices; ++i) arm.by_stage();
        return {};
    }
    Arm a('A', prefetch_of('A')), b('B', prefetch_of('B')), c('C', prefetch_of('C'));
    if (a.sent() != c.sent() || b.sent() != c.sent())
        throw std::runtime_error("scenarios: the variants do not send the same frames");
    std::vector<Result> results = {{.name = name_of('A')}, {.name = name_of('B')}, {.name = name_of('C')}};
    if (!options.cachesim_only) {
        results = measure({{results[0].name, [&] { return a.slice(); }},
                           {results[1].name, [&] { return b.slice(); }},
                           {results[2].name, [&] { return c.slice(); }}},
                          options.quick ? 1000 : options.pairs);
        print_table("scenarios: 100 tenants, 100 k flows, 64 B, frames in L3", results);
        fmt::print("C is {:.2f}x as fast as A, {:.2f}x as B\n", 1 / results[2].ratio,
                   results[1].cycles_per_packet / results[2].cycles_per_packet);
    }
    if (!options.cachesim) return results;
    for (unsigned i = 0; i < 3; ++i) {
        const char which = static_cast<char>('A' + i);
        results[i].stages = simulate("scenarios", std::string(1, which), 4, kFrames);
        print_costs(fmt::format("scenarios, {}", name_of(which)), results[i].stages);
    }
    return results;
}

}  // namespace cachewire::bench
