// SPDX-License-Identifier: BSD-3-Clause
// Buckets that change their worker while packets pass: nothing lost, nothing out of order, every session still known on
// both sides; and what a worker that stands still, a full table, a reload or the end do to a move.
#include "control/bucket_mover.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <random>

#include <fmt/format.h>

#include "control/rebalance.h"
#include "handoff_rig.h"
#include "support/random.h"

namespace cachewire {
namespace {

using pipeline::BucketSet;
using pipeline::DropReason;
using test::Bytes;
using test::HandoffRig;
using test::PacketBuilder;

std::string client_of(unsigned i) { return fmt::format("10.1.{}.{}", i / 250 % 250, 1 + i % 250); }
std::string server_of(unsigned i) { return fmt::format("198.18.{}.{}", i % 199, 1 + i / 199 % 250); }

Bytes to_server(unsigned i, std::uint32_t sequence) {
    Bytes numbers(8);
    std::memcpy(numbers.data(), &i, 4);
    std::memcpy(numbers.data() + 4, &sequence, 4);
    return PacketBuilder()
        .eth()
        .ip4(client_of(i), server_of(i))
        .udp(static_cast<std::uint16_t>(1024 + i), 53)
        .payload(numbers)
        .bytes();
}
Bytes to_client(unsigned i) {
    return PacketBuilder()
        .eth(test::kEastMac)
        .ip4(server_of(i), client_of(i))
        .udp(53, static_cast<std::uint16_t>(1024 + i))
        .payload(Bytes(8))
        .bytes();
}

BucketSet every_bucket() {
    BucketSet all;
    all.words.fill(~std::uint64_t{0});
    return all;
}

// Frames with numbers, in order by flow and round.
struct NumberedTraffic {
    unsigned flows;
    std::map<std::uint32_t, std::uint32_t> seen{};
    std::uint32_t round = 0;
    unsigned wrong = 0;

    std::vector<Bytes> next(unsigned rounds) {
        std::vector<Bytes> frames;
        for (; rounds != 0; --rounds, ++round)
            for (unsigned i = 0; i < flows; ++i) frames.push_back(to_server(i, round));
        return frames;
    }
    void check(const std::vector<Bytes>& out) {
        for (const Bytes& frame : out) {
            std::uint32_t i, sequence;
            std::memcpy(&i, frame.data() + 42, 4);
            std::memcpy(&sequence, frame.data() + 46, 4);
            wrong += seen[i]++ != sequence;
        }
    }
};

std::vector<Bytes> replies(unsigned flows) {
    std::vector<Bytes> frames;
    for (unsigned i = 0; i < flows; ++i) frames.push_back(to_client(i));
    return frames;
}

void finish_move(control::BucketMover& mover) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!mover.step()) {
        REQUIRE(std::chrono::steady_clock::now() < limit);
        std::this_thread::yield();
    }
}
void begin_move(control::BucketMover& mover, const BucketSet& buckets, unsigned from, unsigned to) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!mover.start(buckets, from, to)) {
        REQUIRE(std::chrono::steady_clock::now() < limit);
        std::this_thread::yield();
    }
}

// Moves at random, half of some worker's buckets each.
struct RandomMoves {
    explicit RandomMoves(HandoffRig& rig)
        : mover(rig.mover()), workers(rig.workers()), owners(pipeline::spread_owners(workers)) {}

    void step() {
        if (!mover.step()) return;
        if (pending) {
            sessions += mover.last().sessions, lost += mover.last().lost;
            control::apply(*pending, owners);
            pending.reset();
            ++moves;
        }
        const auto from = static_cast<unsigned>(random() % workers);
        const auto to = static_cast<unsigned>((from + 1 + random() % (workers - 1)) % workers);
        control::Shift shift{from, to, {}};
        for (unsigned bucket = 0; bucket < pipeline::kOwnerBuckets; ++bucket)
            if (owners[bucket] == from && random() % 2 != 0) shift.buckets.add(bucket);
        if (mover.start(shift.buckets, from, to)) pending = shift;
    }
    void end() {
        finish_move(mover);
        if (pending) control::apply(*pending, owners);
        pending.reset();
    }

    control::BucketMover& mover;
    unsigned workers;
    pipeline::Owners owners;
    std::mt19937_64 random = test::random_engine();
    std::optional<control::Shift> pending;
    unsigned moves = 0;
    std::uint64_t sessions = 0, lost = 0;
};

// After `frames` forward ones and a reply to each flow.
void check_all_met(HandoffRig& rig, const RandomMoves& moves, unsigned flows, std::uint64_t frames) {
    std::uint64_t hits = 0, misses = 0, created = 0, active = 0, counted = 0;
    unsigned misplaced = 0;
    for (unsigned w = 0; w < rig.workers(); ++w) {
        const pipeline::WorkerState& state = rig.state(w);
        hits += state.memo.hits.read();
        misses += state.memo.misses.read();
        created += state.sessions->stats().created;
        active += state.sessions->stats().active;
        CHECK(state.handoff.owners == moves.owners);
        for (std::uint32_t i = 0; i < state.sessions->used_end(); ++i) {
            const session::HotEntry& hot = state.sessions->hot(i);
            if (hot.state() == session::State::free) continue;
            misplaced += moves.owners[pipeline::owner_bucket(state.sessions->cold(i).hash)] != w;
            counted += state.sessions->cold(i).packets[0] + hot.packets[0];
        }
    }
    CHECK(misplaced == 0);
    CHECK(misses == flows);
    CHECK(created == flows);
    CHECK(active == flows);
    CHECK(hits == frames);  // the forward ones but for each flow's first, and the replies
    CHECK(counted == frames);
    CHECK(moves.lost == 0);
    const auto ledger = rig.ledger();
    CHECK(control::unaccounted(ledger) == 0);
    CHECK(ledger.rx == frames + flows);
    CHECK(ledger.tx == ledger.rx);
    CHECK(ledger.held == 0);
    CHECK(rig.mbufs_out() == 0);
}

}  // namespace

TEST_CASE("rebalance: 1000 moves under traffic lose nothing and keep every session in order", "[handoff]") {
    constexpr unsigned kFlows = 300, kMoves = 1000;
    INFO("seed " << test::seed());
    const unsigned workers = GENERATE(2u, 4u);
    INFO(workers << " workers");
    HandoffRig rig(workers);
    rig.begin();
    RandomMoves moves(rig);
    NumberedTraffic traffic{kFlows};
    std::vector<Bytes> waiting, out;
    std::uint64_t sent = 0, received = 0;
    const auto collect_some = [&] {
        HandoffRig::collect(rig.east, out);
        traffic.check(out);
        received += out.size();
        out.clear();
    };
    // Alone, so that no burst has two packets of a new flow, which miss both.
    for (const Bytes& frame : traffic.next(1)) rig.send(rig.west, frame);
    sent = kFlows;
    for (int n = 0; n < 100000 && received < sent; ++n) {
        rig.turn(static_cast<unsigned>(n) % workers);
        collect_some();
    }
    REQUIRE(received == kFlows);
    // Who comes round next, how often, and what arrives meanwhile: drawn, so that any step may meet any other.
    while (moves.moves < kMoves) {
        for (auto n = moves.random() % 16; n != 0 && sent - received < 400; --n, ++sent) {
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
        collect_some();
    }
    for (int n = 0; n < 1000000 && (received < sent || moves.mover.busy()); ++n) {
        rig.turn(static_cast<unsigned>(n) % workers);
        moves.mover.step();
        collect_some();
    }
    moves.end();
    INFO(rig.drops(DropReason::tx_full) << " tx_full, " << rig.drops(DropReason::handoff_full) << " handoff_full of "
                                        << rig.ledger().dropped);
    CHECK(received == sent);
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
