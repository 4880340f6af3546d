// SPDX-License-Identifier: BSD-3-Clause
#include "control/scheduler_lcore.h"

#include <new>

#include <rte_lcore.h>

#include "base/clock.h"

namespace cachewire::control {

namespace {

using pipeline::FeedRing;
static_assert(sizeof(FeedRing) % base::kCacheLine == 0);

qos::SchedulerConfig scheduler_config(const config::Scheduler& from) {
    qos::SchedulerConfig to{from.rate_bps, from.burst_bytes, from.accounting == config::Accounting::l1, {}};
    for (const config::ScheduledClass& each : from.classes) {
        qos::SchedulerConfig::Class order{std::nullopt, each.weight};
        if (each.priority) order.priority = *each.priority;
        to.classes.push_back(order);
    }
    return to;
}

std::unique_ptr<pipeline::ScheduledPort> make_port(const config::Config& config, const Registry& registry,
                                                   const config::Scheduler& from) {
    auto port = std::make_unique<pipeline::ScheduledPort>(*registry.ports.find(config.ports[from.port].name),
                                                          qos::Scheduler(scheduler_config(from), base::tsc_hz()));
    for (std::size_t i = 0; i < from.classes.size(); ++i) {
        const std::uint16_t slot = *registry.classes.find(config.classes[from.classes[i].traffic_class].name);
        port->queue_of[slot] = static_cast<std::uint8_t>(port->scheduler.queue_of(i));
    }
    return port;
}

}  // namespace

SchedulerLcore::SchedulerLcore(const config::Config& config, const Registry& registry, unsigned lcore,
                               pipeline::SnapshotReader reader, std::span<pipeline::WorkerState* const> workers)
    : rings_(config.schedulers.size() * workers.size() * sizeof(FeedRing),
             static_cast<int>(rte_lcore_to_socket_id(lcore))) {
    std::byte* at = rings_.data();
    std::vector<std::unique_ptr<pipeline::ScheduledPort>> ports;
    for (const config::Scheduler& from : config.schedulers) {
        ports.push_back(make_port(config, registry, from));
        for (pipeline::WorkerState* worker : workers) {
            auto* ring = new (at) FeedRing;
            at += sizeof(FeedRing);
            worker->feeds.to[ports.back()->port] = ring;
            ports.back()->feeds.push_back(ring);
        }
    }
    worker_ = std::make_unique<pipeline::SchedulerWorker>(lcore, reader, std::move(ports));
}

std::size_t SchedulerLcore::mbufs(const config::Config& config, std::size_t workers) noexcept {
    std::size_t sum = 0;
    for (const config::Scheduler& each : config.schedulers)  // its classes, own frames, and what has none
        sum += workers * pipeline::kFeedSlots + (each.classes.size() + 2) * qos::Scheduler::kSlots;
    return sum;
}

}  // namespace cachewire::control
