// SPDX-License-Identifier: BSD-3-Clause
#include "support/ring_port.h"

#include <stdexcept>

#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

namespace cachewire::test {

namespace {

rte_ring* make_ring(const std::string& name, unsigned size) {
    rte_ring* ring = rte_ring_create(name.c_str(), size, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    if (ring == nullptr) throw std::runtime_error("rte_ring_create " + name);
    return ring;
}

}  // namespace

RingPort::RingPort(const std::string& name, unsigned size, rte_mempool* pool)
    : rx_(make_ring(name + "_rx", size)), tx_(make_ring(name + "_tx", size)) {
    const int port = rte_eth_from_rings(name.c_str(), &rx_, 1, &tx_, 1, 0);
    if (port < 0) throw std::runtime_error("rte_eth_from_rings " + name);
    id_ = static_cast<std::uint16_t>(port);
    rte_eth_conf configuration{};
    if (rte_eth_dev_configure(id_, 1, 1, &configuration) < 0 ||
        rte_eth_rx_queue_setup(id_, 0, size, 0, nullptr, pool) < 0 ||
        rte_eth_tx_queue_setup(id_, 0, size, 0, nullptr) < 0 || rte_eth_dev_start(id_) < 0)
        throw std::runtime_error("net_ring device " + name + " does not start");
}

unsigned RingPort::offer(std::span<rte_mbuf* const> mbufs) noexcept {
    return rte_ring_enqueue_burst(rx_, reinterpret_cast<void* const*>(mbufs.data()),
                                  static_cast<unsigned>(mbufs.size()), nullptr);
}

unsigned RingPort::collect(std::span<rte_mbuf*> mbufs) noexcept {
    return rte_ring_dequeue_burst(tx_, reinterpret_cast<void**>(mbufs.data()), static_cast<unsigned>(mbufs.size()),
                                  nullptr);
}

}  // namespace cachewire::test
