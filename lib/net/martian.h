#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Addresses that a router does not pass on. `maybe_special_*` is the hot test: false for every ordinary address, true
// for a few ordinary ones too. What it lets through goes to destination_class and is_martian_source, which say exactly.
#include <cstdint>

#include "net/flow_key.h"

namespace cachewire::net {

enum class DestinationClass : std::uint8_t { unicast, multicast, broadcast, martian };

// Host byte order. Networks 0 and 127, 224/4 and 240/4 (RFC 1812 5.3.7), 169.254/16 (RFC 3927 2.7).
inline bool maybe_special_ip4(std::uint32_t address) noexcept {
    const std::uint32_t top = address >> 24;
    // top - 1 wraps for network 0: one comparison for 0 and for 224 and above.
    return (static_cast<std::uint8_t>(top - 1) >= 223) | (top == 127) | ((address >> 16) == 0xa9fe);
}

// First eight bytes as a big-endian number: ::/64 holds ::, ::1 and ::ffff:0:0/96; from fe80 on link-local and
// multicast.
inline bool maybe_special_ip6(std::uint64_t high) noexcept { return (high == 0) | (high >= 0xfe80'0000'0000'0000); }

DestinationClass destination_class(const Address& address) noexcept;
bool is_martian_source(const Address& address) noexcept;

}  // namespace cachewire::net
