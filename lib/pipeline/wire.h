#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Transparent pairs: a frame of theirs leaves by the other port as it came. What is IP takes the whole row of stages,
// with a next hop that its port knows; what is not skips list, session and route. Ordinary routing pays a test a burst.
//
// Lines touched: mbuf line 0; the header line only where the device took a tag off, which is put back.
#include "pipeline/worker_state.h"

namespace cachewire::pipeline {

// The burst's lanes of a pair into the TX buffers; the others stay live.
void send_wire(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept;

// What the parser has set apart: past the tenant's policers and out.
void send_raw(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept;

}  // namespace cachewire::pipeline
