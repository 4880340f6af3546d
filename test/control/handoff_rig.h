#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Several workers on two ring ports of one queue each, with the rings between them as they ship. Either each worker
// runs on a thread of its own, more threads than CPUs included, or the test turns them by hand, one iteration at a
// time.
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "config/load.h"
#include "control/bucket_mover.h"
#include "control/handoff_mesh.h"
#include "control/snapshot_builder.h"
#include "control/workers.h"
#include "port/port.h"
#include "support/catch.h"
#include "support/config_of.h"
#include "support/eal.h"
#include "support/mbuf.h"
#include "support/packet_builder.h"
#include "support/ring_port.h"

namespace cachewire::test {

inline constexpr net::Mac kEastMac{{2, 0, 0, 0, 0, 0xee}};

// 10.1/16 is behind west, 198.18/15 behind east; only west may begin.
inline std::string handoff_config(const std::string& more = "", const std::string& tenants = "") {
    return R"(version: 1
ports:
  - {name: west, device: "net_ring_w"}
  - {name: east, device: "net_ring_e"}
tenants:
  - {name: red, id: 1, match: [{port: west}, {port: east}], acl: edge}
)" + tenants +
           R"(
interfaces:
  - {name: lan, port: west, addresses: ["10.0.0.1/24"]}
  - {name: wan, port: east, addresses: ["192.0.2.1/24"]}
neighbors:
  - {tenant: red, address: 10.0.0.9, mac: "02:00:00:00:00:88"}
  - {tenant: red, address: 192.0.2.9, mac: "02:00:00:00:00:99"}
routes:
  - {tenant: red, prefix: 10.1.0.0/16, via: 10.0.0.9}
  - {tenant: red, prefix: 198.18.0.0/15, via: 192.0.2.9}
acl:
  - {name: edge, stateful: true, rules: [{action: permit, in: lan}]}
)" + more;
}

// Sessions of west's tenant leave by east's, so their replies come in by another tenant.
inline std::string leaking_config() {
    return R"(version: 1
ports: [{name: west, device: "net_ring_w"}, {name: east, device: "net_ring_e"}]
tenants:
  - {name: red, id: 1, match: [{port: west}], acl: edge}
  - {name: uplink, id: 2, match: [{port: east}], sessions: track, acl: shut}
interfaces:
  - {name: lan, port: west, addresses: ["10.0.0.1/24"]}
  - {name: wan, port: east, addresses: ["192.0.2.1/24"]}
neighbors:
  - {tenant: red, address: 10.0.0.9, mac: "02:00:00:00:00:88"}
  - {tenant: uplink, address: 192.0.2.9, mac: "02:00:00:00:00:99"}
routes:
  - {tenant: red, prefix: 10.1.0.0/16, via: 10.0.0.9}
  - {tenant: red, prefix: 198.18.0.0/15, via: {tenant: uplink, address: 192.0.2.9}}
acl:
  - {name: edge, stateful: true, rules: [{action: permit, in: lan}]}
  - {name: shut}
)";
}

class HandoffRig {
  public:
    explicit HandoffRig(unsigned workers, const std::string& config = handoff_config(), std::uint32_t sessions = 65536,
                        const net::HashSeed& seed = {})
        : pool_(shared_pool()),
          west(*shared_port(0)),
          east(*shared_port(1)),
          builder_({{"west", {west.id(), 1, kRouterMac}}, {"east", {east.id(), 1, kEastMac}}}, seed, -1),
          publisher_(workers) {
        publish(config);
        std::vector<control::PortQueues> ports;
        for (const char* name : {"west", "east"})
            ports.push_back({*builder_.registry().ports.find(name), name[0] == 'w' ? west.id() : east.id(), 1, 1});
        const auto quotas = std::make_shared<session::SharedQuotas>();
        auto queues = control::assign_queues(ports, workers);
        std::vector<pipeline::WorkerState*> states;
        for (unsigned w = 0; w < workers; ++w) {
            auto state = control::make_worker_state(rte_lcore_id(), sessions, quotas);
            state->index = w;
            builder_.rule_hits().add_worker(state->rules);
            states.push_back(state.get());
            workers_.push_back(
                std::make_unique<pipeline::Worker>(std::move(state), std::move(queues[w]), publisher_.add_worker()));
        }
        mesh_.connect(states, ports, pipeline::spread_owners(workers));
    }
    ~HandoffRig() {
        if (threads_.empty()) start();  // turned by hand: they see `stopped`, and drop what they hold
        stop();
        drain(west);
        drain(east);
    }

    void start() {
        for (auto& worker : workers_) threads_.emplace_back([&worker] { worker->run(); });
    }
    // As control::Workers ends them.
    void stop() {
        for (auto& worker : workers_) worker->set_phase(pipeline::Worker::Phase::stopped);
        for (auto& thread : threads_) thread.join();
        if (!threads_.empty())
            for (auto& worker : workers_) worker->drop_handed();
        threads_.clear();
    }
    [[nodiscard]] pthread_t thread(unsigned worker) { return threads_[worker].native_handle(); }
    // By hand: once, and not for those that run.
    void begin() {
        for (auto& worker : workers_) worker->begin();
    }
    void turn(unsigned worker) { workers_[worker]->iterate(); }

    void publish(const std::string& text) {
        const config::Config config = test::config_of(text);
        auto pass = builder_.begin(config, ++generation_);
        builder_.complete(*pass);
        publisher_.publish(builder_.commit(std::move(pass)), [this] { builder_.grace_period_over(); });
    }
    // Until no worker sees an older snapshot.
    void wait_grace() {
        while (publisher_.reap() != 0) std::this_thread::yield();
    }

    [[nodiscard]] const pipeline::WorkerState& state(unsigned worker) const { return workers_[worker]->state(); }
    [[nodiscard]] const std::vector<std::unique_ptr<pipeline::Worker>>& all() const { return workers_; }
    control::BucketMover& mover() { return mover_; }
    [[nodiscard]] unsigned workers() const { return static_cast<unsigned>(workers_.size()); }
    [[nodiscard]] pipeline::LedgerLine ledger() const {
        std::vector<pipeline::LedgerLine> lines;
        for (const auto& worker : workers_) lines.push_back(worker->state().published_ledger.read());
        return control::sum_of(lines);
    }
    [[nodiscard]] std::uint64_t drops(pipeline::DropReason reason) const {
        std::uint64_t n = 0;
        for (const auto& worker : workers_)
            for (const auto& tenant : worker->state().tenants) n += tenant.drops[static_cast<unsigned>(reason)].read();
        return n;
    }
    [[nodiscard]] std::uint64_t sessions() const {
        std::uint64_t n = 0;
        for (const auto& worker : workers_) n += worker->state().sessions->stats().active;
        return n;
    }
    // For a RouteFeed; not while publish() is called.
    control::SnapshotBuilder& builder() { return builder_; }
    control::Publisher& publisher() { return publisher_; }
    // What the workers have handed to the slow path, which is not here.
    void drop_punted() {
        for (auto& worker : workers_) {
            pipeline::PuntRing& ring = worker->punted();
            unsigned count = ring.ready();
            for (unsigned i = 0; i < count; ++i) rte_pktmbuf_free(ring.take().mbuf);
            if (count != 0) ring.release();
        }
    }
    [[nodiscard]] rte_mempool* pool() const { return pool_; }
    [[nodiscard]] unsigned mbufs_out() const { return rte_mempool_in_use_count(pool_); }

    void send(RingPort& port, const Bytes& frame) {
        rte_mbuf* mbuf = make_mbuf(frame, pool_).release();
        REQUIRE(port.offer({&mbuf, 1}) == 1);
    }
    // All frames in, at most `window` on their way at a time, so that no ring runs over; what came out at `to`. Gives
    // up when nothing moves for ten seconds. `between`: called after every window.
    template <class Between>
    std::vector<Bytes> exchange(RingPort& from, RingPort& to, const std::vector<Bytes>& frames, Between&& between,
                                unsigned window = 128) {
        std::vector<Bytes> out;
        std::size_t sent = 0;
        auto last = std::chrono::steady_clock::now();
        while (out.size() < frames.size()) {
            for (; sent < frames.size() && sent - out.size() < window; ++sent) send(from, frames[sent]);
            const std::size_t before = out.size();
            collect(to, out);
            const auto now = std::chrono::steady_clock::now();
            if (out.size() != before) {
                last = now;
                between();
            } else {
                if (now - last > std::chrono::seconds(10)) break;
                std::this_thread::yield();
            }
        }
        return out;
    }
    std::vector<Bytes> exchange(RingPort& from, RingPort& to, const std::vector<Bytes>& frames) {
        return exchange(from, to, frames, [] {});
    }
    static void collect(RingPort& port, std::vector<Bytes>& out) {
        rte_mbuf* mbuf = nullptr;
        while (port.collect({&mbuf, 1}) == 1) {
            out.push_back(bytes_of(mbuf));
            rte_pktmbuf_free(mbuf);
        }
    }

  private:
    static rte_mempool* shared_pool() {
        ensure_eal();
        static rte_mempool* const p = port::make_mempool("handoff_test", 16383, 0, 2176, -1);
        return p;
    }
    static RingPort* shared_port(unsigned n) {
        static RingPort w("handoff_west", 8192, shared_pool()), e("handoff_east", 8192, shared_pool());
        return n == 0 ? &w : &e;
    }
    static void drain(RingPort& port) {
        std::vector<Bytes> rest;
        collect(port, rest);
        void* mbuf = nullptr;
        while (rte_ring_dequeue(port.rx(), &mbuf) == 0) rte_pktmbuf_free(static_cast<rte_mbuf*>(mbuf));
    }

    rte_mempool* pool_;

  public:
    RingPort &west, &east;

  private:
    control::SnapshotBuilder builder_;
    control::Publisher publisher_;
    control::HandoffMesh mesh_;  // outlives the workers
    std::vector<std::unique_ptr<pipeline::Worker>> workers_;
    control::BucketMover mover_{workers_, publisher_};  // as in the program, gone when the workers have ended
    std::vector<std::thread> threads_;
    std::uint64_t generation_ = 0;
};

}  // namespace cachewire::test
