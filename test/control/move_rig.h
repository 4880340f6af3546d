#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Numbered traffic of many sessions, and moves of buckets beside it: what tests of BucketMover have in common.
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "control/bucket_mover.h"
#include "control/rebalance.h"
#include "handoff_rig.h"
#include "support/random.h"

namespace cachewire::test {

inline std::string client_of(unsigned i) { return fmt::format("10.1.{}.{}", i / 250 % 250, 1 + i % 250); }
inline std::string server_of(unsigned i) { return fmt::format("198.18.{}.{}", i % 199, 1 + i / 199 % 250); }

inline Bytes to_server(unsigned i, std::uint32_t sequence) {
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
inline Bytes to_client(unsigned i) {
    return PacketBuilder()
        .eth(kEastMac)
        .ip4(server_of(i), client_of(i))
        .udp(53, static_cast<std::uint16_t>(1024 + i))
        .payload(Bytes(8))
        .bytes();
}

inline pipeline::BucketSet every_bucket() {
    pipeline::BucketSet all;
    all.words.fill(~std::uint64_t{0});
    return all;
}

// Frames with numbers, in order by flow and round.
struct NumberedTraffic {
    unsigned flows;
    std::map<std::uint32_t, std::uint32_t> seen{};
    std::uint32_t round = 0;
    unsigned wrong = 0;
    std::uint64_t received = 0;  // by take()

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
    // What has come out of the port till now.
    void take(RingPort& port) {
        std::vector<Bytes> out;
        HandoffRig::collect(port, out);
        check(out);
        received += out.size();
    }
};

inline std::vector<Bytes> replies(unsigned flows) {
    std::vector<Bytes> frames;
    for (unsigned i = 0; i < flows; ++i) frames.push_back(to_client(i));
    return frames;
}

inline void finish_move(control::BucketMover& mover) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!mover.step()) {
        REQUIRE(std::chrono::steady_clock::now() < limit);
        std::this_thread::yield();
    }
}
inline void begin_move(control::BucketMover& mover, const pipeline::BucketSet& buckets, unsigned from, unsigned to) {
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
    std::mt19937_64 random = random_engine();
    std::optional<control::Shift> pending;
    unsigned moves = 0;
    std::uint64_t sessions = 0, lost = 0;
};

// After `frames` forward ones and a reply to each flow.
inline void check_all_met(HandoffRig& rig, const RandomMoves& moves, unsigned flows, std::uint64_t frames) {
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

}  // namespace cachewire::test
