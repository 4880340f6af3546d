// SPDX-License-Identifier: BSD-3-Clause
#include "control/restart.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "port/port.h"

namespace cachewire::control {

namespace {

constexpr const char* kOnce =
    "a device's queues are made when it is opened: take the port out with one reload and put it in with the next, or "
    "restart";

const config::Port* find_port(const config::Config& config, const std::string& name) {
    for (const config::Port& port : config.ports)
        if (port.name == name) return &port;
    return nullptr;
}

std::optional<port::Device> device_of(const config::Port& port) {
    std::string why;
    return port::parse_device(port.device, why);
}

bool is_same_device(const config::Port& a, const config::Port& b) {
    const auto left = device_of(a), right = device_of(b);
    return left && right && left->kind == right->kind && left->name == right->name;
}

bool stays(const config::Port& running, const config::Port& next) { return running.device == next.device; }

bool has_scheduler(const config::Config& config, const std::string& port) {
    return std::any_of(config.schedulers.begin(), config.schedulers.end(),
                       [&](const config::Scheduler& each) { return config.ports[each.port].name == port; });
}

// Port, rate and order of each, by names: places in the file may differ.
std::set<std::string> schedulers_of(const config::Config& config) {
    std::set<std::string> all;
    for (const config::Scheduler& each : config.schedulers) {
        std::set<std::string> classes;
        for (const config::ScheduledClass& c : each.classes)
            classes.insert(fmt::format("{} {} {}", config.classes[c.traffic_class].name,
                                       c.priority ? int{*c.priority} : -1, c.weight));
        all.insert(fmt::format("{} {} {} {} {}", config.ports[each.port].name, each.rate_bps, each.burst_bytes,
                               each.accounting == config::Accounting::l1, fmt::join(classes, ", ")));
    }
    return all;
}

// A port with a device that is not open yet.
void check_new_device(const config::Config& running, const config::Port& port, const std::string& path,
                      std::vector<Obstacle>& found) {
    const auto device = device_of(port);
    if (device && device->kind == port::DeviceKind::pci)
        return found.push_back({path + "device", "EAL is told of its NICs at the start: restart"});
    for (const config::Port& open : running.ports)
        if (is_same_device(open, port))
            return found.push_back(
                {path + "device", fmt::format("is open as port '{}': take that out with one reload and "
                                              "put this one in with the next, or restart",
                                              open.name)});
}

void check_port(const config::Config& running, const config::Port& next, std::size_t index,
                std::vector<Obstacle>& found) {
    const std::string path = fmt::format("ports[{}].", index);
    const config::Port* const port = find_port(running, next.name);
    if (port == nullptr) return check_new_device(running, next, path, found);
    if (!stays(*port, next)) {
        if (has_scheduler(running, next.name))
            return found.push_back({path + "device", "the port has a scheduler, whose rings are made at the start"});
        if (is_same_device(*port, next)) return found.push_back({path + "device", kOnce});
        return check_new_device(running, next, path, found);
    }
    const auto require = [&](bool same, const char* key) {
        if (!same) found.push_back({path + key, kOnce});
    };
    require(port->rxq == next.rxq && port->txq == next.txq, "rxq/txq");
    require(port->rxd == next.rxd && port->txd == next.txd, "rxd/txd");
}

}  // namespace

std::vector<Obstacle> obstacles(const config::Config& running, const config::Config& next) {
    std::vector<Obstacle> found;
    const auto require = [&found](bool same, const char* key, const char* why) {
        if (!same) found.push_back({key, why});
    };
    require(running.eal == next.eal, "eal", "EAL reads its arguments once, at the start");
    require(running.workers.lcores == next.workers.lcores, "workers.lcores",
            "workers and their tables are made at the start");
    require(running.workers.placement == next.workers.placement, "workers.placement",
            "it judges the lcores at the start");
    require(running.workers.idle == next.workers.idle, "workers.idle", "workers are told at the start");
    require(running.workers.dispatch == next.workers.dispatch, "workers.dispatch", "workers are told at the start");
    require(running.memory.mbufs == next.memory.mbufs, "memory.mbufs", "the pool is made at the start");
    require(running.memory.mbuf_size == next.memory.mbuf_size, "memory.mbuf_size", "the pool is made at the start");
    require(running.memory.mempool_cache == next.memory.mempool_cache, "memory.mempool_cache",
            "the pool is made at the start");
    require(running.pipeline.metadata == next.pipeline.metadata, "pipeline.metadata", "workers are told at the start");
    require(running.sessions.capacity == next.sessions.capacity, "sessions.capacity",
            "the tables are made at the start");
    require(schedulers_of(running) == schedulers_of(next), "qos.schedulers",
            "their lcore, rings and queues are made at the start");
    for (std::size_t i = 0; i < next.ports.size(); ++i) check_port(running, next.ports[i], i, found);
    return found;
}

std::string to_string(const std::vector<Obstacle>& obstacles) {
    std::string text;
    for (const Obstacle& obstacle : obstacles)
        text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", obstacle.key, obstacle.why);
    return text;
}

PortPlan plan_ports(const config::Config& running, const config::Config& next) {
    PortPlan plan;
    for (std::size_t i = 0; i < next.ports.size(); ++i) {
        const config::Port* const port = find_port(running, next.ports[i].name);
        if (port == nullptr || !stays(*port, next.ports[i])) plan.added.push_back(i);
    }
    for (const config::Port& port : running.ports) {
        const config::Port* const then = find_port(next, port.name);
        if (then == nullptr || !stays(port, *then)) plan.removed.push_back(port.name);
    }
    return plan;
}

}  // namespace cachewire::control
