// SPDX-License-Identifier: BSD-3-Clause
#include "control/port_change.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace cachewire::control {

namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

void drop_port(std::vector<RxQueues>& queues, std::uint16_t port) {
    for (RxQueues& each : queues) std::erase_if(each, [port](const pipeline::RxQueue& q) { return q.port == port; });
}

// To whoever polls the fewest, each queue.
void add_port(std::vector<RxQueues>& queues, const port::EthPort& port, std::uint16_t index) {
    for (std::uint16_t queue = 0; queue < port.config().rx_queues; ++queue)
        std::min_element(queues.begin(), queues.end(), [](const auto& a, const auto& b) {
            return a.size() < b.size();
        })->push_back({index, port.id(), queue});
}

void set_queues(Workers& workers, const std::vector<RxQueues>& queues, PortChange::OldQueues& old) {
    for (std::size_t i = 0; i < queues.size(); ++i) old.push_back(workers.all()[i]->set_rx_queues(queues[i]));
}

}  // namespace

PortChange::PortChange(Parts parts, const config::Config& running, const config::Config& next)
    : parts_(std::move(parts)), running_(running), next_(next), plan_(plan_ports(running, next)) {
    for (const auto& worker : parts_.workers.all()) queues_before_.push_back(worker->rx_queues());
    queues_ = queues_before_;
}

PortChange::~PortChange() {
    if (!done_) undo();
}

void PortChange::undo() noexcept {
    try {
        if (changed_) change_devices(parts_.ports, next_, running_);
    } catch (const std::exception& error) {  // it has said which device stands between two configurations
        base::log_error("{}", error.what());
    }
    if (prepared_) parts_.builder.set_port_infos(std::move(infos_before_));
    if (!old_queues_.empty()) {
        set_queues(parts_.workers, queues_before_, old_queues_);
        if (!parts_.quiesce().empty())  // a worker may still look at them: kept for ever
            for (auto& queues : old_queues_) static_cast<void>(queues.release());
    }
    for (Added& added : added_) {
        added.port->close();
        added.port->unplug();
        parts_.pools.give_back(added.port->pool(), *added.from);
    }
}

void PortChange::open() {
    for (const std::size_t i : plan_.added) {
        const config::Port& from = next_.ports[i];
        rte_mempool* const pool = parts_.pools.take(next_, from);
        try {
            const auto workers = static_cast<unsigned>(parts_.workers.all().size());
            added_.push_back({std::make_unique<port::EthPort>(port_config(next_, from, workers), pool), &from});
        } catch (...) {
            parts_.pools.give_back(pool, from);
            throw;
        }
    }
}

void PortChange::prepare(SnapshotBuilder::Pass& pass, bool dry_run) {
    infos_before_ = parts_.builder.port_infos();
    prepared_ = true;
    if (dry_run) {  // what is not open has no facts
        for (const std::size_t i : plan_.added)
            parts_.builder.set_port(next_.ports[i].name, PortInfo{.attached = false});
        return;
    }
    const auto& places = parts_.builder.registry().ports;
    for (const Added& added : added_) {
        const std::string& name = added.port->name();
        parts_.builder.set_port(name, port_info(*added.port));
        const auto place = places.find(name);
        if (place && !parts_.workers.mesh().fits(*place, added.port->config().tx_queues)) {
            SnapshotBuilder::move_port(pass, name);
        } else if (contains(plan_.removed, name)) {
            stop_polling(name);
        }
    }
    change_devices(parts_.ports, running_, next_);
    changed_ = true;
    for (const auto& port : parts_.ports)
        if (!contains(plan_.removed, port->name())) parts_.builder.set_port(port->name(), port_info(*port));
}

// Another device at the same place: its queues may be fewer, so the old one's numbers go first.
void PortChange::stop_polling(const std::string& name) {
    std::vector<RxQueues> without = queues_before_;
    drop_port(without, *parts_.builder.registry().ports.find(name));
    set_queues(parts_.workers, without, old_queues_);
    if (std::string stalled = parts_.quiesce(); !stalled.empty()) throw base::MachineError(stalled);
}

void PortChange::link(const SnapshotBuilder::Pass& pass) {
    for (const std::string& name : plan_.removed) drop_port(queues_, *parts_.builder.registry().ports.find(name));
    for (Added& added : added_) {
        added.index = SnapshotBuilder::port_index(pass, added.port->name());
        const port::PortConfig& config = added.port->config();
        parts_.workers.add_port({added.index, added.port->id(), config.rx_queues, config.tx_queues});
        add_port(queues_, *added.port, added.index);
    }
}

std::unique_ptr<port::EthPort> PortChange::take_out(const std::string& name) {
    for (auto it = parts_.ports.begin(); it != parts_.ports.end(); ++it) {
        if ((*it)->name() != name) continue;
        auto port = std::move(*it);
        parts_.ports.erase(it);
        return port;
    }
    return nullptr;
}

std::vector<LeavingPort> PortChange::finish(OldQueues& old_queues) {
    done_ = true;
    std::vector<LeavingPort> leaving;
    for (const config::Port& port : running_.ports)
        if (contains(plan_.removed, port.name)) leaving.push_back({take_out(port.name), port});
    for (Added& added : added_) parts_.ports.push_back(std::move(added.port));
    Ports ordered;
    for (const config::Port& port : next_.ports) ordered.push_back(take_out(port.name));
    parts_.ports = std::move(ordered);
    if (!plan_.added.empty() || !plan_.removed.empty()) set_queues(parts_.workers, queues_, old_queues_);
    for (auto& queues : old_queues_) old_queues.push_back(std::move(queues));
    return leaving;
}

}  // namespace cachewire::control
