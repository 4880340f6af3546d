// SPDX-License-Identifier: BSD-3-Clause
// What does it save to hand the descriptor over and not the mbuf's pointer alone? Two lcores, the shipped stages: one
// receives, parses and hands every packet over, the other takes it through sessions, list, routes and policers to the
// device. With pointers alone the owner has to parse again, from lines that the other lcore had last. Cycles are
// wall time over both, so the slower lcore counts.
//
// And the rings alone, one thread, 32 elements in and out: what a hand-off costs beside the packet's own work.
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <thread>

#include <fmt/format.h>
#include <pthread.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "base/clock.h"
#include "claims.h"
#include "config/load.h"
#include "control/handoff_mesh.h"
#include "control/snapshot_builder.h"
#include "control/workers.h"
#include "net/checksum.h"
#include "pipeline/forwarding.h"
#include "pipeline/tx_flush.h"
#include "port/port.h"
#include "support/packet_builder.h"
#include "support/ring_port.h"

namespace cachewire::bench {

namespace {

namespace stages = pipeline::stages;
using pipeline::WorkerState;

constexpr unsigned kFrames = 2048;  // a slice
constexpr unsigned kBurst = 32;

const char* const kConfig = R"(version: 1
ports: [{name: west, device: net_ring_west}, {name: east, device: net_ring_east}]
tenants: [{name: red, id: 10, match: [{port: west}, {port: east}], acl: edge}]
interfaces:
  - {name: lan, port: west, addresses: ["10.255.0.1/16"]}
  - {name: wan, port: east, addresses: ["192.0.2.1/24"]}
neighbors: [{tenant: red, address: 192.0.2.2, mac: "02:00:00:00:00:02"}]
routes: [{tenant: red, prefix: 198.18.0.0/16, via: 192.0.2.2}]
acl: [{name: edge, stateful: true, rules: [{action: permit, proto: udp}]}]
)";

void pin(unsigned cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

// Two workers and the way between them. The owner's thread turns while `running`.
class Pair {
  public:
    Pair(const std::string& name, bool pointers, unsigned sessions)
        : pointers_(pointers),
          sessions_(sessions),
          pool_(port::make_mempool("handoff_" + name, 4 * kFrames, 0, 2176, SOCKET_ID_ANY)),
          west_("hw_" + name, 2 * kFrames, pool_),
          east_("he_" + name, 2 * kFrames, pool_),
          builder_({{"west", {west_.id(), 1, test::kRouterMac}}, {"east", {east_.id(), 1, test::kRouterMac}}}, {},
                   SOCKET_ID_ANY) {
        const auto loaded = config::load_text(kConfig, "bench.yaml");
        if (!loaded.config) throw std::runtime_error(config::to_string(loaded.diagnostics.at(0)));
        auto pass = builder_.begin(*loaded.config, 1);
        builder_.complete(*pass);
        snapshot_ = builder_.commit(std::move(pass));
        builder_.grace_period_over();
        for (unsigned w = 0; w < 2; ++w) {
            workers_[w] = control::make_worker_state(rte_lcore_id(), w == 1 ? 2 * sessions : 16);
            workers_[w]->index = w;
        }
        // East's only queue is the owner's: port 1 of two workers.
        const control::PortQueues ports[] = {{*builder_.registry().ports.find("west"), west_.id(), 1, 1},
                                             {*builder_.registry().ports.find("east"), east_.id(), 1, 1}};
        WorkerState* states[] = {workers_[0].get(), workers_[1].get()};
        mesh_.connect(states, ports, pipeline::spread_owners(2));
        for (auto& worker : workers_) worker->handoff.owners.fill(1);
        workers_[0]->rx_queue = {ports[0].port, west_.id(), 0};
        mbufs_.resize(kFrames);
        if (rte_pktmbuf_alloc_bulk(pool_, mbufs_.data(), kFrames) != 0) throw std::runtime_error("not enough mbufs");
        frame_ = test::PacketBuilder().eth().ip4("10.0.0.0", "198.18.0.1").udp(1024, 53).payload(18).bytes();
        for (unsigned first = 0; first < sessions; first += kFrames) warm(first);
    }

    Slice slice() {
        refill([this] { return static_cast<unsigned>(random_() % sessions_); });
        return run();
    }
    void warm(unsigned first) {
        unsigned next = first;
        refill([&] { return next++ % sessions_; });
        while (sent_ < kFrames) {
            give();
            take();
        }
        collect();
    }

    void give() noexcept {
        WorkerState& worker = *workers_[0];
        worker.now_tsc = worker.last_tsc = base::now_tsc();
        pipeline::Front::run(worker, *snapshot_, worker.burst);
        if (!pointers_) {
            pipeline::hand_over_foreign(worker, *snapshot_, worker.burst);
            worker.handoff.publish();
            return;
        }
        for (const auto i : worker.burst.live()) ring_->push(worker.burst.lane(i).mbuf);
        ring_->publish();
    }
    void take() noexcept {
        WorkerState& worker = *workers_[1];
        if (pointers_) {
            take_pointers(worker);
        } else {
            pipeline::look_into_rings(worker);
            pipeline::take_handed(worker, *snapshot_);
        }
        sent_.store(sent_.load(std::memory_order_relaxed) + pipeline::flush_tx(worker, *snapshot_),
                    std::memory_order_release);
    }

  private:
    // As take_handed(), with what a pointer can offer: lines asked for ahead, then parsed.
    void take_pointers(WorkerState& worker) noexcept {
        using ParseAgain = pipeline::PipelineAfter<stages::Rx::kWrites, stages::Parse>;
        const unsigned count = std::min<unsigned>(ring_->ready(), pipeline::kMaxLanes);
        if (count == 0) return;
        std::array<rte_mbuf*, pipeline::kMaxLanes> mbufs;
        for (unsigned k = 0; k < count; ++k) {
            mbufs[k] = ring_->take();
            base::prefetch_write(mbufs[k]);
        }
        ring_->release();
        worker.burst.begin(count);
        const auto fresh = stages::Rx::fresh_lane(workers_[0]->rx_queue.port);
        for (unsigned k = 0; k < count; ++k) {
            stages::Rx::begin_lane(worker.burst.lane(static_cast<pipeline::Burst::LaneIndex>(k)), fresh, mbufs[k]);
            if (k < snapshot_->prefetch_header) base::prefetch_write(rte_pktmbuf_mtod(mbufs[k], const void*));
        }
        worker.now_tsc = worker.last_tsc = base::now_tsc();
        ParseAgain::run(worker, *snapshot_, worker.burst);
        pipeline::Back::run(worker, *snapshot_, worker.burst);
    }

    template <class Next>
    void refill(Next&& next) {
        for (rte_mbuf* mbuf : mbufs_) {
            const unsigned flow = next();
            frame_[27] = static_cast<std::uint8_t>(flow >> 16);  // source 10.x.y.z
            frame_[28] = static_cast<std::uint8_t>(flow >> 8);
            frame_[29] = static_cast<std::uint8_t>(flow);
            frame_[24] = frame_[25] = 0;
            const std::uint16_t sum = net::checksum({frame_.data() + 14, 20});
            std::memcpy(&frame_[24], &sum, 2);
            rte_pktmbuf_reset(mbuf);
            std::memcpy(rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(frame_.size())), frame_.data(),
                        frame_.size());
        }
        if (west_.offer(mbufs_) != kFrames) throw std::runtime_error("the ring did not take all frames");
        sent_ = 0;
    }
    Slice run() {
        const std::uint64_t begin = base::now_tsc();
        left_.store(false, std::memory_order_relaxed);
        running_.store(true, std::memory_order_release);
        // Never more on the way than the ring holds.
        for (unsigned given = 0; given < kFrames; given += kBurst) {
            while (given - sent_.load(std::memory_order_acquire) > pipeline::kHandoffSlots - kBurst) {
            }
            give();
        }
        while (sent_.load(std::memory_order_acquire) < kFrames) {
        }
        const std::uint64_t end = base::now_tsc();
        running_.store(false, std::memory_order_release);
        while (!left_.load(std::memory_order_acquire)) {
        }
        collect();
        return {end - begin, kFrames};
    }
    void collect() {
        if (const unsigned n = east_.collect(mbufs_); n != kFrames)
            throw std::runtime_error(fmt::format("{} of {} frames came out", n, kFrames));
    }

    bool pointers_;
    unsigned sessions_;
    rte_mempool* pool_;
    test::RingPort west_, east_;
    control::SnapshotBuilder builder_;
    std::unique_ptr<pipeline::Snapshot> snapshot_;
    control::HandoffMesh mesh_;
    std::array<std::unique_ptr<WorkerState>, 2> workers_;
    using PointerRing = base::SpscRing<rte_mbuf*, pipeline::kHandoffSlots>;
    std::unique_ptr<PointerRing> ring_ = std::make_unique<PointerRing>();
    std::vector<rte_mbuf*> mbufs_;
    test::Bytes frame_;
    std::minstd_rand random_{1};
    alignas(base::kCacheLine) std::atomic<unsigned> sent_{0};

  public:
    alignas(base::kCacheLine) std::atomic<bool> running_{false}, left_{false};
};

// The other lcore: turns whichever pair runs.
class Owner {
  public:
    explicit Owner(std::vector<Pair*> pairs)
        : pairs_(std::move(pairs)), thread_([this] {
              pin(1);
              while (!stop_.load(std::memory_order_relaxed))
                  for (Pair* pair : pairs_) {
                      while (pair->running_.load(std::memory_order_acquire)) pair->take();
                      pair->left_.store(true, std::memory_order_release);
                  }
          }) {}
    ~Owner() {
        stop_ = true;
        thread_.join();
    }

  private:
    std::vector<Pair*> pairs_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

template <class Put, class Take>
Slice in_and_out(Put&& put, Take&& take) {
    constexpr unsigned kRounds = 256;
    const std::uint64_t begin = base::now_tsc();
    for (unsigned round = 0; round < kRounds; ++round) {
        put();
        take();
    }
    return {base::now_tsc() - begin, std::uint64_t{kRounds} * kBurst};
}

Variant rte_ring_variant(const std::string& name, unsigned flags) {
    rte_ring* ring = rte_ring_create(name.c_str(), 1024, SOCKET_ID_ANY, flags);
    if (ring == nullptr) throw std::runtime_error("rte_ring_create " + name);
    return {name, [ring] {
                static std::array<void*, kBurst> objects{};
                return in_and_out([&] { rte_ring_enqueue_burst(ring, objects.data(), kBurst, nullptr); },
                                  [&] { rte_ring_dequeue_burst(ring, objects.data(), kBurst, nullptr); });
            }};
}

std::vector<Result> rings(unsigned pairs) {
    static auto pointers = std::make_unique<base::SpscRing<void*, 1024>>();
    static auto descriptors = std::make_unique<pipeline::HandoffRing>();
    static std::array<pipeline::Handed, kBurst> lanes{};
    static std::array<void*, kBurst> objects{};
    const std::vector<Variant> variants = {rte_ring_variant("rte_ring default", 0),
                                           rte_ring_variant("rte_ring one each", RING_F_SP_ENQ | RING_F_SC_DEQ),
                                           {"pointers",
                                            [] {
                                                return in_and_out(
                                                    [] {
                                                        for (void* object : objects) pointers->push(object);
                                                        pointers->publish();
                                                    },
                                                    [] {
                                                        const unsigned n = pointers->ready();
                                                        for (unsigned i = 0; i < n; ++i) objects[i] = pointers->take();
                                                        pointers->release();
                                                    });
                                            }},
                                           {"descriptors", [] {
                                                return in_and_out(
                                                    [] {
                                                        for (const auto& lane : lanes) *descriptors->claim() = lane;
                                                        descriptors->publish();
                                                    },
                                                    [] {
                                                        const unsigned n = descriptors->ready();
                                                        for (unsigned i = 0; i < n; ++i) lanes[i] = descriptors->take();
                                                        descriptors->release();
                                                    });
                                            }}};
    return measure(variants, pairs);
}

}  // namespace

std::vector<Result> handoff(const Options& options) {
    const unsigned pairs = options.quick ? 400 : options.pairs;
    std::vector<Result> all;
    if (std::thread::hardware_concurrency() < 2) {
        fmt::print("\nhandoff: one CPU, so nothing to measure between two\n");
    } else {
        pin(0);
        for (const unsigned sessions : {1000u, 1000000u}) {
            const std::string suffix = sessions == 1000 ? "1k" : "1M";
            Pair pointer("p" + suffix, true, sessions), descriptor("d" + suffix, false, sessions);
            const Owner owner({&pointer, &descriptor});
            const auto results = measure({{"pointer, " + suffix + " sessions", [&] { return pointer.slice(); }},
                                          {"descriptor, " + suffix + " sessions", [&] { return descriptor.slice(); }}},
                                         pairs);
            print_table("hand-off between two lcores, " + suffix + " sessions", results);
            all.insert(all.end(), results.begin(), results.end());
        }
    }
    const auto alone = rings(pairs);
    print_table("a ring alone, one thread, 32 in and 32 out", alone);
    all.insert(all.end(), alone.begin(), alone.end());
    return all;
}

}  // namespace cachewire::bench
