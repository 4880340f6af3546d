// SPDX-License-Identifier: BSD-3-Clause
// The whole path as workers run it: ring ports, a real snapshot, a worker thread.
#include "pipeline/worker.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "config/load.h"
#include "control/snapshot_builder.h"
#include "control/workers.h"
#include "port/port.h"
#include "support/catch.h"
#include "support/config_of.h"
#include "support/eal.h"
#include "support/mbuf.h"
#include "support/packet_builder.h"
#include "support/ring_port.h"

namespace cachewire {
namespace {

const char* const kTwoPorts = R"(version: 1
ports:
  - {name: west, device: "net_ring_w"}
  - {name: east, device: "net_ring_e"}
tenants:
  - {name: red, id: 1, match: [{port: west}, {port: east}], acl: edge}
interfaces:
  - {name: lan, port: west, addresses: ["10.0.0.1/24", "2001:db8:1::1/64"]}
  - {name: wan, port: east, addresses: ["192.0.2.1/24", "2001:db8:2::1/64"]}
neighbors:
  - {tenant: red, address: 192.0.2.9, mac: "02:00:00:00:00:99"}
  - {tenant: red, address: 10.0.0.9, mac: "02:00:00:00:00:88"}
  - {tenant: red, address: "2001:db8:2::9", mac: "02:00:00:00:00:99"}
sessions: {capacity: 4096}
acl:
  - {name: edge, stateful: true, rules: [{action: deny, fragment: any}, {action: permit, in: lan}]}
)";

constexpr net::Mac kEastMac{{2, 0, 0, 0, 0, 0xee}};
constexpr net::Mac kServerMac{{2, 0, 0, 0, 0, 0x99}};
constexpr net::Mac kClientMac{{2, 0, 0, 0, 0, 0x88}};

struct Bench {
    explicit Bench(bool run = true)
        : pool(shared_pool()),
          west(*shared_port("west")),
          east(*shared_port("east")),
          builder({{"west", {west.id(), 1, test::kRouterMac}}, {"east", {east.id(), 1, kEastMac}}}, {}, -1),
          publisher(1) {
        config = test::config_of(kTwoPorts);
        auto pass = builder.begin(config, 1);
        builder.complete(*pass);
        publisher.publish(builder.commit(std::move(pass)));
        const auto index = [&](const char* name) { return *builder.registry().ports.find(name); };
        worker = std::make_unique<pipeline::Worker>(
            control::make_worker_state(rte_lcore_id(), 4096),
            std::vector<pipeline::RxQueue>{{index("west"), west.id(), 0}, {index("east"), east.id(), 0}},
            publisher.add_worker());
        if (run) thread = std::thread([this] { worker->run(); });
    }
    ~Bench() { stop(); }

    void stop() {
        if (!thread.joinable()) return;
        worker->set_phase(pipeline::Worker::Phase::stopped);
        thread.join();
    }
    static rte_mempool* shared_pool() {
        test::ensure_eal();
        static rte_mempool* const p = port::make_mempool("worker_test", 8191, 0, 2176, -1);
        return p;
    }
    static test::RingPort* shared_port(const std::string& name) {
        static test::RingPort w("worker_west", 1024, shared_pool()), e("worker_east", 1024, shared_pool());
        return name == "west" ? &w : &e;
    }
    void send(test::RingPort& port, const test::Bytes& frame) {
        rte_mbuf* mbuf = test::make_mbuf(frame, pool).release();
        REQUIRE(port.offer({&mbuf, 1}) == 1);
    }
    // One iteration, run here; how many packets it received.
    std::uint64_t iterate() {
        const std::uint64_t before = worker->state().ledger.rx;
        worker->iterate();
        return worker->state().ledger.rx - before;
    }
    // Waits until the worker has seen `n` packets in all.
    void wait_rx(std::uint64_t n) {
        for (int i = 0; i < 5000 && worker->state().published_ledger.read().rx < n; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        REQUIRE(worker->state().published_ledger.read().rx == n);
    }
    std::vector<test::Bytes> received(test::RingPort& port) {
        std::vector<test::Bytes> frames;
        rte_mbuf* mbuf = nullptr;
        while (port.collect({&mbuf, 1}) == 1) {
            frames.push_back(test::bytes_of(mbuf));
            rte_pktmbuf_free(mbuf);
        }
        return frames;
    }

    rte_mempool* pool;
    test::RingPort &west, &east;
    control::SnapshotBuilder builder;
    control::Publisher publisher;
    config::Config config;
    std::unique_ptr<pipeline::Worker> worker;
    std::thread thread;
};

TEST_CASE("worker: a flooded queue gives way to others that have packets, and to nobody else", "[worker]") {
    Bench bench(false);
    bench.worker->begin();
    const test::Bytes refused =
        test::PacketBuilder().eth({{2, 9, 9, 9, 9, 9}}).ip4("10.0.0.9", "192.0.2.9").udp(1, 2).payload(18).bytes();
    const auto flood = [&](unsigned iterations, bool other) {
        std::uint64_t last = 0;
        for (unsigned i = 0; i < iterations; ++i) {
            for (unsigned k = 0; k < 64; ++k) bench.send(bench.west, refused);
            if (other) bench.send(bench.east, refused);
            last = bench.iterate();
            while (bench.iterate() != 0) {
            }
        }
        return last;
    };
    CHECK(flood(10, false) == 32);
    CHECK(flood(10, true) == pipeline::QueueShare::kLeast + 1);
    CHECK(flood(1, false) == pipeline::QueueShare::kLeast);  // the other may come back any moment
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    flood(1, false);
    CHECK(flood(1, false) == 32);
    bench.worker->set_phase(pipeline::Worker::Phase::stopped);
    bench.worker->run();
}

TEST_CASE("worker: a packet and its reply cross with new MACs and one hop less", "[worker]") {
    Bench bench;
    bench.send(bench.west, test::PacketBuilder().eth().ip4("10.0.0.9", "192.0.2.9").udp(1000, 53).payload(30).bytes());
    bench.wait_rx(1);
    const auto out = bench.received(bench.east);
    REQUIRE(out.size() == 1);
    test::Ip4Fields less;
    less.ttl = 63;
    CHECK(out[0] == test::PacketBuilder()
                        .eth(kServerMac, kEastMac)
                        .ip4("10.0.0.9", "192.0.2.9", less)
                        .udp(1000, 53)
                        .payload(30)
                        .bytes());

    bench.send(bench.east,
               test::PacketBuilder().eth(kEastMac).ip4("192.0.2.9", "10.0.0.9").udp(53, 1000).payload(30).bytes());
    bench.wait_rx(2);
    const auto reply = bench.received(bench.west);
    REQUIRE(reply.size() == 1);
    CHECK(reply[0] == test::PacketBuilder()
                          .eth(kClientMac, test::kRouterMac)
                          .ip4("192.0.2.9", "10.0.0.9", less)
                          .udp(53, 1000)
                          .payload(30)
                          .bytes());
}

TEST_CASE("worker: IPv6 crosses the same way", "[worker]") {
    Bench bench;
    bench.send(bench.west,
               test::PacketBuilder().eth().ip6("2001:db8:1::9", "2001:db8:2::9").udp(1000, 53).payload(30).bytes());
    bench.wait_rx(1);
    const auto out = bench.received(bench.east);
    REQUIRE(out.size() == 1);
    test::Ip6Fields less;
    less.hop_limit = 63;
    CHECK(out[0] == test::PacketBuilder()
                        .eth(kServerMac, kEastMac)
                        .ip6("2001:db8:1::9", "2001:db8:2::9", less)
                        .udp(1000, 53)
                        .payload(30)
                        .bytes());
}

TEST_CASE("worker: what the list denies from outside is dropped by name", "[worker]") {
    Bench bench;
    bench.send(bench.east, test::PacketBuilder().eth(kEastMac).ip4("192.0.2.9", "10.0.0.9").udp(53, 1000).bytes());
    bench.wait_rx(1);
    bench.stop();
    CHECK(bench.received(bench.west).empty());
    const auto slot = *bench.builder.registry().tenants.find("red");
    CHECK(bench.worker->state().tenants[slot].drops[static_cast<unsigned>(pipeline::DropReason::acl_default)].read() ==
          1);
}

TEST_CASE("worker: a rule for fragments meets the first piece and the later ones", "[worker]") {
    Bench bench;
    for (const std::uint16_t word : {0x2000, 0x2002, 0x0004}) {  // more to come; more, offset 16; offset 32
        test::Ip4Fields piece;
        piece.fragment = word;
        bench.send(bench.west, test::PacketBuilder()
                                   .eth()
                                   .ip4("10.0.0.9", "192.0.2.9", piece)
                                   .udp(1000, 53, {4000, {}})
                                   .payload(8)
                                   .bytes());
    }
    bench.wait_rx(3);
    bench.stop();
    const auto slot = *bench.builder.registry().tenants.find("red");
    CHECK(bench.worker->state().tenants[slot].drops[static_cast<unsigned>(pipeline::DropReason::acl_deny)].read() == 3);
}

TEST_CASE("worker: every stage counts a packet once", "[worker]") {
    Bench bench;
    bench.send(bench.west, test::PacketBuilder().eth().ip4("10.0.0.9", "192.0.2.9").udp(1000, 53).bytes());
    bench.wait_rx(1);
    bench.stop();
    using pipeline::StageId;
    for (const StageId stage :
         {StageId::rx, StageId::parse, StageId::session, StageId::acl, StageId::route, StageId::qos, StageId::tx}) {
        INFO(pipeline::kStageNames[static_cast<unsigned>(stage)]);
        const auto& counters = bench.worker->state().stages[static_cast<unsigned>(stage)];
        CHECK(counters.packets.read() == 1);
        CHECK(counters.bursts.read() == 1);
    }
    bench.received(bench.east);
}

// The first queue's read takes longer than a tick of the sessions' clock, so the second one's packets are later than
// the iteration's begin.
TEST_CASE("worker: a session that was touched within a long iteration does not look idle at its end", "[worker]") {
    struct Pause {
        std::atomic<bool> wanted{false}, begun{false};
        static std::uint16_t read(std::uint16_t, std::uint16_t, rte_mbuf**, std::uint16_t n, std::uint16_t,
                                  void* self) {
            auto& pause = *static_cast<Pause*>(self);
            if (!pause.wanted.exchange(false)) return n;
            pause.begun = true;
            std::this_thread::sleep_for(std::chrono::milliseconds(600));  // a tick is 250 ms at most
            return n;
        }
    } pause;
    Bench bench;
    const auto* callback = rte_eth_add_rx_callback(bench.west.id(), 0, Pause::read, &pause);
    REQUIRE(callback != nullptr);
    const auto active = [&bench] { return bench.worker->state().sessions->stats().active; };
    bench.send(bench.west, test::PacketBuilder().eth().ip4("10.0.0.9", "192.0.2.9").udp(1000, 53).payload(30).bytes());
    bench.wait_rx(1);
    CHECK(active() == 1);
    for (std::uint64_t round = 0; round < 3; ++round) {
        pause.begun = false;
        pause.wanted = true;
        while (!pause.begun) std::this_thread::yield();
        bench.send(bench.east,
                   test::PacketBuilder().eth(kEastMac).ip4("192.0.2.9", "10.0.0.9").udp(53, 1000).payload(30).bytes());
        bench.wait_rx(round + 2);
        CHECK(active() == 1);
    }
    bench.stop();
    CHECK(active() == 1);
    rte_eth_remove_rx_callback(bench.west.id(), 0, callback);
    bench.received(bench.east);
    bench.received(bench.west);
}

TEST_CASE("worker: the ledger closes and no mbuf is left behind, whatever was in flight", "[worker]") {
    const unsigned before = rte_mempool_avail_count(Bench::shared_pool());
    {
        Bench bench;
        unsigned sent = 0;
        for (unsigned i = 0; i < 900; ++i, ++sent)
            bench.send(i % 2 != 0 ? bench.west : bench.east,
                       test::PacketBuilder()
                           .eth(i % 2 != 0 ? test::kRouterMac : kEastMac)
                           .ip4(i % 3 == 0 ? "10.0.0.9" : "127.0.0.1", i % 2 != 0 ? "192.0.2.9" : "10.0.0.9")
                           .udp(static_cast<std::uint16_t>(1000 + i), 53)
                           .bytes());
        bench.wait_rx(sent);
        bench.stop();
        const pipeline::LedgerLine line = bench.worker->state().published_ledger.read();
        CHECK(line.rx == sent);
        CHECK(control::unaccounted(line) == 0);
        CHECK(line.held == 0);
        CHECK(line.tx == bench.received(bench.east).size() + bench.received(bench.west).size());
        CHECK(line.dropped > 0);
    }
    CHECK(rte_mempool_avail_count(Bench::shared_pool()) == before);
}

TEST_CASE("worker: a full device holds packets back in order and loses none silently", "[worker]") {
    const unsigned before = rte_mempool_avail_count(Bench::shared_pool());
    {
        Bench bench;
        unsigned sent = 0;
        // The device's ring has 1023 slots and the TX buffer 256: more than both is dropped by name.
        for (unsigned round = 0; round < 20; ++round) {
            for (unsigned i = 0; i < 100; ++i, ++sent)
                bench.send(bench.west, test::PacketBuilder()
                                           .eth()
                                           .ip4("10.0.0.9", "192.0.2.9")
                                           .udp(static_cast<std::uint16_t>(1000 + sent), 53)
                                           .payload(20)
                                           .bytes());
            bench.wait_rx(sent);
        }
        const pipeline::LedgerLine line = bench.worker->state().published_ledger.read();
        CHECK(line.tx == 1023);
        CHECK(line.held == port::kTxBufferSize);
        CHECK(line.dropped == sent - 1023 - port::kTxBufferSize);
        // Room on the wire lets the held ones follow, while these are still being taken.
        std::vector<test::Bytes> out = bench.received(bench.east);
        for (int i = 0; i < 5000 && bench.worker->state().published_ledger.read().held != 0; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        for (test::Bytes& frame : bench.received(bench.east)) out.push_back(std::move(frame));
        REQUIRE(out.size() == 1023 + port::kTxBufferSize);
        const auto source_port = [](const test::Bytes& frame) { return frame[34] << 8 | frame[35]; };
        for (std::size_t i = 0; i < out.size(); ++i) CHECK(source_port(out[i]) == 1000 + static_cast<int>(i));
        bench.stop();
        CHECK(control::unaccounted(bench.worker->state().published_ledger.read()) == 0);
    }
    CHECK(rte_mempool_avail_count(Bench::shared_pool()) == before);
}

}  // namespace
}  // namespace cachewire
