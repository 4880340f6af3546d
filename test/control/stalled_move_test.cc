// SPDX-License-Identifier: BSD-3-Clause
// A worker stands still while buckets move: between any two of its steps, and wherever a signal meets it. What waits
// for it waits; nothing is lost, nothing overtakes, and what its sessions hold of a list is held by exactly one worker.
#include <atomic>
#include <csignal>
#include <map>

#include "move_rig.h"

namespace cachewire {
namespace {

using test::check_all_met;
using test::HandoffRig;
using test::NumberedTraffic;
using test::RandomMoves;

// By chunk of rule numbers: how many references a worker's sessions have.
std::map<std::uint32_t, std::uint32_t> references(const pipeline::WorkerState& state) {
    std::map<std::uint32_t, std::uint32_t> count;
    const auto refer = [&count](std::uint32_t rule) {
        const std::uint32_t chunk = rule >> session::RuleCounters::kChunkBits;
        if (chunk < session::RuleCounters::kMaxChunks) ++count[chunk];
    };
    for (std::uint32_t i = 0; i < state.sessions->used_end(); ++i) {
        const session::HotEntry& hot = state.sessions->hot(i);
        if (hot.state() == session::State::free || hot.is_companion()) continue;
        refer(state.sessions->cold(i).rule);
        refer(state.sessions->cold(i).reverse_rule);
    }
    return count;
}

// Every worker's counters say what its sessions hold, of chunks that any session of any worker names.
std::uint32_t check_held(const HandoffRig& rig) {
    std::map<std::uint32_t, std::uint32_t> all;
    for (unsigned w = 0; w < rig.workers(); ++w)
        for (const auto& [chunk, count] : references(rig.state(w))) all[chunk] += count;
    std::uint32_t held = 0;
    for (unsigned w = 0; w < rig.workers(); ++w) {
        auto mine = references(rig.state(w));
        for (const auto& [chunk, count] : all) {
            CHECK(rig.state(w).rules.held(chunk) == mine[chunk]);
            held += rig.state(w).rules.held(chunk);
        }
    }
    return held;
}

pipeline::BucketSet owned_by(const pipeline::WorkerState& state) {
    pipeline::BucketSet set;
    for (unsigned bucket = 0; bucket < pipeline::kOwnerBuckets; ++bucket)
        if (state.handoff.owners[bucket] == state.index) set.add(bucket);
    return set;
}

// Stops a thread of this process wherever it is. One at a time.
class Pause {
  public:
    explicit Pause(pthread_t thread) {
        struct sigaction action {};
        action.sa_handler = [](int) {
            const int saved = errno;
            stands_.store(true);
            while (hold_.load()) {
                const timespec nap{0, 100'000};
                nanosleep(&nap, nullptr);
            }
            stands_.store(false);
            errno = saved;
        };
        sigaction(SIGUSR1, &action, &before_);
        hold_ = true;
        if (pthread_kill(thread, SIGUSR1) != 0) throw std::runtime_error("pthread_kill");
        while (!stands_.load()) std::this_thread::yield();
    }
    ~Pause() {
        hold_ = false;
        while (stands_.load()) std::this_thread::yield();
        sigaction(SIGUSR1, &before_, nullptr);
    }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

  private:
    static inline std::atomic<bool> hold_{false}, stands_{false};
    struct sigaction before_ {};
};

}  // namespace

TEST_CASE("rebalance: a worker that stands still between any two steps holds a move up, and that is all", "[handoff]") {
    constexpr unsigned kFlows = 90, kFrom = 1, kTo = 0;
    const unsigned paused = GENERATE(0u, 1u, 2u);
    const unsigned after = GENERATE(range(0, 14));  // of its turns; the move takes about ten
    INFO("worker " << paused << " stands still after " << after << " turns");
    HandoffRig rig(3);
    rig.begin();
    NumberedTraffic traffic{kFlows};
    std::uint64_t sent = 0;
    const auto send_round = [&] {
        for (const auto& frame : traffic.next(1)) rig.send(rig.west, frame), ++sent;
    };
    const auto turn = [&](unsigned without) {
        for (unsigned w = 0; w < rig.workers(); ++w)
            if (w != without) rig.turn(w);
        rig.mover().step();
        traffic.take(rig.east);
    };
    send_round();
    for (int n = 0; n < 12; ++n) turn(rig.workers());
    REQUIRE(traffic.received == kFlows);
    CHECK(check_held(rig) >= kFlows);

    const auto there = rig.state(kFrom).sessions->stats().active;
    REQUIRE(there > 10);
    const pipeline::BucketSet buckets = owned_by(rig.state(kFrom));
    REQUIRE(rig.mover().start(buckets, kFrom, kTo));
    send_round();
    for (unsigned n = 0; n < after; ++n) turn(rig.workers());
    const bool was_busy = rig.mover().busy();
    for (int n = 0; n < 20; ++n) {
        if (n < 4) send_round();
        turn(paused);
        CHECK(control::unaccounted(rig.ledger()) == 0);
    }
    if (was_busy && paused != 2) CHECK(rig.mover().busy());  // the third's part may be over
    static unsigned ended_without = 0;                       // moves that ended while the third worker stood still
    if (!rig.mover().busy() && was_busy) {
        ++ended_without;
        CHECK_FALSE(rig.mover().start(buckets, kTo, kFrom));  // it may still look at this one
    }
    if (paused == 2 && after == 13) CHECK(ended_without > 0);
    for (int n = 0; n < 40; ++n) turn(rig.workers());
    REQUIRE_FALSE(rig.mover().busy());
    CHECK(rig.mover().last().sessions == there);
    CHECK(rig.mover().last().lost == 0);
    CHECK(traffic.received == sent);
    CHECK(traffic.wrong == 0);
    CHECK(rig.state(kFrom).sessions->stats().active == 0);
    CHECK(rig.sessions() == kFlows);
    CHECK(check_held(rig) >= kFlows);
    CHECK(rig.ledger().dropped == 0);
    CHECK(rig.ledger().held == 0);
    // And back, which begins as soon as each has come round.
    REQUIRE(rig.mover().start(buckets, kTo, kFrom));
    send_round();
    for (int n = 0; n < 40; ++n) turn(rig.workers());
    REQUIRE_FALSE(rig.mover().busy());
    CHECK(rig.state(kFrom).sessions->stats().active == there);
    CHECK(traffic.received == sent);
    CHECK(traffic.wrong == 0);
    CHECK(check_held(rig) >= kFlows);
}

TEST_CASE("rebalance: a worker that is stopped anywhere in its loop loses nothing, and its rules stay held",
          "[handoff]") {
    constexpr unsigned kFlows = 200, kPauses = 15, kWindow = 300;
    INFO("seed " << test::seed());
    const unsigned workers = GENERATE(2u, 3u);
    INFO(workers << " workers");
    HandoffRig rig(workers);
    rig.start();
    RandomMoves moves(rig);
    NumberedTraffic traffic{kFlows};
    std::vector<test::Bytes> frames = traffic.next(1);
    // Alone, so that no burst has two packets of a new flow, which miss both.
    const std::vector<test::Bytes> first = rig.exchange(rig.west, rig.east, frames);
    traffic.check(first);
    traffic.received = first.size();
    std::uint64_t sent = frames.size();
    REQUIRE(sent == traffic.received);
    std::size_t next = frames.size();
    const auto some_traffic = [&] {
        if (next == frames.size()) frames = traffic.next(1), next = 0;
        for (; next < frames.size() && sent - traffic.received < kWindow; ++next, ++sent)
            rig.send(rig.west, frames[next]);
        traffic.take(rig.east);
        moves.step();
        std::this_thread::yield();
    };
    for (unsigned n = 0; n < kPauses; ++n) {
        {
            const Pause pause(rig.thread(static_cast<unsigned>(moves.random() % workers)));
            for (auto turns = 20 + moves.random() % 200; turns != 0; --turns) some_traffic();
        }
        // The move that it has held up is over, and the next one has begun.
        for (const unsigned before = moves.moves; moves.moves == before;) some_traffic();
    }
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (traffic.received < sent && std::chrono::steady_clock::now() < limit) {
        traffic.take(rig.east);
        moves.mover.step();
    }
    moves.end();
    CHECK(traffic.received == sent);
    CHECK(traffic.wrong == 0);
    CHECK(moves.moves >= kPauses);
    CHECK(rig.exchange(rig.east, rig.west, test::replies(kFlows)).size() == kFlows);
    rig.stop();
    CHECK(check_held(rig) >= kFlows);
    check_all_met(rig, moves, kFlows, sent);
}

}  // namespace cachewire
