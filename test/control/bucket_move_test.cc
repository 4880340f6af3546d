// SPDX-License-Identifier: BSD-3-Clause
// Buckets that change their worker while packets pass: nothing lost, nothing out of order, every session still known on
// both sides; and what a worker that stands still, a full table, a reload or the end do to a move.
#include "control/bucket_mover.h"

#include <algorithm>

#include "move_rig.h"

namespace cachewire {

using pipeline::DropReason;
using test::begin_move;
using test::Bytes;
using test::check_all_met;
using test::client_of;
using test::every_bucket;
using test::finish_move;
using test::HandoffRig;
using test::NumberedTraffic;
using test::PacketBuilder;
using test::RandomMoves;
using test::replies;
using test::server_of;
using test::to_server;

TEST_CASE("rebalance: 1000 moves under traffic lose nothing and keep every session in order", "[handoff]") {
    constexpr unsigned kFlows = 300, kMoves = 1000;
    INFO("seed " << test::seed());
    const unsigned workers = GENERATE(2u, 4u);
    INFO(workers << " workers");
    HandoffRig rig(workers);
    rig.begin();
    RandomMoves moves(rig);
    NumberedTraffic traffic{kFlows};
    std::vector<Bytes> waiting;
    std::uint64_t sent = 0;
    // Alone, so that no burst has two packets of a new flow, which miss both.
    for (const Bytes& frame : traffic.next(1)) rig.send(rig.west, frame);
    sent = kFlows;
    for (int n = 0; n < 100000 && traffic.received < sent; ++n) {
        rig.turn(static_cast<unsigned>(n) % workers);
        traffic.take(rig.east);
    }
    REQUIRE(traffic.received == kFlows);
    // Who comes round next, how often, and what arrives meanwhile: drawn, so that any step may meet any other.
    while (moves.moves < kMoves) {
        for (auto n = moves.random() % 16; n != 0 && sent - traffic.received < 400; --n, ++sent) {
            if (waiting.empty()) {
                waiting = traffic.next(1);
                std::reverse(waiting.begin(), waiting.end());
            }
            rig.send(rig.west, waiting.back());
            waiting.pop_back();
        }
        const auto worker = static_cast<unsigned>(moves.random() % workers);
        for (auto turns = moves.random() % 4; turns != 0; --turns) rig.turn(worker);
        moves.step();
        traffic.take(rig.east);
    }
    for (int n = 0; n < 1000000 && (traffic.received < sent || moves.mover.busy()); ++n) {
        rig.turn(static_cast<unsigned>(n) % workers);
        moves.mover.step();
        traffic.take(rig.east);
    }
    moves.end();
    INFO(rig.drops(DropReason::tx_full) << " tx_full, " << rig.drops(DropReason::handoff_full) << " handoff_full of "
                                        << rig.ledger().dropped);
    CHECK(traffic.received == sent);
    CHECK(traffic.wrong == 0);
    CHECK(moves.sessions > kMoves);
    // From the other side, which may begin nothing.
    rig.start();
    CHECK(rig.exchange(rig.east, rig.west, replies(kFlows)).size() == kFlows);
    rig.stop();
    check_all_met(rig, moves, kFlows, sent);
}

TEST_CASE("rebalance: workers on threads of their own move sessions under traffic", "[handoff]") {
    constexpr unsigned kFlows = 200, kMoves = 20;
    INFO("seed " << test::seed());
    const unsigned workers = GENERATE(2u, 4u);
    INFO(workers << " workers");
    HandoffRig rig(workers);
    rig.start();
    RandomMoves moves(rig);
    NumberedTraffic traffic{kFlows};
    const auto first = rig.exchange(rig.west, rig.east, traffic.next(1));
    traffic.check(first);
    std::uint64_t frames = first.size();
    while (moves.moves < kMoves) {
        const auto burst = traffic.next(10);
        frames += burst.size();
        const auto out = rig.exchange(
            rig.west, rig.east, burst, [&] { moves.step(); }, 400);
        REQUIRE(out.size() == burst.size());
        traffic.check(out);
    }
    moves.end();
    CHECK(traffic.wrong == 0);
    CHECK(rig.exchange(rig.east, rig.west, replies(kFlows)).size() == kFlows);
    rig.stop();
    check_all_met(rig, moves, kFlows, frames);
}

TEST_CASE("rebalance: pieces and ICMP errors follow the session to its new worker", "[handoff]") {
    constexpr unsigned kFlows = 200;
    HandoffRig rig(2);
    rig.start();
    std::vector<Bytes> forward, firsts, laters, errors;
    for (unsigned i = 0; i < kFlows; ++i) {
        forward.push_back(to_server(i, 0));
        test::Ip4Fields ip;
        ip.id = static_cast<std::uint16_t>(i + 1);
        ip.fragment = 0x2000;
        firsts.push_back(PacketBuilder()
                             .eth(test::kEastMac)
                             .ip4(server_of(i), client_of(i), ip)
                             .udp(53, static_cast<std::uint16_t>(1024 + i))
                             .payload(24)
                             .bytes());
        ip.proto = 17;
        ip.fragment = 4;
        laters.push_back(PacketBuilder().eth(test::kEastMac).ip4(server_of(i), client_of(i), ip).payload(32).bytes());
        Bytes quote = to_server(i, 0);
        quote.erase(quote.begin(), quote.begin() + 14);
        errors.push_back(
            PacketBuilder().eth(test::kEastMac).ip4("198.19.255.1", client_of(i)).icmp(3, 1).payload(quote).bytes());
    }
    CHECK(rig.exchange(rig.west, rig.east, forward).size() == kFlows);
    CHECK(rig.exchange(rig.east, rig.west, firsts).size() == kFlows);
    control::BucketMover& mover = rig.mover();
    begin_move(mover, every_bucket(), 0, 1);
    finish_move(mover);
    CHECK(mover.last().moved);
    CHECK(rig.state(0).sessions->stats().active == 0);
    CHECK(rig.exchange(rig.east, rig.west, laters).size() == kFlows);
    CHECK(rig.exchange(rig.east, rig.west, errors).size() == kFlows);
    rig.stop();
    CHECK(rig.ledger().dropped == 0);
}

TEST_CASE("rebalance: sessions that leak keep their second tuple", "[handoff]") {
    constexpr unsigned kFlows = 200;
    HandoffRig rig(2, test::leaking_config());
    rig.start();
    NumberedTraffic traffic{kFlows};
    CHECK(rig.exchange(rig.west, rig.east, traffic.next(1)).size() == kFlows);
    control::BucketMover& mover = rig.mover();
    for (const unsigned from : {0u, 1u}) {  // all to the one, then all to the other
        begin_move(mover, every_bucket(), from, 1 - from);
        finish_move(mover);
        CHECK(rig.state(1 - from).sessions->stats().companions == kFlows);
        CHECK(rig.exchange(rig.east, rig.west, replies(kFlows)).size() == kFlows);
    }
    CHECK(rig.sessions() == kFlows);
}

TEST_CASE("rebalance: a worker without room for the sessions gets none of them", "[handoff]") {
    constexpr unsigned kFlows = 100;
    HandoffRig rig(2, test::handoff_config(), 64);
    rig.start();
    NumberedTraffic traffic{kFlows};
    CHECK(rig.exchange(rig.west, rig.east, traffic.next(1)).size() == kFlows);
    const auto before = rig.state(0).sessions->stats().active;
    control::BucketMover& mover = rig.mover();
    begin_move(mover, every_bucket(), 0, 1);
    finish_move(mover);
    CHECK(!mover.last().moved);
    CHECK(rig.state(0).sessions->stats().active == before);
    CHECK(rig.exchange(rig.east, rig.west, replies(kFlows)).size() == kFlows);
    CHECK(rig.state(0).handoff.owners == pipeline::spread_owners(2));
}

TEST_CASE("rebalance: what comes while the old owner stands still waits, over a reload too", "[handoff]") {
    constexpr unsigned kFlows = 60;
    HandoffRig rig(2);  // west's queue is worker 0's, to which all go
    rig.begin();
    NumberedTraffic traffic{kFlows};
    for (const Bytes& frame : traffic.next(1)) rig.send(rig.west, frame);
    for (int n = 0; n < 8; ++n) rig.turn(0), rig.turn(1);
    std::vector<Bytes> out;
    HandoffRig::collect(rig.east, out);
    traffic.check(out);
    REQUIRE(out.size() == kFlows);

    control::BucketMover& mover = rig.mover();
    REQUIRE(mover.start(every_bucket(), 1, 0));
    CHECK(mover.waits_for() == fmt::format("the worker on lcore {}", rig.state(1).lcore));
    for (int n = 0; n < 4; ++n) rig.turn(1), mover.step();
    for (int n = 0; n < 4; ++n) rig.turn(0), mover.step();
    // Worker 0 parks now, and worker 1 is away.
    const auto more = traffic.next(2);
    for (const Bytes& frame : more) rig.send(rig.west, frame);
    for (int n = 0; n < 8; ++n) rig.turn(0);
    CHECK(!mover.step());
    CHECK(rig.ledger().held != 0);
    CHECK(control::unaccounted(rig.ledger()) == 0);
    rig.publish(test::handoff_config("  - {name: other, default: permit}\n"));
    for (int n = 0; n < 20; ++n) rig.turn(1), rig.turn(0), mover.step();
    CHECK(!mover.busy());
    CHECK(mover.last().parked > 0);
    out.clear();
    HandoffRig::collect(rig.east, out);
    traffic.check(out);
    CHECK(out.size() == more.size());
    CHECK(traffic.wrong == 0);
    CHECK(rig.state(0).sessions->stats().active == kFlows);
    CHECK(control::unaccounted(rig.ledger()) == 0);
    CHECK(rig.ledger().held == 0);
    CHECK(rig.ledger().dropped == 0);
}

TEST_CASE("rebalance: what is parked when the workers end is dropped as shutdown", "[handoff]") {
    constexpr unsigned kFlows = 50;
    HandoffRig rig(2);
    rig.begin();
    control::BucketMover& mover = rig.mover();
    REQUIRE(mover.start(every_bucket(), 1, 0));
    for (int n = 0; n < 4; ++n) rig.turn(1), mover.step();
    for (int n = 0; n < 4; ++n) rig.turn(0), mover.step();
    NumberedTraffic traffic{kFlows};
    for (const Bytes& frame : traffic.next(1)) rig.send(rig.west, frame);
    for (int n = 0; n < 4; ++n) rig.turn(0);
    rig.start();
    rig.stop();
    const auto ledger = rig.ledger();
    CHECK(control::unaccounted(ledger) == 0);
    CHECK(ledger.held == 0);
    std::vector<Bytes> out;
    HandoffRig::collect(rig.east, out);
    CHECK(out.size() + rig.drops(DropReason::shutdown) == kFlows);
    CHECK(rig.mbufs_out() == 0);
}

}  // namespace cachewire
