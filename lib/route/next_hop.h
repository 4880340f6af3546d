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

// group and leak stand in FIBs and never in a lane: the route stage puts what they lead to in their place. wire is the
// other port of a transparent pair and stands in no FIB.
enum class NextHopKind : std::uint8_t { no_route, drop, local, broadcast, unresolved, forward, wire, group, leak };

struct alignas(base::kCacheLine) NextHop {
    // The header as it goes out, without the final EtherType: MACs, then up to two tags (TPID and TCI). l2_length
    // counts the final EtherType too: 14, 18 or 22.
    std::array<std::uint8_t, 20> l2_header{};  // 0
    std::uint8_t l2_length = 14;               // 20
    NextHopKind kind = NextHopKind::no_route;  // 21
    std::uint16_t port = 0;                    // 22  index in the snapshot
    std::uint16_t interface = 0;               // 24  index in the snapshot
    std::uint16_t mtu = 1500;                  // 26  of the egress interface, L3 bytes
    std::uint16_t tenant = 0;                  // 28  slot: of the egress interface; of a leak, whose routes decide
    std::uint16_t group = 0;                   // 30  of a group: index in the snapshot's groups
    net::Address via{};                        // 32  the neighbour's address; all zero: the destination itself
    bool failed = false;                       // 48  the neighbour was asked for and is silent
    std::uint8_t reserved[15]{};               // 49
};
static_assert(sizeof(NextHop) == base::kCacheLine);

inline constexpr std::uint16_t kMaxNextHops = 32767;  // rte_fib with two-byte entries keeps 15 bits

}  // namespace cachewire::route
