#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Frees packets in bulk without the second line of their mbufs, which rte_pktmbuf_free_bulk() reads and nobody else
// does: a mbuf of one segment has no next one (rte_mbuf.h), so there is nothing to clear.
#include <array>
#include <span>

#include <rte_mbuf.h>

namespace cachewire::port {

// At most kMaxFree of them, each the caller's own.
inline constexpr std::size_t kMaxFree = 64;

inline void free_mbufs(std::span<rte_mbuf* const> mbufs) noexcept {
    std::array<void*, kMaxFree> simple;
    unsigned n = 0;
    rte_mempool* pool = nullptr;
    for (rte_mbuf* mbuf : mbufs) {
        const bool is_simple = mbuf->nb_segs == 1 && rte_mbuf_refcnt_read(mbuf) == 1 && RTE_MBUF_DIRECT(mbuf);
        if (!is_simple) [[unlikely]] {
            rte_pktmbuf_free(mbuf);
            continue;
        }
        if (n == 0 || mbuf->pool != pool) [[unlikely]] {
            if (n != 0) rte_mempool_put_bulk(pool, simple.data(), n);
            pool = mbuf->pool;
            n = 0;
        }
        simple[n++] = mbuf;
    }
    if (n != 0) rte_mempool_put_bulk(pool, simple.data(), n);
}

}  // namespace cachewire::port
