#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Which datagram a fragment belongs to and where in it. For packets whose headers were found good: the parser's checks
// are not repeated, but nothing outside `length` bytes is read.
#include <cstddef>
#include <cstdint>

namespace cachewire::net {

struct FragmentField {
    std::uint32_t id = 0;           // 16 bits in IPv4, 32 in IPv6
    std::uint16_t offset = 0;       // bytes, from the start of what was cut into pieces
    std::uint16_t data_offset = 0;  // where this piece's data begins, from the IP header's first byte
};

FragmentField read_fragment_ip4(const std::uint8_t* header) noexcept;  // 20 bytes at least
// `header` begins an IPv6 header with a fragment header in its chain. Without one: all zero.
FragmentField read_fragment_ip6(const std::uint8_t* header, std::size_t length) noexcept;

}  // namespace cachewire::net
