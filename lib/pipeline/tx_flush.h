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

inline void count_unfed(WorkerState& worker, std::uint16_t port, Label label) noexcept {
    worker.tenants[label.tenant].drops[static_cast<unsigned>(DropReason::scheduler_feed_full)].add(1);
    worker.ports[port].tx_dropped.add(1);
    worker.class_tx_dropped[port][class_slot(label)].add(1);
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

// A port with a scheduler: to its lcore. It alone knows what is worth waiting, so nothing stays here, and what its ring
// has no room for is dropped.
[[gnu::noinline]] inline unsigned feed_scheduler(WorkerState& worker, std::uint16_t port) noexcept {
    FeedRing& ring = *worker.feeds.to[port];
    std::uint64_t bytes = 0;
    unsigned given = 0;
    const unsigned all = worker.tx[port].flush_with(
        [&](rte_mbuf* const* mbufs, unsigned n) {
            for (unsigned k = 0; k < n; ++k) {
                // Line 0, which the TX stage wrote in this iteration.
                const Label label = label_of(mbufs[k]);
                if (ring.push({mbufs[k], mbufs[k]->pkt_len, label.tenant, label.traffic_class})) {
                    ++given;
                    continue;
                }
                count_unfed(worker, port, label);
                rte_pktmbuf_free(mbufs[k]);
            }
            return n;
        },
        bytes);
    worker.ledger.held -= all;
    worker.ledger.dropped += all - given;
    worker.handoff.in_rings += given;
    worker.feeds.unpublished |= std::uint64_t{1} << port;
    return all;
}

// Returns how many packets the devices took.
inline unsigned flush_tx(WorkerState& worker, const Snapshot& snapshot) noexcept {
    unsigned total = 0;
    const auto ports = static_cast<std::uint16_t>(snapshot.ports.size());
    for (std::uint16_t p = 0; p < ports; ++p) {
        if (worker.tx[p].size() == 0) continue;
        const Port& port = snapshot.ports[p];
        if (!port.sends) {
            drop_held(worker, p, why_not_sent(port));
            continue;
        }
        if (worker.feeds.to[p] != nullptr) {
            total += feed_scheduler(worker, p);
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
