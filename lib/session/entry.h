#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A session in two parts. The hot entry is the one line that every packet of the session reads and writes; the cold entry is
// touched at creation, at state changes, when counts are flushed and by requests, never per packet. Written by the owning
// worker alone.
#include <cstddef>
#include <cstdint>

#include "base/cache_line.h"
#include "net/flow_key.h"

namespace cachewire::session {

enum class State : std::uint8_t { free, fresh, established, half_close, time_wait, closed };

// HotEntry::state_and_flags: low four bits State, then flags.
inline constexpr std::uint8_t kStateMask = 0x0f;
inline constexpr std::uint8_t kCompanion = 0x10;  // points to the forward entry, which alone holds state

struct alignas(base::kCacheLine) HotEntry {
    net::Address src;                  // 0   hot: look-up compares the whole key, forward direction
    net::Address dst;                  // 16
    std::uint16_t src_port_be;         // 32
    std::uint16_t dst_port_be;         // 34
    std::uint16_t tenant;              // 36
    std::uint8_t proto;                // 38
    std::uint8_t state_and_flags;      // 39  hot: read by every packet, written at state changes
    std::uint16_t outcome;             // 40  hot: the memoised verdict's index
    std::uint16_t next_hop[2];         // 42  hot: forward, reverse
    std::uint16_t policy_generation;   // 46  hot: compared with the tenant's, a difference means stale
    std::uint16_t route_generation;    // 48  hot: compared with the VRF's
    std::uint16_t last_seen;           // 50  hot: coarse clock, written per packet
    std::uint16_t packets[2];          // 52  hot: deltas, flushed to the cold entry at half range
    std::uint32_t bytes[2];            // 56  hot: deltas, the same
};
static_assert(sizeof(HotEntry) == base::kCacheLine);
static_assert(offsetof(HotEntry, state_and_flags) == 39 && offsetof(HotEntry, bytes) == 56);

}  // namespace cachewire::session
