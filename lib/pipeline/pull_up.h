#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Makes the first bytes of a packet contiguous where a device spread its headers over segments, so that everything
// behind works on one pointer. Payload segments stay as they are.
#include <cstdint>

struct rte_mbuf;

namespace cachewire::pipeline {

// Moves bytes from the following segments behind those of the first one until it holds `wanted` (at most pkt_len), and
// frees the segments that this empties. False: no room in the first segment, or a segment that others share; the
// packet's bytes are then the same, if differently spread.
bool pull_up(rte_mbuf* mbuf, std::uint32_t wanted) noexcept;

}  // namespace cachewire::pipeline
