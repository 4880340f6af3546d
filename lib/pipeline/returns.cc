// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/returns.h"

#include <algorithm>

#include <rte_mbuf.h>

#include "base/clock.h"
#include "pipeline/dispatch.h"
#include "pipeline/forwarding.h"
#include "pipeline/port_state.h"

namespace cachewire::pipeline {

namespace {

using ParseAgain = PipelineAfter<stages::Rx::kWrites, stages::Parse>;

void count_drop(WorkerState& worker, std::uint16_t tenant, DropReason reason, unsigned n = 1) noexcept {
    worker.tenants[tenant].drops[static_cast<unsigned>(reason)].add(n);
    worker.ledger.dropped += n;
}

void transmit(WorkerState& worker, const Snapshot& snapshot, const Return& from) noexcept {
    ++worker.ledger.originated;
    const Port* port = from.port < snapshot.ports.size() ? &snapshot.ports[from.port] : nullptr;
    const bool sends = port != nullptr && port->sends;
    put_label(from.mbuf, {from.tenant, kOwnFrame});
    if (sends && worker.tx[from.port].push(from.mbuf)) {
        ++worker.ledger.held;
        return;
    }
    if (sends) {
        worker.ports[from.port].tx_dropped.add(1);
        worker.class_tx_dropped[from.port][0].add(1);
    }
    const DropReason reason = port == nullptr ? DropReason::port_down : why_not_sent(*port);
    count_drop(worker, from.tenant, sends ? DropReason::tx_full : reason);
    rte_pktmbuf_free(from.mbuf);
}

// They are as received, so they take the whole way again: the list may have changed while they waited, the session is
// made now, and the policers have not seen them.
void run_again(WorkerState& worker, const Snapshot& snapshot, unsigned lanes) noexcept {
    Burst& burst = worker.burst;
    worker.now_tsc = worker.last_tsc = base::now_tsc();
    ParseAgain::run(worker, snapshot, burst);
    for (const auto i : burst.live()) burst.lane(i).flags |= kLaneRetried;
    if (worker.handoff.workers != 1) hand_over_foreign(worker, snapshot, burst);
    if (burst.has_work()) Back::run(worker, snapshot, burst);
    worker.ledger.held -= lanes;
}

}  // namespace

unsigned take_returns(WorkerState& worker, const Snapshot& snapshot, std::uint32_t ready) noexcept {
    Burst& burst = worker.burst;
    const unsigned count = std::min(ready, kReturnsAtOnce);
    burst.begin(count);
    unsigned lanes = 0;
    for (unsigned k = 0; k < count; ++k) {
        const Return from = worker.from_slow_path.take();
        switch (from.kind) {
            case ReturnKind::transmit:
                transmit(worker, snapshot, from);
                break;
            case ReturnKind::drop:
                --worker.ledger.held;
                count_drop(worker, from.tenant, from.drop);
                rte_pktmbuf_free(from.mbuf);
                break;
            case ReturnKind::retry: {
                auto&& lane = burst.lane(static_cast<Burst::LaneIndex>(lanes++));
                stages::Rx::begin_lane(lane, stages::Rx::fresh_lane(from.port), from.mbuf);
                break;
            }
        }
    }
    worker.from_slow_path.release();
    burst.begin(lanes);
    if (lanes != 0) run_again(worker, snapshot, lanes);
    return count;
}

void drop_punted(WorkerState& worker) noexcept {
    while (worker.to_slow_path.ready() != 0) rte_pktmbuf_free(worker.to_slow_path.take().mbuf);
    worker.to_slow_path.release();
    while (worker.from_slow_path.ready() != 0) {
        const Return from = worker.from_slow_path.take();
        rte_pktmbuf_free(from.mbuf);
        if (from.kind != ReturnKind::drop) continue;
        --worker.ledger.held;
        count_drop(worker, from.tenant, from.drop);
    }
    worker.from_slow_path.release();
    count_drop(worker, kNoTenant, DropReason::shutdown, static_cast<unsigned>(worker.ledger.held));
    worker.ledger.held = 0;
}

}  // namespace cachewire::pipeline
