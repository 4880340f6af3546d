#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The end of a worker's iteration: what the TX stage collected goes to the devices, moving from `held` to `tx` in the
// ledger. What a device does not take stays held. Called by the worker alone, also while draining.
#include <cstdint>

#include "pipeline/port_state.h"
#include "pipeline/snapshot.h"
#include "pipeline/worker_state.h"

namespace cachewire::pipeline {

// A port or its link went down with packets in its buffer. Whose they were is not kept, so they count under tenant ""
// and no class.
inline void drop_held(WorkerState& worker, std::uint16_t port, DropReason reason) noexcept {
    const unsigned n = worker.tx[port].discard();
    worker.ledger.held -= n;
    worker.ledger.dropped += n;
    worker.tenants[kNoTenant].drops[static_cast<unsigned>(reason)].add(n);
    worker.ports[port].tx_dropped.add(n);
    worker.class_tx_dropped[port][0].add(n);
}

// A port without a TX queue for this worker: to the worker that holds it. What its ring has no room for stays here.
inline unsigned hand_to_holder(WorkerState& worker, std::uint16_t port) noexcept {
    SendRing& ring = *worker.handoff.send_out[port];
    std::uint64_t bytes = 0;
    const unsigned given = worker.tx[port].flush_with(
        [&ring](rte_mbuf* const* mbufs, unsigned n) {
            unsigned k = 0;
            while (k < n && ring.push(mbufs[k])) ++k;
            return k;
        },
        bytes);
    worker.ledger.held -= given;
    worker.handoff.in_rings += given;
    worker.handoff.unpublished_sends |= std::uint64_t{1} << port;
    worker.handoff_counters.sends_given.add(given);
    return given;
}

// Returns how many packets the devices took.
inline unsigned flush_tx(WorkerState& worker, const Snapshot& snapshot) noexcept {
    unsigned total = 0;
    for (std::uint16_t p = 0; p < snapshot.ports.size(); ++p) {
        if (worker.tx[p].size() == 0) continue;
        const Port& port = snapshot.ports[p];
        if (!port.sends) {
            drop_held(worker, p, why_not_sent(port));
            continue;
        }
        if (worker.handoff.workers != 1 && worker.handoff.send_out[p] != nullptr) {
            total += hand_to_holder(worker, p);
            continue;
        }
        std::uint64_t bytes = 0;
        const std::uint16_t queue = tx_place(worker.index, p, port.txq, worker.handoff.workers).queue;
        const unsigned sent = worker.tx[p].flush(port.ethdev, queue, bytes);
        worker.ledger.held -= sent;
        worker.ledger.tx += sent;
        worker.ports[p].tx_packets.add(sent);
        worker.ports[p].tx_bytes.add(bytes);
        total += sent;
    }
    return total;
}

}  // namespace cachewire::pipeline
