#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Datagrams that a router makes itself: echo replies, ICMP and ICMPv6 errors, TCP resets. Whole IP datagrams with
// checksums; `quote` and `request` begin with the IP header and end with the datagram, and the parser has found them
// whole. Whether one may be sent at all, how often and from which address is the caller's.
#include <cstdint>
#include <optional>
#include <span>

#include "net/flow_key.h"
#include "net/prefix.h"

namespace cachewire::net {

// What an error says, in either family's numbers.
enum class IcmpError : std::uint8_t {
    net_unreachable,
    host_unreachable,
    protocol_unreachable,
    port_unreachable,
    admin_prohibited,
    packet_too_big,
    time_exceeded,
    parameter_next_header,  // IPv6 has no protocol unreachable: RFC 4443 3.4, code 1
};

// RFC 1812 4.3.2.3: as much of the packet as fits 576 bytes; RFC 4443 2.4(c): as fits the minimum MTU.
inline constexpr unsigned kMaxIcmp4ErrorBytes = 576;
inline constexpr unsigned kMaxIcmp6ErrorBytes = 1280;

// Writes at most kMaxIcmp6ErrorBytes; returns how many. `value`: the MTU of packet_too_big, of
// parameter_next_header the offset. The destination is the quoted source.
unsigned write_icmp_error(Family family, IcmpError error, std::uint32_t value, const Address& src,
                          std::span<const std::uint8_t> quote, std::uint8_t* out) noexcept;

// RFC 792, RFC 4443 4.2: turns an echo request around where it stands, the ICMP message `l4_offset` from the IP header.
// IPv4 options stay as they are. False: its checksum is wrong.
bool turn_echo_request(Family family, std::span<std::uint8_t> request, unsigned l4_offset) noexcept;

inline constexpr unsigned kTcpResetBytes = 40 + 20;
// RFC 9293 3.10.7.1: the answer to a segment that no connection takes, from the address that it went to. Returns how
// many bytes it wrote, 0 where none is due: a reset, or a segment that is cut short. `datagram_bytes`: of the whole
// datagram, of which `segment` may be the begin.
unsigned write_tcp_reset(Family family, std::span<const std::uint8_t> segment, unsigned l4_offset,
                         unsigned datagram_bytes, std::uint8_t* out) noexcept;

}  // namespace cachewire::net
