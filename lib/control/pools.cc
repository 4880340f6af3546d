// SPDX-License-Identifier: BSD-3-Clause
#include "control/pools.h"

#include <algorithm>

#include <fmt/format.h>
#include <rte_mempool.h>

#include "base/error.h"
#include "control/handoff_mesh.h"
#include "control/scheduler_lcore.h"
#include "control/slow_path/hold_queue.h"
#include "pipeline/punt.h"
#include "port/port.h"

namespace cachewire::control {

namespace {

bool is_nic(const config::Port& port) {
    std::string why;
    const auto device = port::parse_device(port.device, why);
    return device && device->kind == port::DeviceKind::pci;
}

// Every descriptor ring full at once, and every TX buffer.
std::size_t for_port(const config::Port& port, std::size_t workers) {
    const std::size_t rxq = std::max<std::size_t>(port.rxq, workers), txq = std::max<std::size_t>(port.txq, workers);
    std::size_t n = rxq * port.rxd + txq * port.txd + workers * port::kTxBufferSize;
    // AF_XDP keeps rings of its own length full: 2048 to receive into, 2048 being sent.
    if (port.device.starts_with("kernel:") || port.device.starts_with("net_af_xdp")) n += 4096 * std::max(rxq, txq);
    return n;
}

// Every lcore's cache full, and bursts in between.
std::size_t for_lcores(const config::Config& config, std::size_t workers) {
    return (workers + 1) * (config.memory.mempool_cache * 3u / 2 + pipeline::kMaxLanes);
}

std::size_t at_start(const config::Config& config, std::size_t workers) {
    if (config.memory.mbufs != 0) return config.memory.mbufs;
    std::size_t n = 2048;
    for (const auto& port : config.ports) n += for_port(port, workers);
    // The slow path: its queues full in both directions, and what waits for neighbors.
    n += workers * (pipeline::kPuntSlots + pipeline::kReturnSlots) + HoldQueue::kInAll;
    n += HandoffMesh::mbufs(workers, config.ports.size());
    n += SchedulerLcore::mbufs(config, workers);
    return n + for_lcores(config, workers);
}

}  // namespace

Pools::Pools(const config::Config& config, unsigned workers) : workers_(workers) {
    const bool for_nics = std::any_of(config.ports.begin(), config.ports.end(), is_nic);
    pools_.push_back({port::make_mempool("cachewire_mbufs", static_cast<unsigned>(at_start(config, workers)),
                                         config.memory.mempool_cache, config.memory.mbuf_size, SOCKET_ID_ANY, for_nics),
                      0});
}

rte_mempool* Pools::take(const config::Config& config, const config::Port& port) {
    const std::size_t needed = for_port(port, workers_);
    Pool& first = pools_.front();
    if (config.memory.mbufs != 0) {  // so many and no more
        const std::size_t rings = std::max<std::size_t>(port.rxq, workers_) * port.rxd;
        const unsigned left = rte_mempool_avail_count(first.pool);
        if (left > rings) return first.pool;
        throw base::MachineError(
            fmt::format("port {}: its receive rings take {} mbufs, and {} of `memory: mbufs: {}` are "
                        "free: restart with more",
                        port.name, rings, left, config.memory.mbufs));
    }
    if (first.spare >= needed) {
        first.spare -= needed;
        return first.pool;
    }
    const std::size_t alone = needed + for_lcores(config, workers_);
    for (std::size_t i = 1; i < pools_.size(); ++i)
        if (pools_[i].spare >= alone) {
            pools_[i].spare = 0;
            return pools_[i].pool;
        }
    const std::string name = fmt::format("cachewire_mbufs_{}", pools_.size());
    pools_.push_back({port::make_mempool(name, static_cast<unsigned>(alone), config.memory.mempool_cache,
                                         config.memory.mbuf_size, SOCKET_ID_ANY),
                      0});
    return pools_.back().pool;
}

void Pools::give_back(rte_mempool* pool, const config::Port& port) noexcept {
    for (Pool& each : pools_)
        if (each.pool == pool)
            each.spare = &each == &pools_.front() ? each.spare + for_port(port, workers_) : pool->size;
}

std::uint64_t Pools::size() const noexcept {
    std::uint64_t sum = 0;
    for (const Pool& each : pools_) sum += each.pool->size;
    return sum;
}

std::uint64_t Pools::free() const noexcept {
    std::uint64_t sum = 0;
    for (const Pool& each : pools_) sum += rte_mempool_avail_count(each.pool);
    return sum;
}

}  // namespace cachewire::control
