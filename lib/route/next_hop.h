#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Where a packet goes next and what its new Ethernet header is: one line that TX reads per packet. Written by the
// control plane before publication, read-only on workers. Index 0 is "no route".
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/cache_line.h"
#include "net/flow_key.h"

namespace cachewire::route {

enum class NextHopKind : std::uint8_t { no_route, drop, local, broadcast, unresolved, forward };

struct alignas(base::kCacheLine) NextHop {
    // The header as it goes out, without the final EtherType: MACs, then up to two tags (TPID and TCI). l2_length
    // counts the final EtherType too: 14, 18 or 22.
    std::array<std::uint8_t, 20> l2_header{};  // 0
    std::uint8_t l2_length = 14;               // 20
    NextHopKind kind = NextHopKind::no_route;  // 21
    std::uint16_t port = 0;                    // 22  index in the snapshot
    std::uint16_t interface = 0;               // 24  index in the snapshot
    std::uint16_t mtu = 1500;                  // 26  of the egress interface, L3 bytes
    std::uint32_t reserved0 = 0;               // 28
    net::Address via{};                        // 32  the neighbour's address; all zero: the destination itself
    std::uint64_t reserved1[2]{};              // 48
};
static_assert(sizeof(NextHop) == base::kCacheLine);

inline constexpr std::uint16_t kMaxNextHops = 32767;  // rte_fib with two-byte entries keeps 15 bits

}  // namespace cachewire::route
