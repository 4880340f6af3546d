// SPDX-License-Identifier: BSD-3-Clause
#include "by_stage.h"

#include "base/clock.h"
#include "pipeline/forwarding.h"
#include "pipeline/tx_flush.h"

namespace cachewire::bench {

namespace {

namespace stages = pipeline::stages;

// What the worker does between the stages' rows.
struct Flush {
    static void process(pipeline::WorkerState& worker, const pipeline::Snapshot& snapshot, auto&) noexcept {
        pipeline::flush_tx(worker, snapshot);
    }
};

// The order is forwarding.h's.
template <class... Row>
struct ByStage;
template <pipeline::FieldSet kFront, class... Front, pipeline::FieldSet kBack, class... Back>
struct ByStage<pipeline::PipelineAfter<kFront, Front...>, pipeline::PipelineAfter<kBack, Back...>> {
    static void run(pipeline::WorkerState& worker, const pipeline::Snapshot& snapshot, auto& burst) noexcept {
        (bench_stage<Front>(worker, snapshot, burst), ...);
        (bench_stage<Back>(worker, snapshot, burst), ...);
        stages::Punt::process(worker, snapshot, burst);
        stages::Drop::process(worker, burst);
        bench_stage<Flush>(worker, snapshot, burst);
    }
};

}  // namespace

unsigned iterate_by_stage(pipeline::WorkerState& worker, const pipeline::Snapshot& snapshot,
                          const pipeline::RxQueue& queue) noexcept {
    worker.rx_queue = queue;
    worker.now_tsc = worker.last_tsc = base::now_tsc();
    const std::uint64_t before = worker.ledger.rx;
    using Row = ByStage<pipeline::Front, pipeline::Back>;
    if (worker.mbuf_burst != nullptr) {
        Row::run(worker, snapshot, *worker.mbuf_burst);
    } else {
        Row::run(worker, snapshot, worker.burst);
    }
    return static_cast<unsigned>(worker.ledger.rx - before);
}

}  // namespace cachewire::bench
