// SPDX-License-Identifier: BSD-3-Clause
#include "port/tx_buffer.h"

#include <rte_ethdev.h>

namespace cachewire::port {

unsigned TxBuffer::flush(std::uint16_t ethdev, std::uint16_t queue, std::uint64_t& bytes) noexcept {
    return flush_with([=](rte_mbuf** mbufs, std::uint16_t n) { return rte_eth_tx_burst(ethdev, queue, mbufs, n); },
                      bytes);
}

unsigned TxBuffer::discard() noexcept {
    const unsigned n = count_;
    rte_pktmbuf_free_bulk(mbufs_.data(), n);
    count_ = 0;
    return n;
}

}  // namespace cachewire::port
