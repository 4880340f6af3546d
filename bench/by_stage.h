#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The shipped row of stages with each stage in a function of its own, so that a simulator can tell them apart. Not for
// cycles: the worker runs them as one inlined function.
#include "pipeline/worker_state.h"

namespace cachewire::bench {

// callgrind's names for stages: bench_stage<...::NAME, ...>.
template <class Stage, class... Arguments>
[[gnu::noinline]] void bench_stage(Arguments&... arguments) noexcept {
    Stage::process(arguments...);
}

// One burst of the queue, received to sent, in the layout that the worker has. Returns packets received.
unsigned iterate_by_stage(pipeline::WorkerState& worker, const pipeline::Snapshot& snapshot,
                          const pipeline::RxQueue& queue) noexcept;

}  // namespace cachewire::bench
