#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// mbufs from bytes, in one segment or cut where a test wants it, from one pool per test program. A test that is done
// asks mbufs_in_use() for 0.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <rte_mbuf.h>

#include "support/packet_builder.h"

namespace cachewire::test {

inline constexpr unsigned kTestMbufs = 4095;
inline constexpr std::uint16_t kTestDataRoom = 2176;  // headroom and 2048 bytes

rte_mempool* test_pool();  // starts EAL when it has to
unsigned mbufs_in_use();   // of test_pool()

struct FreeMbuf {
    void operator()(rte_mbuf* mbuf) const noexcept { rte_pktmbuf_free(mbuf); }
};
using MbufPtr = std::unique_ptr<rte_mbuf, FreeMbuf>;

// Throws std::length_error where a piece does not fit a segment.
MbufPtr make_mbuf(std::span<const std::uint8_t> bytes, rte_mempool* pool = test_pool());
// A new segment begins at each offset of `cuts` (ascending; the same offset twice makes an empty segment).
MbufPtr make_mbuf(std::span<const std::uint8_t> bytes, std::span<const std::size_t> cuts,
                  rte_mempool* pool = test_pool());

Bytes bytes_of(const rte_mbuf* mbuf);  // all segments

}  // namespace cachewire::test
