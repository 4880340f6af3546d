// SPDX-License-Identifier: BSD-3-Clause
#include "control/restart.h"

namespace cachewire::control {

std::vector<std::string> needs_restart(const config::Config& running, const config::Config& next) {
    std::vector<std::string> keys;
    const auto require = [&keys](bool same, const std::string& key) {
        if (!same) keys.push_back(key);
    };
    require(running.eal == next.eal, "eal");
    require(running.workers.lcores == next.workers.lcores, "workers.lcores");
    require(running.workers.placement == next.workers.placement, "workers.placement");
    require(running.workers.idle == next.workers.idle, "workers.idle");
    require(running.workers.dispatch == next.workers.dispatch, "workers.dispatch");
    require(running.memory.mbufs == next.memory.mbufs, "memory.mbufs");
    require(running.memory.mbuf_size == next.memory.mbuf_size, "memory.mbuf_size");
    require(running.memory.mempool_cache == next.memory.mempool_cache, "memory.mempool_cache");
    require(running.pipeline.metadata == next.pipeline.metadata, "pipeline.metadata");
    require(running.sessions.capacity == next.sessions.capacity, "sessions.capacity");
    require(running.ports.size() == next.ports.size(), "ports");
    if (running.ports.size() != next.ports.size()) return keys;
    for (std::size_t i = 0; i < next.ports.size(); ++i) {
        const config::Port& a = running.ports[i];
        const config::Port& b = next.ports[i];
        const std::string path = "ports[" + std::to_string(i) + "].";
        require(a.name == b.name, path + "name");
        require(a.device == b.device, path + "device");
        require(a.rxq == b.rxq && a.txq == b.txq, path + "rxq/txq");
        require(a.rxd == b.rxd && a.txd == b.txd, path + "rxd/txd");
    }
    return keys;
}

}  // namespace cachewire::control
