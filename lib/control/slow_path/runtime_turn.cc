// SPDX-License-Identifier: BSD-3-Clause
// The part of Runtime that serves the slow path: made with the workers, told of every configuration, polled in the
// control loop.
#include <ctime>

#include <poll.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/runtime.h"
#include "net/nd.h"

namespace cachewire::control {

namespace {

// Between two looks at the punt queues: as long as packets come, and otherwise. A queue holds 1024, and the rates for
// what is put into them are in punt.h.
constexpr long kBusyNs = 50'000;
constexpr long kIdleNs = 1'000'000;
constexpr std::uint64_t kBusyMs = 50;  // since the last one

}  // namespace

std::uint64_t Runtime::now_ms() noexcept { return base::now_tsc() / (base::tsc_hz() / 1000); }

void Runtime::start_slow_path() {
    std::vector<SlowPath::Worker> queues;
    for (const auto& worker : workers_.all()) queues.push_back({&worker->punted(), &worker->returns()});
    SlowPath::Hooks hooks;
    hooks.snapshot = [this]() -> const pipeline::Snapshot& { return *publisher_->current(); };
    hooks.change = [this](const NeighborChange& change) {
        const NeighborKey& key = change.key;
        route_feed_->set_neighbor(key.tenant, key.interface, key.address, {change.mac, change.failed});
    };
    hooks.forwards = [this](const NeighborKey& key) {
        const auto hop =
            builder_->registry().next_hops.find({key.tenant, key.interface, NextHopUse::neighbor, key.address});
        const auto& next_hops = publisher_->current()->next_hops;
        return hop && *hop < next_hops.size() && next_hops[*hop].kind == route::NextHopKind::forward;
    };
    slow_path_.emplace(std::move(queues), pools_->main(), std::move(hooks));
    configure_slow_path();
}

// After each publication of a configuration or a port. Under the lock, once workers run.
void Runtime::configure_slow_path() {
    std::vector<bool> is_link(pipeline::kMaxPorts, true);
    for (const auto& port : ports_) {
        // Captures and sinks: what is said there nobody hears, and somebody compares.
        if (port->driver() == "net_pcap" || port->driver() == "net_null")
            is_link[*builder_->registry().ports.find(port->name())] = false;
    }
    slow_path_->configure(config_, builder_->registry(), is_link, now_ms());
}

void Runtime::poll_slow_path() {
    const std::lock_guard lock(mutex_);
    try {
        publisher_->reap();
        const std::uint64_t now = now_ms();
        route_feed_->flush(now);
        if (slow_path_->poll(now) != 0) slow_path_busy_until_ms_ = now + kBusyMs;
    } catch (const std::exception& error) {  // what forwards goes on
        base::log_error("slow path: {}", error.what());
    }
}

// Waits for the descriptors, but no longer than the slow path can wait.
void Runtime::wait_for_work(std::vector<pollfd>& fds) {
    const timespec nap = {0, now_ms() < slow_path_busy_until_ms_ ? kBusyNs : kIdleNs};
    ppoll(fds.data(), fds.size(), &nap, nullptr);
}

std::optional<std::size_t> Runtime::flush_neighbors(const std::string& tenant) {
    const std::lock_guard lock(mutex_);
    if (tenant.empty()) return slow_path_->flush(std::nullopt, now_ms());
    const auto slot = builder_->registry().tenants.find(tenant);
    if (!slot) return std::nullopt;
    return slow_path_->flush(*slot, now_ms());
}

}  // namespace cachewire::control
