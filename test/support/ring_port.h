#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// An Ethernet device made of two rings in this process: what a test or benchmark puts into `rx` is received, what is
// sent comes out of `tx`. Needs EAL. Devices live until the process ends, as net_ring's do.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

struct rte_mbuf;
struct rte_mempool;
struct rte_ring;

namespace cachewire::test {

class RingPort {
  public:
    // `size`: slots of each ring, a power of two. Throws std::runtime_error.
    RingPort(const std::string& name, unsigned size, rte_mempool* pool);

    [[nodiscard]] std::uint16_t id() const noexcept { return id_; }
    // Returns how many fitted.
    unsigned offer(std::span<rte_mbuf* const> mbufs) noexcept;
    // Takes what was sent, at most `mbufs.size()`.
    unsigned collect(std::span<rte_mbuf*> mbufs) noexcept;
    // The wire's mouth: what the device has received and nobody fetched.
    [[nodiscard]] rte_ring* rx() const noexcept { return rx_; }
    [[nodiscard]] rte_ring* tx() const noexcept { return tx_; }

  private:
    rte_ring* rx_;
    rte_ring* tx_;
    std::uint16_t id_;
};

}  // namespace cachewire::test
