#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What comes back to a worker from the slow path (punt.h), and what is left of both queues at the end. The worker's
// alone.
#include <cstdint>

#include "pipeline/snapshot.h"
#include "pipeline/worker_state.h"

namespace cachewire::pipeline {

// At most so many an iteration, so that a full queue is no gap in receiving.
inline constexpr std::uint32_t kReturnsAtOnce = kMaxLanes;

// How many there are. Asked before the snapshot is taken: the slow path publishes a neighbor first and gives its
// packets back then, so whoever sees the packets sees the neighbor.
inline std::uint32_t returns_ready(WorkerState& worker) noexcept { return worker.from_slow_path.ready(); }

// Takes `ready` of them at most: own frames go to the TX buffers, held packets through the pipeline or to the drops.
// Returns how many packets that were.
unsigned take_returns(WorkerState& worker, const Snapshot& snapshot, std::uint32_t ready) noexcept;

// The worker's last act. Nobody polls the queues any more, so it empties both; what was held, there or by the slow path
// itself, is dropped as `shutdown`.
void drop_punted(WorkerState& worker) noexcept;

}  // namespace cachewire::pipeline
