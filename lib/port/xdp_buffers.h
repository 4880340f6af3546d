#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// net_af_xdp keeps 2048 buffers a queue in the ring that the kernel fills, and closes without giving them back: the
// pool would shrink each time an interface is made again. The rings are shared with the kernel as linux/if_xdp.h
// describes, so what is in them is noted before the device closes and freed after it. Control thread only.
#include <cstdint>
#include <vector>

struct rte_mbuf;
struct rte_mempool;

namespace cachewire::port {

inline constexpr unsigned kXdpFill = 2048;  // buffers that the driver keeps in the kernel's hands, a queue

// Inodes of this process's AF_XDP sockets that have a fill ring.
std::vector<std::uint64_t> xdp_sockets();
// Frames that found the receive ring of one of these sockets full.
std::uint64_t xdp_ring_full(const std::vector<std::uint64_t>& sockets);

// What net_af_xdp of DPDK 22.11 leaves open when it closes: the interface's queue would stay taken until our end. After
// the close.
void close_left_sockets(const std::vector<std::uint64_t>& sockets) noexcept;

struct XdpBuffers {
    std::vector<rte_mbuf*> found;
    unsigned lost = 0;  // belong to the driver and stand in no ring (being sent, or inside a NIC)
};

// What stands in the rings of these sockets. Empty, with everything lost, when the rings don't hold buffers of `pool`.
XdpBuffers find_xdp_buffers(const std::vector<std::uint64_t>& sockets, rte_mempool* pool);

}  // namespace cachewire::port
