// SPDX-License-Identifier: BSD-3-Clause
// What did the descriptor replace? The shipped pipeline with `metadata: session` against `metadata: mbuf_dynfield`: the
// same stages, once more instantiated, with per-packet metadata in the mbuf's second line, statistics in the session's
// second line and nothing of the session fetched ahead (pipeline/mbuf_layout.h says what is and isn't in there).
// 64-byte packets of sessions chosen uniformly, 1 k to 4 M of them. Frames wait in L2, as RX leaves them that has just
// been busy with them, or in L3, as after DMA. Last with `memoize: false`, so that every packet asks the list.
#include <algorithm>
#include <iterator>
#include <memory>
#include <random>
#include <stdexcept>

#include <fmt/format.h>

#include "cachesim.h"
#include "claims.h"
#include "rig.h"

namespace cachewire::bench {

namespace {

constexpr unsigned kFrames = 2048;       // 384 KiB of mbuf lines and headers
constexpr std::size_t kEvict = 4 << 20;  // over any L2
constexpr unsigned kSimulatedSessions = 100000;

struct Case {
    unsigned sessions;
    unsigned rules;
    bool memoize;
};

std::string configuration(const Case& c, const std::string& metadata) {
    std::string text = fmt::format(R"(version: 1
pipeline: {{metadata: {}, memoize: {}}}
ports:
  - {{name: west, device: "net_ring_west"}}
  - {{name: east, device: "net_ring_east"}}
tenants:
  - {{name: red, id: 10, match: [{{port: west}}, {{port: east}}], acl: edge, policer: {{in: fat}}, sessions: track}}
interfaces:
  - {{name: lan, port: west, addresses: ["10.0.0.1/8"]}}
  - {{name: wan, port: east, addresses: ["192.0.2.1/24"]}}
neighbors:
  - {{tenant: red, address: 192.0.2.2, mac: "02:00:00:00:00:02"}}
qos:
  policers: [{{name: fat, type: single, rate: 1000Gbit, burst: 64MiB}}]
sessions: {{capacity: {}, timeouts: {{new: 6h, established_udp: 6h}}}}
acl:
  - name: edge
    default: deny
    stateful: true
    rules:
)",
                                   metadata, c.memoize, 2 * c.sessions);
    auto out = std::back_inserter(text);
    std::minstd_rand random(c.rules);
    for (unsigned i = 0; i + 1 < c.rules; ++i) {
        const unsigned low = 1000 + random() % 60000;
        fmt::format_to(
            out, "      - {{action: deny, proto: {}, src: 10.{}.{}.0/24, dst: 198.{}.{}.0/24, dst_ports: {}-{}}}\n",
            i % 2 == 0 ? "tcp" : "udp", random() % 4, random() % 256, 18 + random() % 2, random() % 256, low,
            low + random() % 1000);
    }
    fmt::format_to(out, "      - {{action: permit, proto: udp, src: 10.0.0.0/8}}\nroutes:\n");
    for (unsigned i = 0; i < 256; ++i)
        fmt::format_to(out, "  - {{tenant: red, prefix: 198.18.{}.0/24, via: 192.0.2.2}}\n", i);
    return text;
}

// One layout with its sessions made.
class Arm {
  public:
    Arm(const Case& c, const std::string& metadata)
        : sessions_(c.sessions),
          rig_(fmt::format("{}{}{}", metadata.substr(0, 1), c.sessions, c.memoize ? "" : std::to_string(c.rules)),
               configuration(c, metadata), udp_frames(kFrames), [this](Frames& frames) { choose(frames); }) {
        for (unsigned i = 0; i < sessions_; i += kFrames) rig_.pipeline();
        in_order_ = false;
    }
    Arm(const Arm&) = delete;
    Arm& operator=(const Arm&) = delete;
    Rig& rig() { return rig_; }

  private:
    void choose(Frames& frames) {
        for (auto& frame : frames) set_flow(frame, in_order_ ? next_++ % sessions_ : random_() % sessions_);
    }
    unsigned sessions_, next_ = 0;
    bool in_order_ = true;
    std::minstd_rand random_{7};
    Rig rig_;
};

std::vector<Result> compare(const Case& c, unsigned pairs) {
    Arm session(c, "session"), mbuf(c, "mbuf_dynfield");
    std::vector<Result> all;
    for (const bool evicted : {false, true}) {
        session.rig().evict(evicted ? kEvict : 0);
        mbuf.rig().evict(evicted ? kEvict : 0);
        const std::string name =
            fmt::format("{} sessions, {}{}", c.sessions,
                        c.memoize ? "" : fmt::format("{} rules each packet, ", c.rules), evicted ? "L3" : "L2");
        const auto results = measure({{name + ", session", [&] { return session.rig().pipeline(); }},
                                      {name + ", mbuf_dynfield", [&] { return mbuf.rig().pipeline(); }}},
                                     pairs);
        print_table("layout: " + name, results);
        all.insert(all.end(), results.begin(), results.end());
    }
    return all;
}

// Beside the results that they belong to, or alone.
std::vector<Result> simulated(std::vector<Result> all) {
    for (const char* metadata : {"session", "mbuf_dynfield"}) {
        constexpr unsigned kSlices = 4;
        const std::string name = fmt::format("{} sessions, L3, {}", kSimulatedSessions, metadata);
        const auto costs = simulate("layout", metadata, kSlices, kFrames);
        print_costs("layout, " + name, costs);
        const auto found = std::find_if(all.begin(), all.end(), [&](const Result& r) { return r.name == name; });
        if (found != all.end()) {
            found->stages = costs;
        } else {
            all.push_back({.name = name, .stages = costs});
        }
    }
    return all;
}

}  // namespace

std::vector<Result> layout(const Options& options) {
    if (options.only_slices != 0) {
        Arm arm({kSimulatedSessions, 10, true}, options.only_variant);
        arm.rig().evict(kEvict);
        for (unsigned i = 0; i < options.only_slices; ++i) arm.rig().by_stage();
        return {};
    }
    const unsigned pairs = options.quick ? 500 : options.pairs;
    std::vector<Result> all;
    if (options.cachesim_only) return simulated(all);
    for (const Case& c : {Case{1000, 10, true}, Case{100000, 10, true}, Case{1000000, 10, true},
                          Case{4000000, 10, true}, Case{100000, 10, false}, Case{100000, 10000, false}}) {
        const auto results = compare(c, pairs);
        all.insert(all.end(), results.begin(), results.end());
    }
    return options.cachesim ? simulated(all) : all;
}

}  // namespace cachewire::bench
