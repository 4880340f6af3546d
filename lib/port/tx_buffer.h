#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// One worker's packets for one port's TX queue. Filled by the TX stage, sent once at the end of the worker's iteration:
// a packet alone leaves within one loop. What the driver does not take stays at the front and goes first next time, so
// order holds; when the buffer is full new packets are refused and the caller drops them by name. Never blocks, never
// loses.
#include <algorithm>
#include <array>
#include <cstdint>

#include <rte_mbuf.h>

namespace cachewire::port {

inline constexpr unsigned kTxBufferSize = 256;

class TxBuffer {
  public:
    // False: full, the mbuf is still the caller's.
    bool push(rte_mbuf* mbuf) noexcept {
        if (count_ == kTxBufferSize) [[unlikely]]
            return false;
        mbufs_[count_++] = mbuf;
        return true;
    }

    // Offers everything to the driver once. Returns how many packets it took; adds their L2 bytes to `bytes`.
    unsigned flush(std::uint16_t ethdev, std::uint16_t queue, std::uint64_t& bytes) noexcept;

    // The same with any `send(mbufs, count) -> how many it took, from the front`.
    template <class Send>
    unsigned flush_with(Send&& send, std::uint64_t& bytes) noexcept {
        if (count_ == 0) return 0;
        // What the driver has taken may be freed already, so lengths are read before. Line 0 of each mbuf is in L1 or
        // L2: the TX stage wrote it in this iteration.
        std::uint64_t offered = 0;
        for (unsigned i = 0; i < count_; ++i) offered += mbufs_[i]->pkt_len;
        const unsigned sent = send(mbufs_.data(), static_cast<std::uint16_t>(count_));
        count_ -= sent;
        std::copy(mbufs_.begin() + sent, mbufs_.begin() + sent + count_, mbufs_.begin());
        for (unsigned i = 0; i < count_; ++i) offered -= mbufs_[i]->pkt_len;
        bytes += offered;
        return sent;
    }

    // Frees what is left (shutdown, port gone); returns how many.
    unsigned discard() noexcept;
    [[nodiscard]] unsigned size() const noexcept { return count_; }

  private:
    unsigned count_ = 0;
    std::array<rte_mbuf*, kTxBufferSize> mbufs_;
};

}  // namespace cachewire::port
