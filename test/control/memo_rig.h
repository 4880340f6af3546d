#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Frames through the whole path of one worker, burst by burst, and what became of each: the reason it was dropped for,
// or its egress port and its bytes. Snapshots come from the real builder; there is no device and no thread, and the
// clock is the test's. Two runners given the same frames can be compared packet by packet.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "base/clock.h"
#include "config/load.h"
#include "control/snapshot_builder.h"
#include "control/workers.h"
#include "pipeline/expiry.h"
#include "pipeline/forwarding.h"
#include "support/config_of.h"
#include "support/eal.h"
#include "support/mbuf.h"
#include "support/packet_builder.h"

namespace cachewire::test {

// Of the two ports that most configurations here have.
inline constexpr net::Mac kInside{{2, 0, 0, 0, 0, 1}}, kOutside{{2, 0, 0, 0, 0, 2}};

// One tenant between them, with a list `edge` and a host on either side, in both families. `more` goes behind the
// tenant.
inline std::string two_sides(const std::string& more = "") {
    return R"(version: 1
ports:
  - {name: inside, device: "net_null0"}
  - {name: outside, device: "net_null1"}
tenants:
  - {name: red, id: 1, match: [{port: inside}, {port: outside}], acl: edge)" +
           more + R"(}
interfaces:
  - {name: lan, port: inside, addresses: ["10.0.0.1/24", "2001:db8:a::1/64"]}
  - {name: wan, port: outside, addresses: ["10.0.1.1/24", "2001:db8:b::1/64"]}
neighbors:
  - {tenant: red, address: 10.0.0.9, mac: "02:00:00:00:00:09"}
  - {tenant: red, address: 10.0.1.9, mac: "02:00:00:00:00:19"}
  - {tenant: red, address: "2001:db8:a::9", mac: "02:00:00:00:00:09"}
  - {tenant: red, address: "2001:db8:b::9", mac: "02:00:00:00:00:19"}
)";
}

struct Arrival {
    std::uint16_t port = 0;  // index in the snapshot
    Bytes frame{};
};

class Runner {
  public:
    explicit Runner(std::uint32_t capacity = 4096) {
        ensure_eal();
        worker = control::make_worker_state(rte_lcore_id(), capacity);
        worker->now_tsc = 1000 * base::tsc_hz();
    }

    // One burst.
    std::vector<std::string> run(const pipeline::Snapshot& snapshot, const std::vector<Arrival>& arrivals) {
        pipeline::Burst& burst = worker->burst;
        burst.begin(static_cast<unsigned>(arrivals.size()));
        std::vector<rte_mbuf*> mbufs;
        for (unsigned i = 0; i < arrivals.size(); ++i) {
            mbufs.push_back(make_mbuf(arrivals[i].frame).release());
            pipeline::stages::Rx::begin_lane(burst.lane(static_cast<pipeline::Burst::LaneIndex>(i)),
                                             pipeline::stages::Rx::fresh_lane(arrivals[i].port), mbufs[i]);
        }
        namespace stages = pipeline::stages;
        pass<stages::Parse, stages::Session, stages::Acl, stages::Route, stages::Install, stages::Qos, stages::Tx>(
            snapshot);
        // There is no slow path here: what it would take is dropped for the same reason.
        for (const auto& punted : burst.punted()) burst.drop(punted.lane, punted.drop);
        burst.clear_punted();
        std::vector<std::string> fates(arrivals.size());
        for (const auto& dropped : burst.dropped())
            fates[dropped.lane] +=
                pipeline::kDropReasonTexts[static_cast<unsigned>(dropped.reason)].name;  // twice shows as two names
        for (unsigned i = 0; i < arrivals.size(); ++i) {
            if (!fates[i].empty()) continue;
            const auto hop = burst.lane(static_cast<pipeline::Burst::LaneIndex>(i)).next_hop;
            fates[i] = fmt::format("to {}:", snapshot.next_hops[hop].port);
            for (const std::uint8_t byte : bytes_of(mbufs[i])) fates[i] += fmt::format(" {:02x}", byte);
        }
        stages::Drop::process(*worker, burst);
        for (auto& buffer : worker->tx) buffer.discard();
        return fates;
    }
    std::string run_one(const pipeline::Snapshot& snapshot, const Arrival& arrival) {
        return run(snapshot, {arrival})[0];
    }

    void advance(const pipeline::Snapshot& snapshot, double seconds, unsigned entries = 100000) {
        worker->now_tsc += static_cast<std::uint64_t>(seconds * static_cast<double>(base::tsc_hz()));
        pipeline::expire_sessions(*worker, snapshot, worker->now_tsc, entries);
    }

    // Of a rule by its number, those that sessions have counted included.
    std::uint64_t rule_hits(std::uint32_t rule) {
        session::Table& sessions = *worker->sessions;
        for (std::uint32_t i = 0; i < sessions.used_end(); ++i)
            if (sessions.hot(i).state() != session::State::free) sessions.flush(i);
        return worker->rules.hits(rule).packets.read();
    }

    std::unique_ptr<pipeline::WorkerState> worker;

  private:
    template <class... Stages>
    void pass(const pipeline::Snapshot& snapshot) {
        (Stages::process(*worker, snapshot, worker->burst), ...);
    }
};

// Text to snapshot, reload after reload.
class Builder {
  public:
    explicit Builder(std::map<std::string, control::PortInfo> ports) : builder_(std::move(ports), {}, -1) {
        ensure_eal();
    }
    std::unique_ptr<pipeline::Snapshot> build(const std::string& text) { return build(test::config_of(text)); }
    std::unique_ptr<pipeline::Snapshot> build(const config::Config& config) {
        auto pass = builder_.begin(config, ++generation_);
        builder_.complete(*pass);
        auto snapshot = builder_.commit(std::move(pass));
        builder_.grace_period_over();
        return snapshot;
    }
    // Before the first build: that runner's hits by rule are counted.
    void count_hits_of(Runner& runner) { builder_.rule_hits().add_worker(runner.worker->rules); }
    [[nodiscard]] const control::Registry& registry() const { return builder_.registry(); }
    [[nodiscard]] std::uint16_t port(const std::string& name) const { return *registry().ports.find(name); }
    [[nodiscard]] std::uint16_t tenant(const std::string& name) const { return *registry().tenants.find(name); }

  private:
    control::SnapshotBuilder builder_;
    std::uint64_t generation_ = 0;
};

}  // namespace cachewire::test
