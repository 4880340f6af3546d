// SPDX-License-Identifier: BSD-3-Clause
// The part of Runtime that serves the slow path: made with the workers, told of every configuration, polled in the
// control loop.
#include <chrono>
#include <ctime>
#include <future>

#include <poll.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/next_hops.h"
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
    hooks.is_elsewhere = [this](const NeighborKey& key) { return is_routed_elsewhere(key); };
    hooks.to_twin = [this](std::uint16_t interface, std::span<const std::uint8_t> header, const rte_mbuf* rest) {
        return twins_->deliver(interface, header, rest);
    };
    slow_path_.emplace(std::move(queues), pools_->main(), std::move(hooks));
    start_twins();
    configure_slow_path();
}

bool Runtime::is_routed_elsewhere(const NeighborKey& key) const {
    const auto vrf = builder_->registry().vrfs.find(key.tenant);
    if (vrf == builder_->registry().vrfs.end()) return false;
    const auto& routes = vrf->second->routes();
    const auto& next_hops = publisher_->current()->next_hops;
    net::Prefix prefix = host_prefix(key.address);
    const unsigned host_bits = key.address.is_v4() ? 96u : 0u;
    while (prefix.length != 0) {
        const unsigned bit = host_bits + --prefix.length;
        prefix.address.bytes[bit / 8] &= static_cast<std::uint8_t>(~(0x80u >> (bit % 8)));
        const auto route = routes.find(prefix);
        if (route == routes.end() || route->second >= next_hops.size()) continue;
        const route::NextHop& hop = next_hops[route->second];
        return hop.interface != key.interface || hop.via != net::Address{} ||
               hop.kind != route::NextHopKind::unresolved;
    }
    return false;
}

void Runtime::start_twins() {
    Twins::Hooks hooks;
    hooks.route = [this](std::uint16_t tenant, const net::Prefix& prefix, const std::vector<FedVia>* via) {
        if (via != nullptr) {
            route_feed_->set_route(RouteSource::kernel, tenant, prefix, *via);
        } else {
            route_feed_->withdraw(RouteSource::kernel, tenant, prefix);
        }
    };
    hooks.frame = [this](std::uint16_t interface, std::span<const std::uint8_t> frame) {
        slow_path_->from_twin(interface, frame);
    };
    hooks.gateways = [this](const std::vector<KernelRoutes::Gateway>& gateways) {
        slow_path_->set_kernel_gateways(gateways, now_ms());
    };
    hooks.addresses = [this](const std::map<std::uint16_t, std::vector<config::InterfaceAddress>>& addresses) {
        slow_path_->set_kernel_addresses(addresses);
    };
    hooks.neighbors = [this](const std::vector<KernelNeighbor>& neighbors) {
        slow_path_->set_kernel_neighbors(neighbors, now_ms());
    };
    hooks.heard = [this](const KernelNeighbor& neighbor) { slow_path_->hear_kernel_neighbor(neighbor, now_ms()); };
    twins_.emplace(std::move(hooks));
    pending_twins_ = twins_->begin(config_, port_macs(config_));
}

std::vector<net::Mac> Runtime::port_macs(const config::Config& config) const {
    std::vector<net::Mac> macs;  // in the configuration's order; a reload's new ports are known to the builder only
    for (const config::Port& port : config.ports)
        macs.push_back(port.mac.value_or(builder_->port_infos().at(port.name).mac));
    return macs;
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
    twins_->commit(std::exchange(pending_twins_, {}), config_, builder_->registry(), *publisher_->current());
}

void Runtime::poll_slow_path() {
    const std::lock_guard lock(mutex_);
    try {
        publisher_->reap();
        const std::uint64_t now = now_ms();
        const unsigned frames = twins_->poll(now);
        if (route_feed_->flush(now)) slow_path_->recheck_host_routes();
        if (slow_path_->poll(now) + frames != 0) slow_path_busy_until_ms_ = now + kBusyMs;
    } catch (const std::exception& error) {  // what forwards goes on
        base::log_error("slow path: {}", error.what());
    }
}

// A turn that publishes nothing and looks at no table of routes, because a snapshot is being built: whoever asks is
// answered, questions are asked, the kernel gets its packets; what is learned is published later. Under the lock.
void Runtime::serve_quietly() {
    try {
        const std::uint64_t now = now_ms();
        const unsigned frames = twins_->poll(now);
        if (slow_path_->poll(now, SlowPath::Routes::changing) + frames != 0) slow_path_busy_until_ms_ = now + kBusyMs;
    } catch (const std::exception& error) {
        base::log_error("slow path: {}", error.what());
    }
}

// `work` may take seconds (reading and building a full table does), so it has a thread of its own, and `serve` is
// called over and over until it is done. The control thread stays the only one that touches what `work` doesn't own.
void Runtime::beside(const std::function<void()>& work, const std::function<void()>& serve) {
    if (state_ != State::running) return work();
    auto done = std::async(std::launch::async, work);
    const auto nap = [this] {
        return std::chrono::nanoseconds(now_ms() < slow_path_busy_until_ms_ ? kBusyNs : kIdleNs);
    };
    while (done.wait_for(nap()) != std::future_status::ready) serve();
    done.get();
}

// Waits for the descriptors, but no longer than the slow path can wait.
void Runtime::wait_for_work(std::vector<pollfd>& fds) {
    const bool busy = now_ms() < slow_path_busy_until_ms_ || (rebalance_ && !rebalance_->done);
    const timespec nap = {0, busy ? kBusyNs : kIdleNs};
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
