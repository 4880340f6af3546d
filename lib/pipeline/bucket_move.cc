// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/bucket_move.h"

#include <algorithm>
#include <bit>

#include <rte_mbuf.h>

#include "base/clock.h"
#include "pipeline/dispatch.h"
#include "pipeline/forwarding.h"
#include "pipeline/tx_flush.h"

namespace cachewire::pipeline {

namespace {

using Stage = BucketMove::Stage;
using Leg = BucketMove::Leg;

// A step beside a burst of packets: it takes about as long as one.
constexpr std::uint32_t kMarkedAtOnce = 256;  // entries looked at, two lines each, one behind the other
constexpr std::uint32_t kSessionsAtOnce = 32;
constexpr std::uint32_t kMarkWordsAtOnce = 4096;
constexpr std::size_t kPieceSetsAtOnce = 64;
constexpr unsigned kReplayBursts = 4;
// A device that takes nothing more for so many iterations keeps no order anyway: its frames are about to be dropped.
constexpr std::uint32_t kPatience = 20000;

bool is_moving(const BucketMove& move, std::uint32_t hash) noexcept { return move.buckets.has(owner_bucket(hash)); }

void change_owner(WorkerState& worker, const BucketMove& move) noexcept {
    for (unsigned bucket = 0; bucket < kOwnerBuckets; ++bucket)
        if (move.buckets.has(bucket)) worker.handoff.owners[bucket] = static_cast<std::uint8_t>(move.to);
}

// What this worker has given to `from` up to here is all that `from` gets of it.
void set_marker(WorkerState& worker, BucketMove& move, Stage stage) noexcept {
    BucketMove::Progress& mine = move.progress[worker.index];
    change_owner(worker, move);
    mine.marker.store(worker.handoff.peers[move.from].out->position(), std::memory_order_relaxed);
    mine.done.store(stage, std::memory_order_release);
}

// True: done. Sessions that begin behind the walk are noted by the table.
bool mark_some(WorkerState& worker, BucketMove& move) noexcept {
    session::Table& table = *worker.sessions;
    if (move.cursor == 0) table.note_new(move.marks.data());
    std::uint32_t found = 0;
    const std::uint32_t end = std::min(table.used_end(), move.cursor + kMarkedAtOnce);
    for (; move.cursor < end; ++move.cursor) {
        const session::HotEntry& hot = table.hot(move.cursor);
        if (hot.state() == session::State::free || hot.is_companion()) continue;
        if (!is_moving(move, table.cold(move.cursor).hash)) continue;
        move.marks[move.cursor / 64] |= std::uint64_t{1} << move.cursor % 64;
        ++found;
    }
    std::atomic<std::uint32_t>& sessions = move.progress[worker.index].sessions;
    sessions.store(sessions.load(std::memory_order_relaxed) + found, std::memory_order_relaxed);
    return move.cursor >= table.used_end();
}

bool have_all_passed(WorkerState& worker, const BucketMove& move) noexcept {
    for (unsigned other = 0; other < move.progress.size(); ++other) {
        if (other == move.from) continue;
        const BucketMove::Progress& theirs = move.progress[other];
        if (theirs.done.load(std::memory_order_acquire) < (other == move.to ? Stage::park : Stage::pass)) return false;
        if (!worker.handoff.peers[other].in->has_taken(theirs.marker.load(std::memory_order_relaxed))) return false;
    }
    return true;
}

// Every packet of the buckets that was given to this worker has been through its Back.
void stop_owning(WorkerState& worker, const Snapshot& snapshot, BucketMove& move) noexcept {
    change_owner(worker, move);
    worker.sessions->note_new(nullptr);
    for (std::size_t port = 0; port < snapshot.ports.size(); ++port) {
        if (const FeedRing* feed = worker.feeds.to[port]; feed != nullptr) {
            move.sends[port] = feed->position();
        } else if (const SendRing* ring = worker.handoff.send_out[port]; ring != nullptr) {
            move.sends[port] = ring->position();
        }
        if (worker.feeds.to[port] == nullptr && worker.tx[port].size() != 0) move.unsent |= std::uint64_t{1} << port;
    }
    move.cursor = 0;
    move.progress[worker.index].sessions.store(0, std::memory_order_relaxed);
    move.leg = Leg::sessions;
}

unsigned hand_out_sessions(WorkerState& worker, BucketMove& move) noexcept {
    session::Table& table = *worker.sessions;
    const std::uint32_t end = (table.used_end() + 63) / 64;
    unsigned given = 0;
    for (std::uint32_t words = 0; words < kMarkWordsAtOnce && given < kSessionsAtOnce && move.cursor < end;) {
        std::uint64_t& bits = move.marks[move.cursor];
        if (bits == 0) {
            ++move.cursor, ++words;
            continue;
        }
        const std::uint32_t index = move.cursor * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
        const session::HotEntry& hot = table.hot(index);
        const bool there = hot.state() != session::State::free && !hot.is_companion();
        if (there && is_moving(move, table.cold(index).hash)) {
            MovedItem* const item = move.items.claim();
            if (item == nullptr) break;
            item->kind = MovedItem::Kind::session;
            table.hand_out(index, worker.outcomes, item->session);
            ++given;
        }
        bits &= bits - 1;
    }
    std::atomic<std::uint32_t>& sessions = move.progress[worker.index].sessions;
    sessions.store(sessions.load(std::memory_order_relaxed) + given, std::memory_order_relaxed);
    if (move.cursor >= end) {
        move.cursor = 0;
        move.leg = Leg::pieces;
    }
    return given;
}

// First pieces that this worker remembers for the later ones, which go to `to` now.
void hand_out_pieces(WorkerState& worker, const Snapshot& snapshot, BucketMove& move) noexcept {
    const std::size_t sets = worker.fragments.capacity() / session::FragmentTable::kWays;
    const std::size_t end = std::min<std::size_t>(sets, move.cursor + kPieceSetsAtOnce);
    for (; move.cursor < end; ++move.cursor) {
        if (move.items.room() < session::FragmentTable::kWays) return;
        worker.fragments.visit(move.cursor, [&](const session::FragmentTable::Remembered& piece) {
            if (!is_moving(move, net::flow_hash(piece.key, snapshot.hash_seed))) return;
            MovedItem* const item = move.items.claim();
            item->kind = MovedItem::Kind::first_piece;
            item->piece = piece;
        });
    }
    if (move.cursor >= sets) move.leg = Leg::frames;
}

// Who holds a TX queue, or schedules the port, and stands still is waited for, as he is for his marker.
bool have_frames_left(WorkerState& worker, const Snapshot& snapshot, BucketMove& move) noexcept {
    const bool patient = ++move.patience <= kPatience;
    bool left = true;
    for (std::size_t port = 0; port < snapshot.ports.size(); ++port) {
        if (const FeedRing* feed = worker.feeds.to[port]; feed != nullptr) {  // nothing stays in the TX buffer
            left = left && feed->is_taken(move.sends[port]);
            continue;
        }
        const std::uint64_t bit = std::uint64_t{1} << port;
        const SendRing* const ring = worker.handoff.send_out[port];
        if ((move.unsent & bit) != 0 && (worker.tx[port].size() == 0 || (ring == nullptr && !patient))) {
            move.unsent &= ~bit;
            if (ring != nullptr) move.sends[port] = ring->position();
        }
        if (ring != nullptr && !ring->is_taken(move.sends[port])) left = false;
    }
    return left && move.unsent == 0;
}

unsigned step_as_from(WorkerState& worker, const Snapshot& snapshot, BucketMove& move) noexcept {
    if (move.leg == Leg::idle) {
        if (!have_all_passed(worker, move)) return 0;
        stop_owning(worker, snapshot, move);
    }
    unsigned given = 0;
    if (move.leg == Leg::sessions) given = hand_out_sessions(worker, move);
    if (move.leg == Leg::pieces) hand_out_pieces(worker, snapshot, move);
    if (move.leg == Leg::frames && have_frames_left(worker, snapshot, move))
        if (MovedItem* const item = move.items.claim(); item != nullptr) {
            item->kind = MovedItem::Kind::end;
            move.leg = Leg::said;
            move.progress[worker.index].finished.store(true, std::memory_order_release);
        }
    move.items.publish();
    return given;
}

unsigned take_items(WorkerState& worker, const Snapshot& snapshot, BucketMove& move) noexcept {
    const std::uint32_t count = std::min(move.items.ready(), 2 * kSessionsAtOnce);
    std::uint32_t lost = 0;
    for (std::uint32_t k = 0; k < count; ++k) {
        const MovedItem& item = move.items.take();
        switch (item.kind) {
            case MovedItem::Kind::session:
                lost += worker.sessions->take_in(item.session, worker.outcomes) ? 0 : 1;
                break;
            case MovedItem::Kind::first_piece:
                worker.fragments.remember(item.piece.key, item.piece.id,
                                          net::flow_hash(item.piece.key, snapshot.hash_seed), item.piece.first,
                                          item.piece.since_tsc);
                break;
            case MovedItem::Kind::end:
                move.has_all = true;
                break;
        }
    }
    if (count != 0) move.items.release();
    std::atomic<std::uint32_t>& sum = move.progress[worker.index].lost;
    sum.store(sum.load(std::memory_order_relaxed) + lost, std::memory_order_relaxed);
    return count;
}

unsigned replay_burst(WorkerState& worker, const Snapshot& snapshot, BucketMove& move) noexcept {
    Burst& burst = worker.burst;
    const unsigned count = std::min<std::uint32_t>(move.parked_end - move.parked_begin, kMaxLanes);
    burst.begin(count);
    bool outdated = false, pieces = false;
    for (unsigned k = 0; k < count; ++k) {
        const auto i = static_cast<Burst::LaneIndex>(k);
        const Handed& from = move.parked[move.parked_begin++ % BucketMove::kParked];
        burst.lane(i) = from.lane;
        burst.key(i) = from.key;
        outdated |= from.generation != snapshot.generation;
        pieces |= is_unfollowed_piece(from.lane, from.key);
    }
    worker.ledger.held -= count;
    worker.now_tsc = worker.last_tsc = base::now_tsc();
    go_on(worker, snapshot, outdated, pieces);
    flush_tx(worker, snapshot);  // beside what the next iteration brings they might not fit into the TX buffer
    return count;
}

unsigned step_as_to(WorkerState& worker, const Snapshot& snapshot, BucketMove& move) noexcept {
    unsigned moved = take_items(worker, snapshot, move);
    if (!move.has_all) return moved;
    worker.handoff.parking = nullptr;  // what is replayed is not parked again
    for (unsigned n = 0; n < kReplayBursts && move.parked_begin != move.parked_end; ++n)
        moved += replay_burst(worker, snapshot, move);
    if (move.parked_begin != move.parked_end) {
        worker.handoff.parking = &move;  // and what comes meanwhile stays behind it
    } else {
        move.progress[worker.index].finished.store(true, std::memory_order_release);
    }
    return moved;
}

}  // namespace

unsigned step_move(WorkerState& worker, const Snapshot& snapshot, BucketMove& move) noexcept {
    const Stage stage = move.stage.load(std::memory_order_acquire);
    BucketMove::Progress& mine = move.progress[worker.index];
    const Stage done = mine.done.load(std::memory_order_relaxed);
    if (mine.finished.load(std::memory_order_relaxed)) return 0;
    if (worker.index == move.from) {
        if (stage == Stage::mark && done == Stage::none && mark_some(worker, move))
            mine.done.store(Stage::mark, std::memory_order_release);
        if (stage == Stage::give_up && done != Stage::give_up) {
            worker.sessions->note_new(nullptr);
            mine.done.store(Stage::give_up, std::memory_order_release);
        }
        return stage == Stage::pass ? step_as_from(worker, snapshot, move) : 0;
    }
    if (worker.index == move.to) {
        if (stage == Stage::park && done == Stage::none) {
            worker.handoff.parking = &move;
            set_marker(worker, move, Stage::park);
        }
        return stage == Stage::pass ? step_as_to(worker, snapshot, move) : 0;
    }
    if (stage == Stage::pass && done == Stage::none) set_marker(worker, move, Stage::pass);
    return 0;
}

void park_arrivals(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
    BucketMove& move = *worker.handoff.parking;
    burst.filter([&](auto i) {
        const Lane& lane = burst.lane(i);
        if (!is_moving(move, owner_hash(snapshot, lane, burst.key(i)))) return true;
        if (move.parked_end - move.parked_begin == BucketMove::kParked) return burst.drop(i, DropReason::handoff_full);
        move.parked[move.parked_end++ % BucketMove::kParked] = {lane, burst.key(i), nullptr, snapshot.generation};
        ++worker.ledger.held;
        return false;
    });
    std::atomic<std::uint32_t>& most = move.progress[worker.index].parked;
    most.store(std::max(most.load(std::memory_order_relaxed), move.parked_end - move.parked_begin),
               std::memory_order_relaxed);
}

void drop_parked(WorkerState& worker) noexcept {
    BucketMove* const move = worker.handoff.parking;
    if (move == nullptr) return;
    for (; move->parked_begin != move->parked_end; ++move->parked_begin) {
        const Lane& lane = move->parked[move->parked_begin % BucketMove::kParked].lane;
        rte_pktmbuf_free(lane.mbuf);
        --worker.ledger.held;
        ++worker.ledger.dropped;
        worker.tenants[lane.tenant].drops[static_cast<unsigned>(DropReason::shutdown)].add(1);
    }
    worker.handoff.parking = nullptr;
}

}  // namespace cachewire::pipeline
