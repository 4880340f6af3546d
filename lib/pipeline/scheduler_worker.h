#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The lcore that schedules: takes what the workers feed it, puts it into the queues of its class, and gives each device
// what its port's scheduler lets go. One lcore for all ports that have a scheduler; their TX queue 0 is its alone.
//
// Of a packet it touches nothing until it is sent: the ring's element says length, tenant and class. The mbuf's first
// line, which the driver reads, is fetched when the packet is chosen.
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/counter.h"
#include "base/seq_lock.h"
#include "pipeline/scheduler_feed.h"
#include "pipeline/snapshot_reader.h"
#include "pipeline/worker_state.h"
#include "qos/scheduler.h"

namespace cachewire::pipeline {

// scheduler: rw; telemetry: ro. By class slot; of own frames the last one.
struct ScheduledCounters {
    base::Counter packets, bytes, dropped, queued;
};

struct ScheduledPort {
    ScheduledPort(std::uint16_t index, qos::Scheduler queues) : port(index), scheduler(std::move(queues)) {
        queue_of.fill(static_cast<std::uint8_t>(qos::Scheduler::kLastQueue));
        queue_of[kOwnFrame] = static_cast<std::uint8_t>(qos::Scheduler::kFirstQueue);
    }

    std::uint16_t port;  // index in the snapshot
    qos::Scheduler scheduler;
    std::array<std::uint8_t, kLabels> queue_of;  // by class slot
    std::vector<FeedRing*> feeds;                // by worker

    // Chosen, and not taken by the device yet: first in the next round, before anything else is chosen.
    std::array<qos::Scheduled, 32> chosen;
    unsigned chosen_first = 0, chosen_end = 0;

    PortCounters counters;
    std::array<ScheduledCounters, kLabels> classes;
};

class SchedulerWorker {
  public:
    SchedulerWorker(unsigned lcore, SnapshotReader reader, std::vector<std::unique_ptr<ScheduledPort>> ports);

    // On its lcore; returns once stopped. begin() and iterate() are what it does, for those who drive it themselves.
    void run() noexcept;
    void begin() noexcept { reader_.online(); }
    void iterate() noexcept;
    // After the workers have returned: drops what it has, and returns.
    void stop() noexcept { stop_.store(true, std::memory_order_release); }
    void drop_all() noexcept;

    [[nodiscard]] unsigned lcore() const noexcept { return lcore_; }
    [[nodiscard]] const std::vector<std::unique_ptr<ScheduledPort>>& ports() const noexcept { return ports_; }
    [[nodiscard]] const ScheduledPort* find(std::uint16_t port) const noexcept {
        for (const auto& each : ports_)
            if (each->port == port) return each.get();
        return nullptr;
    }
    [[nodiscard]] const std::vector<TenantCounters>& tenants() const noexcept { return tenants_; }
    [[nodiscard]] LedgerLine published_ledger() const noexcept { return published_.read(); }
    [[nodiscard]] std::uint64_t iterations() const noexcept { return iterations_.read(); }

  private:
    void take_fed(ScheduledPort& port) noexcept;
    void send(ScheduledPort& port, const Port& device, std::uint64_t now) noexcept;
    void drop_port(ScheduledPort& port, DropReason reason) noexcept;
    void drop(ScheduledPort& port, const qos::Scheduled& packet, DropReason reason) noexcept;
    void publish() noexcept;

    unsigned lcore_;
    SnapshotReader reader_;
    std::vector<std::unique_ptr<ScheduledPort>> ports_;
    std::vector<TenantCounters> tenants_;  // kMaxTenants; drops alone
    // What became of what the workers gave. Their lines have it as `held`, so here that is negative.
    std::uint64_t sent_ = 0, dropped_ = 0;
    base::SeqLock<LedgerLine> published_;
    base::Counter iterations_;
    // control: rw; scheduler: ro
    alignas(base::kCacheLine) std::atomic<bool> stop_{false};
};

}  // namespace cachewire::pipeline
