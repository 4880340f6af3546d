// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/scheduler_worker.h"

#include <algorithm>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/clock.h"
#include "pipeline/port_state.h"

namespace cachewire::pipeline {

namespace {

// Of each ring in a round: two bursts, so that no worker's ring waits long for the others.
constexpr std::uint32_t kTakeAtOnce = 64;
constexpr std::uint16_t kTxQueue = 0;

void add(base::Counter& gauge, std::int64_t n) noexcept { gauge.set(gauge.read() + static_cast<std::uint64_t>(n)); }

}  // namespace

SchedulerWorker::SchedulerWorker(unsigned lcore, SnapshotReader reader,
                                 std::vector<std::unique_ptr<ScheduledPort>> ports)
    : lcore_(lcore), reader_(reader), ports_(std::move(ports)), tenants_(kMaxTenants) {}

void SchedulerWorker::run() noexcept {
    begin();
    while (!stop_.load(std::memory_order_acquire)) iterate();
    drop_all();
    reader_.offline();
}

void SchedulerWorker::iterate() noexcept {
    const Snapshot& snapshot = reader_.take();
    for (const auto& port : ports_) {
        take_fed(*port);
        const Port& device = snapshot.ports[port->port];
        if (!device.sends) [[unlikely]]
            drop_port(*port, why_not_sent(device));
        else
            send(*port, device, base::now_tsc());
    }
    publish();
    iterations_.add(1);
    reader_.quiescent();
}

void SchedulerWorker::take_fed(ScheduledPort& port) noexcept {
    for (FeedRing* ring : port.feeds) {
        const std::uint32_t count = std::min(ring->ready(), kTakeAtOnce);
        if (count == 0) continue;
        for (std::uint32_t k = 0; k < count; ++k) {
            const qos::Scheduled packet = ring->take();
            if (!port.scheduler.enqueue(port.queue_of[packet.traffic_class], packet)) [[unlikely]]
                drop(port, packet, DropReason::scheduler_full);
            else
                add(port.classes[packet.traffic_class].queued, 1);
        }
        ring->release();
    }
}

void SchedulerWorker::send(ScheduledPort& port, const Port& device, std::uint64_t now) noexcept {
    if (port.chosen_first == port.chosen_end) {
        port.chosen_first = 0;
        port.chosen_end = port.scheduler.dequeue(now, port.chosen);
        if (port.chosen_end == 0) return;
    }
    std::array<rte_mbuf*, std::tuple_size_v<decltype(port.chosen)>> mbufs;
    const unsigned count = port.chosen_end - port.chosen_first;
    for (unsigned k = 0; k < count; ++k) mbufs[k] = static_cast<rte_mbuf*>(port.chosen[port.chosen_first + k].packet);
    const unsigned taken = rte_eth_tx_burst(device.ethdev, kTxQueue, mbufs.data(), static_cast<std::uint16_t>(count));
    for (unsigned k = 0; k < taken; ++k) {
        const qos::Scheduled& packet = port.chosen[port.chosen_first + k];
        ScheduledCounters& counters = port.classes[packet.traffic_class];
        counters.packets.add(1);
        counters.bytes.add(packet.bytes);
        add(counters.queued, -1);
        port.counters.tx_bytes.add(packet.bytes);
    }
    port.counters.tx_packets.add(taken);
    port.chosen_first += taken;
    sent_ += taken;
}

void SchedulerWorker::drop(ScheduledPort& port, const qos::Scheduled& packet, DropReason reason) noexcept {
    rte_pktmbuf_free(static_cast<rte_mbuf*>(packet.packet));
    ++dropped_;
    port.counters.tx_dropped.add(1);
    port.classes[packet.traffic_class].dropped.add(1);
    tenants_[packet.tenant].drops[static_cast<unsigned>(reason)].add(1);
}

// What it holds; not what still lies in rings.
void SchedulerWorker::drop_port(ScheduledPort& port, DropReason reason) noexcept {
    const auto drop_queued = [&](const qos::Scheduled& packet) {
        add(port.classes[packet.traffic_class].queued, -1);
        drop(port, packet, reason);
    };
    for (; port.chosen_first != port.chosen_end; ++port.chosen_first) drop_queued(port.chosen[port.chosen_first]);
    while (!port.scheduler.empty()) drop_queued(port.scheduler.take());
}

void SchedulerWorker::drop_all() noexcept {
    for (const auto& port : ports_) {
        drop_port(*port, DropReason::shutdown);
        for (FeedRing* ring : port->feeds) {
            while (ring->ready() != 0) drop(*port, ring->take(), DropReason::shutdown);
            ring->release();
        }
    }
    publish();
}

void SchedulerWorker::publish() noexcept {
    LedgerLine line;
    line.tx = sent_;
    line.dropped = dropped_;
    line.held = 0 - sent_ - dropped_;
    published_.publish(line);
}

}  // namespace cachewire::pipeline
