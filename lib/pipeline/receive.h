#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A queue's packets through the whole row of stages, in whichever layout the burst has. A configured burst over
// kMaxLanes runs in sub-bursts, and a short one means that the queue is empty. `budget`: TSC cycles that a burst should
// take at most where others wait (queue_share.h); 0: nobody does.
#include <algorithm>

#include "base/clock.h"
#include "pipeline/dispatch.h"
#include "pipeline/forwarding.h"
#include "pipeline/snapshot.h"
#include "pipeline/worker_state.h"

namespace cachewire::pipeline {

template <class AnyBurst>
[[gnu::always_inline]] inline unsigned receive(WorkerState& worker, const Snapshot& snapshot, const RxQueue& queue,
                                               AnyBurst& burst, std::uint64_t budget) noexcept {
    const Port& port = snapshot.ports[queue.port];
    if (!port.attached) [[unlikely]]
        return 0;
    worker.rx_queue = queue;
    worker.rx_queue.ethdev = port.ethdev;  // a device that came back may have another id
    QueueShare& share = worker.rx_shares[queue.port];
    unsigned total = 0;
    do {
        worker.rx_wanted = static_cast<std::uint16_t>(budget == 0 ? kMaxLanes : share.limit());
        const unsigned sub_burst = std::min<unsigned>(snapshot.burst, worker.rx_wanted);
        worker.now_tsc = worker.last_tsc = base::now_tsc();
        const std::uint64_t before = worker.ledger.rx, dropped = worker.ledger.dropped;
        const std::uint64_t misses = worker.memo.misses.read();
        Front::run(worker, snapshot, burst);
        const auto received = static_cast<unsigned>(worker.ledger.rx - before);
        total += received;
        if (worker.handoff.workers != 1) hand_over_foreign(worker, snapshot, burst);
        if (burst.has_work()) Back::run(worker, snapshot, burst);
        if (received < sub_burst) break;
        if (budget == 0) continue;
        // Packets without a session are what a flood of new ones consists of, refused or not.
        share.adapt(received, std::max(worker.ledger.dropped - dropped, worker.memo.misses.read() - misses),
                    worker.last_tsc - worker.now_tsc, budget);
        if (sub_burst < kMaxLanes) break;  // the others' turn
    } while (total < snapshot.burst);
    return total;
}

}  // namespace cachewire::pipeline
