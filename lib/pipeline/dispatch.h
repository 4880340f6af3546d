#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Between Front and Back, where there are several workers: own packets go on, the others into their owner's ring, and
// what comes out of the rings goes through Back here.
//
// Lines touched a packet that is handed over, and why:
//   lane and key    read; in L1 since the parser wrote them.
//   ring slot       two lines, written whole; the owner had them last, so they are asked for a few slots ahead.
//   owner table     one of 8 lines that nobody writes.
// Not the mbuf and not the header: their lines go over to the owner when it asks for them.
#include <cstdint>

#include "pipeline/snapshot.h"
#include "pipeline/worker_state.h"

namespace cachewire::pipeline {

// After Front. Keeps the lanes that this worker owns.
void hand_over_foreign(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept;

// By whose hash the owner of a lane is found: its own, or that of what an ICMP error quotes.
std::uint32_t owner_hash(const Snapshot& snapshot, const Lane& lane, const net::FlowKey& key) noexcept;
[[nodiscard]] bool is_unfollowed_piece(const Lane& lane, const net::FlowKey& key) noexcept;

// The burst holds lanes that were handed over, or have waited, on their owner. `outdated`: some were parsed by another
// configuration; `pieces`: some are pieces whose first one has not been asked for.
void go_on(WorkerState& worker, const Snapshot& snapshot, bool outdated, bool pieces) noexcept;

// How many packets and frames wait. Asked before the snapshot is taken, as returns_ready() is: whoever sees a packet
// then has a snapshot at least as new as the one it was parsed by.
void look_into_rings(WorkerState& worker) noexcept;

// Takes what look_into_rings() has seen, a burst from each ring, through Back. Returns how many packets that were.
unsigned take_handed(WorkerState& worker, const Snapshot& snapshot) noexcept;

// Frames of other workers into this one's TX buffers, as far as there is room. Returns how many.
unsigned take_sends(WorkerState& worker, const Snapshot& snapshot) noexcept;

// The ledger's line, then the packets that it counts as held.
inline void publish_iteration(WorkerState& worker) noexcept {
    LedgerLine line = worker.ledger;
    line.held += worker.handoff.in_rings;
    worker.published_ledger.publish(line);
    if (worker.handoff.workers != 1) worker.handoff.publish();
    if (worker.feeds.unpublished != 0) [[unlikely]]
        worker.feeds.publish();
}

// After every worker has returned: what still lies in this one's rings is dropped as `shutdown`.
void drop_handed(WorkerState& worker) noexcept;

}  // namespace cachewire::pipeline
