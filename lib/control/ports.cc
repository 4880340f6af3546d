// SPDX-License-Identifier: BSD-3-Clause
#include "control/ports.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace cachewire::control {

namespace {

constexpr std::uint64_t kRetryMs = 1000;
constexpr std::uint64_t kXdpSettleMs = 300;  // the kernel lets go of a closed AF_XDP queue some 20 ms later

void change_device(port::EthPort& port, const config::Port& from, const config::Port& to) {
    if (from.mtu != to.mtu) port.set_mtu(to.mtu);
    if (from.promiscuous != to.promiscuous) port.set_promiscuous(to.promiscuous);
    if (from.mac != to.mac) port.set_mac(to.mac);
}

void say_link(const port::EthPort& port, bool up) {
    if (up) {
        base::log_info("port {}: interface {} has a link", port.name(), port.interface());
    } else {
        base::log_warning("port {}: interface {} has no link; what would go there is dropped as link_down", port.name(),
                          port.interface());
    }
}

const config::Port* port_named(const config::Config& config, const std::string& name) {
    for (const config::Port& port : config.ports)
        if (port.name == name) return &port;
    return nullptr;
}

struct Change {
    port::EthPort* port;
    const config::Port *from, *to;
};

}  // namespace

port::PortConfig port_config(const config::Config& config, const config::Port& port, unsigned workers) {
    port::PortConfig to;
    to.name = port.name;
    std::string why;
    const auto device = port::parse_device(port.device, why);
    if (!device) throw base::Error(base::ExitStatus::configuration, "port " + port.name + ": " + why);
    to.device = *device;
    to.rx_queues = port.rxq;
    to.tx_queues = port.txq;
    to.workers = static_cast<std::uint16_t>(workers);
    // Linux interfaces have pairs, and AF_XDP is for those that have one.
    if (device->kind == port::DeviceKind::kernel)
        to.rx_queues = to.tx_queues = std::max<std::uint16_t>({port.rxq, port.txq, 1});
    to.rx_descriptors = port.rxd;
    to.tx_descriptors = port.txd;
    to.mtu = port.mtu;
    to.promiscuous = port.promiscuous;
    to.mac = port.mac;
    to.mbuf_size = config.memory.mbuf_size;
    return to;
}

PortInfo port_info(const port::EthPort& port) {
    return {port.id(), port.config().tx_queues, port.mac(), port.traits(), port.is_open(), port.link()};
}

void change_devices(Ports& ports, const config::Config& from, const config::Config& to) {
    std::vector<Change> changes;
    for (const auto& port : ports) {
        const config::Port* const before = port_named(from, port->name());
        const config::Port* const after = port_named(to, port->name());
        if (before != nullptr && after != nullptr && before->device == after->device)
            changes.push_back({port.get(), before, after});
    }
    std::size_t i = 0;
    try {
        for (; i < changes.size(); ++i) change_device(*changes[i].port, *changes[i].from, *changes[i].to);
    } catch (...) {
        for (std::size_t back = 0; back <= i && back < changes.size(); ++back) {
            try {
                change_device(*changes[back].port, *changes[back].to, *changes[back].from);
            } catch (const base::Error& error) {
                base::log_error("{}; it may stand between two configurations", error.what());
            }
        }
        throw;
    }
}

void say_how_workers_share(const Workers& workers, bool rss) {
    const std::size_t count = workers.all().size();
    if (count < 2) return;
    std::string without;
    for (const auto& worker : workers.all())
        if (worker->rx_queues().empty())
            without += (without.empty() ? "" : ", ") + std::to_string(worker->state().lcore);
    base::log_info("{} workers: sessions are spread {} over all of them, rings between them take {} KiB{}{}", count,
                   rss ? "by the hash that devices place packets by" : "in software", workers.mesh().bytes() >> 10,
                   without.empty() ? "" : "; without a receive queue of their own: lcore ", without);
}

RssPort rss_port(const port::EthPort& port, std::span<const std::vector<pipeline::RxQueue>> queues) {
    RssPort result{
        port.name(), port.driver(), std::make_unique<port::EthRssDevice>(port.id(), port.config().rx_queues), {}};
    for (const auto& worker : queues) {
        result.queues.emplace_back();
        for (const pipeline::RxQueue& queue : worker)
            if (queue.ethdev == port.id()) result.queues.back().push_back(queue.queue);
    }
    return result;
}

RssPort rss_port(const port::EthPort& port, const Workers& workers) {
    std::vector<std::vector<pipeline::RxQueue>> queues;
    for (const auto& worker : workers.all()) queues.push_back(worker->rx_queues());
    return rss_port(port, queues);
}

void warn_about_tags(const config::Config& config, const Ports& ports) {
    for (std::size_t i = 0; i < ports.size(); ++i) {
        const bool tagged = std::any_of(config.interfaces.begin(), config.interfaces.end(), [i](const auto& interface) {
            return interface.port == i && interface.vlan != 0;
        });
        if (tagged && ports[i]->driver() == "net_af_packet")
            base::log_warning(
                "port {}: AF_PACKET hands every outer VLAN tag over as 802.1Q (0x8100): 802.1ad can't be told apart "
                "there",
                ports[i]->name());
    }
}

PortWatch::PortWatch(Ports& ports, Publish publish, Oversize oversize)
    : ports_(ports), publish_(std::move(publish)), oversize_(std::move(oversize)) {
    for (const auto& port : ports) state_of(*port);
}

// Of a port that is looked at for the first time: what was published of it is how it was.
PortWatch::State& PortWatch::state_of(const port::EthPort& port) {
    const auto [entry, fresh] = states_.try_emplace(port.name());
    if (fresh) {
        entry->second.link = port.link();
        if (!entry->second.link) say_link(port, false);
    }
    return entry->second;
}

void PortWatch::look(std::uint64_t now_ms) {
    for (const auto& port : ports_) look_at(*port, state_of(*port), now_ms);
}

void PortWatch::look_for_links() {
    for (const auto& port : ports_) {
        State& state = state_of(*port);
        if (state.link || !state.attached || !port->is_open()) continue;
        port->look();
        if (!port->link()) continue;
        static_cast<void>(port->take_flap());  // that it was away has been published
        publish_link(*port, state, true);
    }
}

void PortWatch::look_at(port::EthPort& port, State& state, std::uint64_t now_ms) {
    if (!state.warned_oversize) warn_oversize(port, state);
    port.look();
    if (port.is_open())
        if (const std::string gone = port.gone(); !gone.empty()) {
            if (!leave(port, state, gone)) return;
            if (port.driver() == "net_af_xdp") state.next_try_ms = now_ms + kXdpSettleMs;
        }
    if (!port.is_open() && now_ms >= state.next_try_ms) come_back(port, state, now_ms);
    if (!port.is_open()) return;
    if (!state.attached) {
        attach(port, state);
        return;
    }
    // Shorter than from look to look: published all the same, since who is behind it may be another one now.
    const bool flap = port.take_flap();
    if (flap && state.link && port.link()) publish_link(port, state, false);
    if (port.link() != state.link) publish_link(port, state, port.link());
}

void PortWatch::attach(const port::EthPort& port, State& state) {
    const PortInfo info = port_info(port);
    if (!publish_(port.name(), info)) return;
    state.attached = true;
    if (port.driver() == state.driver) {
        base::log_info("port {}: {} is back", port.name(), state.gone);
    } else {
        base::log_warning("port {}: attached again, by {} instead of {}", port.name(), port.driver(), state.driver);
    }
    state.gone.clear();
    state.link = info.link;
    if (!state.link) say_link(port, false);
}

// Not published now: the next look tries again.
void PortWatch::publish_link(const port::EthPort& port, State& state, bool link) {
    PortInfo info = port_info(port);
    info.link = link;
    if (!publish_(port.name(), info)) return;
    state.link = link;
    say_link(port, link);
}

// False: a worker may still use the device, so it stays open for now.
bool PortWatch::leave(port::EthPort& port, State& state, const std::string& gone) {
    if (state.attached) {
        if (state.gone.empty())
            base::log_error("port {}: {} is gone; its packets are dropped as port_down until it is back", port.name(),
                            gone);
        state.gone = gone;
        state.driver = port.driver();
        PortInfo info = port_info(port);
        info.attached = false;
        if (!publish_(port.name(), info)) return false;
        state.attached = false;
    }
    port.close();
    port.unplug();
    return true;
}

void PortWatch::come_back(port::EthPort& port, State& state, std::uint64_t now_ms) {
    if (!port.can_open()) return;
    try {
        port.open();
        state.last_error.clear();
    } catch (const base::Error& error) {
        state.next_try_ms = now_ms + kRetryMs;
        if (state.last_error == error.what()) return;
        state.last_error = error.what();
        base::log_warning("{}; trying again every second", error.what());
    }
}

void PortWatch::warn_oversize(const port::EthPort& port, State& state) {
    const std::uint64_t frames = oversize_(port.name());
    if (frames == 0) return;
    state.warned_oversize = true;
    base::log_warning(
        "port {}: frames longer than {} bytes come in and are dropped as frame_oversize ({} so far): the sender leaves "
        "cutting TCP to a NIC that isn't there; `ethtool -K IF tso off gso off` with IF the sender's interface ends "
        "that{}",
        port.name(), port.traits().max_frame_bytes, frames,
        port.interface().empty() ? "" : " (`ethtool -K " + port.interface() + " gro off lro off` where it is a NIC)");
}

}  // namespace cachewire::control
