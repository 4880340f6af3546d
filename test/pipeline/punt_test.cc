// SPDX-License-Identifier: BSD-3-Clause
// From burst.punt() to the slow path's queue, and back from it: who owns the mbuf, and that the ledger closes whatever
// happens.
#include "pipeline/stages/punt.h"

#include <atomic>
#include <thread>
#include <vector>

#include "pipeline/returns.h"
#include "pipeline/stage_rig.h"
#include "pipeline/stages/drop.h"
#include "route/fib.h"
#include "support/catch.h"
#include "support/mbuf.h"
#include "support/packet_builder.h"
#include "support/random.h"

namespace cachewire::pipeline {

namespace {

using test::PacketBuilder;

const test::Bytes kPlain = PacketBuilder().eth().ip4("10.0.0.9", "192.0.2.9").udp(1000, 53).payload(20).bytes();
constexpr std::uint16_t kTenant = 1, kGlean = 1, kForward = 2;

struct PuntRig : test::StageRig {
    PuntRig() : before(test::mbufs_in_use()) {
        worker->tenants = std::vector<TenantCounters>(4);
        snapshot.ports.resize(2);
        for (Port& port : snapshot.ports) port.mac = test::kRouterMac;
        snapshot.ports[0].untagged = {kTenant, 0};
        snapshot.next_hops.resize(3);
        snapshot.next_hops[kGlean].kind = route::NextHopKind::unresolved;
        snapshot.next_hops[kForward].kind = route::NextHopKind::forward;
        snapshot.next_hops[kForward].port = 1;
        route_to(kGlean);
    }
    ~PuntRig() {
        drop_punted(*worker);
        for (auto& tx : worker->tx) tx.discard();
        CHECK(test::mbufs_in_use() == before);
    }

    void route_to(std::uint16_t next_hop) {
        vrf.apply(std::vector{route::RouteChange{{net::Address::from_v4(0xc0000000), 8, net::Family::ip4}, next_hop}});
        vrf.grace_period_over();
        snapshot.tenants[kTenant].fib = vrf.view().get();
    }

    Lane& lane(unsigned i) { return worker->burst.lane(static_cast<Burst::LaneIndex>(i)); }

    // A burst of received packets, as RX leaves it.
    void receive(unsigned n, const test::Bytes& frame = kPlain) {
        worker->burst.begin(n);
        for (unsigned i = 0; i < n; ++i) {
            lane(i) = {};
            lane(i).mbuf = test::make_mbuf(frame).release();
            lane(i).tenant = kTenant;
            lane(i).next_hop = kGlean;
        }
        worker->ledger.rx += n;
    }
    void punt_all(PuntReason reason) {
        worker->burst.filter([&](auto i) { return worker->burst.punt(i, reason); });
        stages::Punt::process(*worker, snapshot, worker->burst);
        stages::Drop::process(*worker, worker->burst);
    }
    void give(const Return& what) {
        REQUIRE(worker->from_slow_path.push(what));
        worker->from_slow_path.publish();
    }
    unsigned take() { return take_returns(*worker, snapshot, returns_ready(*worker)); }
    [[nodiscard]] std::uint64_t drops(DropReason reason, std::uint16_t tenant = kTenant) const {
        return worker->tenants[tenant].drops[static_cast<unsigned>(reason)].read();
    }
    [[nodiscard]] std::uint64_t taken() const {
        std::uint64_t sum = 0;
        for (const base::Counter& counter : worker->punts.taken) sum += counter.read();
        return sum;
    }
    [[nodiscard]] bool closes() const {
        const LedgerLine& l = worker->ledger;
        return l.rx + l.originated == l.tx + l.dropped + l.punted + l.consumed + l.held;
    }

    unsigned before;
    route::Vrf vrf{"punt", {}};
};

}  // namespace

TEST_CASE("punt: each reason ends in the ledger as its traits say, and the bytes go on", "[pipeline]") {
    for (std::size_t n = 0; n < kPuntReasons; ++n) {
        const auto reason = static_cast<PuntReason>(n);
        const PuntTraits& traits = traits_of(reason);
        INFO(traits.name);
        PuntRig rig;
        rig.receive(3);
        rig.lane(2).in_port = 1;
        rig.lane(2).in_interface = 7;
        rig.punt_all(reason);
        CHECK(rig.closes());
        CHECK(rig.worker->ledger.dropped == (traits.fate == PuntFate::dropped ? 3 : 0));
        CHECK(rig.worker->ledger.punted == (traits.fate == PuntFate::punted ? 3 : 0));
        CHECK(rig.worker->ledger.held == (traits.fate == PuntFate::held ? 3 : 0));
        CHECK(rig.drops(traits.drop) == rig.worker->ledger.dropped);
        CHECK(rig.worker->punts.taken[n].read() == 3);
        REQUIRE(rig.worker->to_slow_path.ready() == 3);
        for (unsigned i = 0; i < 3; ++i) {
            const PuntRecord record = rig.worker->to_slow_path.take();
            CHECK(record.reason == reason);
            CHECK(record.tenant == kTenant);
            CHECK(record.port == (i == 2 ? 1 : 0));
            CHECK(record.interface == (i == 2 ? 7 : 0));
            CHECK(test::bytes_of(record.mbuf) == kPlain);
            rte_pktmbuf_free(record.mbuf);
        }
        rig.worker->to_slow_path.release();
    }
}

TEST_CASE("punt: over the rate a packet is dropped under its own reason, each class and port apart", "[pipeline]") {
    PuntRig rig;
    rig.worker->punt_intervals.fill(1000);
    const auto burst = kPuntRates[static_cast<unsigned>(PuntClass::error)].burst;
    for (unsigned sent = 0; sent < burst; sent += 50) {
        rig.receive(50);
        rig.punt_all(PuntReason::ttl_exceeded);
    }
    CHECK(rig.taken() == burst);
    rig.receive(10);
    rig.punt_all(PuntReason::no_route);  // the same class
    CHECK(rig.taken() == burst);
    CHECK(rig.drops(DropReason::no_route) == 10);
    CHECK(rig.worker->punts.limited[static_cast<unsigned>(PuntReason::no_route)].read() == 10);
    rig.receive(1);
    rig.punt_all(PuntReason::echo);
    rig.receive(1);
    rig.lane(0).in_port = 1;
    rig.punt_all(PuntReason::ttl_exceeded);
    CHECK(rig.taken() == burst + 2);
    rig.worker->now_tsc += 3000;
    rig.receive(4);
    rig.punt_all(PuntReason::ttl_exceeded);
    CHECK(rig.taken() == burst + 5);
    CHECK(rig.closes());
}

TEST_CASE("punt: a kernel's rate is the tenant's, over all ports and workers", "[pipeline]") {
    PuntRig first, second;
    first.worker->kernel_meters.reset(new TenantKernelMeters[kMaxTenants]);
    second.worker->kernel_meters = first.worker->kernel_meters;
    constexpr auto kBgp = static_cast<std::size_t>(PuntClass::kernel_bgp) - kFirstKernelClass;
    for (PuntRig* rig : {&first, &second}) {
        rig->snapshot.kernel_punt.fill({1000, 32});
        rig->snapshot.kernel_punt[kBgp] = {1000, 40};
    }
    const auto punt = [](PuntRig& rig, unsigned n, PuntReason reason, std::uint16_t port, std::uint16_t tenant) {
        rig.receive(n);
        for (unsigned i = 0; i < n; ++i) {
            rig.lane(i).in_port = port;
            rig.lane(i).tenant = tenant;
        }
        rig.punt_all(reason);
        CHECK(rig.closes());
        return rig.taken();
    };
    CHECK(punt(first, 30, PuntReason::kernel_bgp, 0, kTenant) == 30);
    CHECK(punt(second, 30, PuntReason::kernel_bgp, 1, kTenant) == 10);
    CHECK(second.drops(DropReason::kernel_rate) == 20);
    CHECK(punt(first, 30, PuntReason::kernel_bgp, 1, kTenant) == 30);
    CHECK(punt(first, 30, PuntReason::kernel_ospf, 1, kTenant) == 60);      // another kind
    CHECK(punt(second, 30, PuntReason::kernel_bgp, 1, kTenant + 1) == 40);  // another tenant
    first.worker->now_tsc += 5000;
    CHECK(punt(first, 30, PuntReason::kernel_bgp, 0, kTenant) == 65);  // what has come since
    drop_punted(*first.worker);                                        // the other rig counts mbufs first
}

TEST_CASE("punt: of many threads as many are admitted as the burst has room for", "[pipeline]") {
    SharedMeter meter;
    std::atomic<unsigned> admitted{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (unsigned i = 0; i < 10000; ++i) admitted += meter.admit(1'000'000, 10, 5000);
        });
    for (auto& thread : threads) thread.join();
    CHECK(admitted == 5000);
    CHECK_FALSE(meter.admit(1'000'009, 10, 5000));
    CHECK(meter.admit(1'000'010, 10, 5000));
}

TEST_CASE("punt: answers to our own MAC address pass a broadcast storm", "[pipeline]") {
    PuntRig rig;
    rig.worker->punt_intervals.fill(1000);
    const test::Bytes storm = PacketBuilder().eth(test::kBroadcastMac).ether_type(0x0806).payload(46).bytes();
    const test::Bytes reply = PacketBuilder().eth().ether_type(0x0806).payload(46).bytes();
    for (int i = 0; i < 10; ++i) {
        rig.receive(50, storm);
        rig.punt_all(PuntReason::arp);
    }
    CHECK(rig.worker->ledger.punted == kPuntRates[0].burst);
    CHECK(rig.drops(DropReason::arp) == 500 - kPuntRates[0].burst);
    rig.receive(1, reply);
    rig.punt_all(PuntReason::arp);
    CHECK(rig.worker->ledger.punted == kPuntRates[0].burst + 1);
}

TEST_CASE("punt: a full queue is a drop, and the ledger closes at the end whatever waits", "[pipeline]") {
    for (const PuntReason reason : {PuntReason::no_neighbor, PuntReason::arp, PuntReason::ttl_exceeded}) {
        INFO(traits_of(reason).name);
        PuntRig rig;
        unsigned sent = 0;
        for (; sent < kPuntSlots + 50; sent += 50) {
            rig.receive(50);
            rig.punt_all(reason);
        }
        const std::uint64_t over = sent - kPuntSlots;
        CHECK(rig.worker->punts.full[static_cast<unsigned>(reason)].read() == over);
        const bool always = traits_of(reason).fate == PuntFate::dropped;
        CHECK(rig.drops(DropReason::punt_full) == (always ? 0 : over));
        CHECK(rig.drops(traits_of(reason).drop) == (always ? sent : 0));
        CHECK(rig.closes());
        const std::uint64_t held = rig.worker->ledger.held;
        drop_punted(*rig.worker);
        CHECK(rig.worker->ledger.held == 0);
        CHECK(rig.drops(DropReason::shutdown, kNoTenant) == held);
        CHECK(rig.closes());
    }
}

TEST_CASE("returns: a frame of ours is originated, and dropped by name where it can't leave", "[pipeline]") {
    PuntRig rig;
    const auto own = [](std::uint16_t port) {
        return Return{.mbuf = test::make_mbuf(kPlain).release(), .tenant = kTenant, .port = port};
    };
    rig.give(own(1));
    CHECK(rig.take() == 1);
    CHECK(rig.worker->ledger.originated == 1);
    CHECK(rig.worker->ledger.held == 1);
    CHECK(rig.worker->tx[1].size() == 1);
    rig.snapshot.ports[0].admin_up = rig.snapshot.ports[0].sends = false;
    rig.give(own(0));
    rig.give(own(9));  // a port of no snapshot any more
    CHECK(rig.take() == 2);
    CHECK(rig.drops(DropReason::port_down) == 2);
    for (unsigned i = 1; i < port::kTxBufferSize + 5; ++i) {
        rig.give(own(1));
        rig.take();
    }
    CHECK(rig.drops(DropReason::tx_full) == 5);
    CHECK(rig.closes());
    rig.worker->ledger.held -= rig.worker->tx[1].discard();
    rig.worker->ledger.dropped += port::kTxBufferSize;
}

TEST_CASE("returns: a held packet goes on as soon as its neighbor is known, and waits once only", "[pipeline]") {
    PuntRig rig;
    rig.receive(1);
    rig.punt_all(PuntReason::no_neighbor);
    REQUIRE(rig.worker->to_slow_path.ready() == 1);
    PuntRecord record = rig.worker->to_slow_path.take();
    rig.worker->to_slow_path.release();
    SECTION("resolved: it takes the whole pipeline") {
        rig.route_to(kForward);
        rig.give({.mbuf = record.mbuf, .kind = ReturnKind::retry, .tenant = kTenant, .port = 0});
        CHECK(rig.take() == 1);
        CHECK(rig.worker->ledger.held == 1);
        CHECK(rig.worker->tx[1].size() == 1);
        rig.worker->ledger.held -= rig.worker->tx[1].discard();
        ++rig.worker->ledger.tx;
    }
    SECTION("gone again: dropped, not held for ever") {
        rig.give({.mbuf = record.mbuf, .kind = ReturnKind::retry, .tenant = kTenant, .port = 0});
        CHECK(rig.take() == 1);
        CHECK(rig.worker->ledger.held == 0);
        CHECK(rig.drops(DropReason::no_neighbor) == 1);
        CHECK(rig.worker->to_slow_path.ready() == 0);
    }
    SECTION("no answer: dropped under its reason") {
        rig.give({.mbuf = record.mbuf, .kind = ReturnKind::drop, .tenant = kTenant, .port = 0});
        CHECK(rig.take() == 1);
        CHECK(rig.worker->ledger.held == 0);
        CHECK(rig.drops(DropReason::no_neighbor) == 1);
    }
    SECTION("shut down with it in the way back") {
        rig.give({.mbuf = record.mbuf, .kind = ReturnKind::retry, .tenant = kTenant, .port = 0});
        drop_punted(*rig.worker);
        CHECK(rig.drops(DropReason::shutdown, kNoTenant) == 1);
    }
    CHECK(rig.worker->ledger.held == 0);
    CHECK(rig.closes());
}

TEST_CASE("returns: any order of punts and returns keeps the ledger closed and the pool whole", "[pipeline]") {
    INFO("seed " << test::seed());
    auto random = test::random_engine();
    PuntRig rig;
    std::vector<PuntRecord> outside;  // with the slow path
    for (int round = 0; round < 3000; ++round) {
        switch (random() % 4) {
            case 0:
                rig.receive(1 + static_cast<unsigned>(random() % 8));
                rig.punt_all(static_cast<PuntReason>(random() % kPuntReasons));
                break;
            case 1:
                for (auto n = rig.worker->to_slow_path.ready(); n != 0; --n) {
                    const PuntRecord record = rig.worker->to_slow_path.take();
                    if (traits_of(record.reason).fate == PuntFate::held && outside.size() < 500) {
                        outside.push_back(record);
                    } else if (traits_of(record.reason).fate == PuntFate::held) {
                        rig.give({.mbuf = record.mbuf, .kind = ReturnKind::drop, .tenant = kTenant});
                        rig.take();
                    } else {
                        rte_pktmbuf_free(record.mbuf);
                    }
                }
                rig.worker->to_slow_path.release();
                break;
            case 2:
                for (auto n = random() % 9; n != 0 && !outside.empty(); --n) {
                    const auto kind = random() % 2 != 0 ? ReturnKind::retry : ReturnKind::drop;
                    rig.give({.mbuf = outside.back().mbuf, .kind = kind, .tenant = kTenant});
                    outside.pop_back();
                }
                rig.route_to(random() % 2 != 0 ? kForward : kGlean);
                break;
            case 3:
                rig.take();
                rig.worker->ledger.tx += rig.worker->tx[1].size();
                rig.worker->ledger.held -= rig.worker->tx[1].discard();
                break;
        }
        if (!rig.closes()) break;
    }
    CHECK(rig.closes());
    for (const PuntRecord& record : outside) rte_pktmbuf_free(record.mbuf);
}

}  // namespace cachewire::pipeline
