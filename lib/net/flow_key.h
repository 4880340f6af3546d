#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What identifies a packet's flow, and what its first packet adds for policy. Written by the parser, read by session
// look-up, ACL and LPM straight out of this memory: field offsets double as rte_acl input offsets, so all bytes stand
// as on the wire.
//
// One type for both families: an IPv4 address stands as ::ffff:a.b.c.d (RFC 4291 2.5.5.2). The parser drops IPv6
// packets that carry such an address, so the form is unambiguous and no code below needs a twin.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cachewire::net {

struct Address {
    std::array<std::uint8_t, 16> bytes{};

    [[nodiscard]] bool is_v4() const noexcept {
        std::uint64_t high;
        std::uint32_t mid;
        std::memcpy(&high, bytes.data(), 8);
        std::memcpy(&mid, bytes.data() + 8, 4);
        return high == 0 && mid == 0xffff0000u;  // little-endian image of 00 00 ff ff
    }
    // Host byte order; meaningful when is_v4().
    [[nodiscard]] std::uint32_t v4() const noexcept {
        std::uint32_t be;
        std::memcpy(&be, bytes.data() + 12, 4);
        return __builtin_bswap32(be);
    }
    static Address from_v4(std::uint32_t host_order) noexcept {
        Address a;
        a.bytes[10] = a.bytes[11] = 0xff;
        const std::uint32_t be = __builtin_bswap32(host_order);
        std::memcpy(a.bytes.data() + 12, &be, 4);
        return a;
    }
    friend bool operator==(const Address&, const Address&) = default;
    friend auto operator<=>(const Address&, const Address&) = default;
};
static_assert(sizeof(Address) == 16);

// fe80::/10 (RFC 4291 2.4).
inline bool is_link_local(const Address& address) noexcept {
    return address.bytes[0] == 0xfe && (address.bytes[1] & 0xc0) == 0x80;
}

// FlowKey::match_flags
inline constexpr std::uint8_t kL4Known = 1;        // ports, TCP flags or ICMP type are really this packet's; without it
                                                   // they are 0
inline constexpr std::uint8_t kFirstFragment = 2;  // offset 0, more to come
inline constexpr std::uint8_t kLaterFragment = 4;  // offset > 0: no L4 header here, never matches a port rule
inline constexpr std::uint8_t kHasOptions = 8;  // IPv4 options or IPv6 extension headers other than a fragment header
inline constexpr std::uint8_t kFragment = 16;   // beside either fragment bit, so that a rule can ask for both

struct alignas(16) FlowKey {
    Address src;                    // 0
    Address dst;                    // 16
    std::uint16_t src_port_be = 0;  // 32  TCP, UDP, SCTP; for ICMP echo the identifier in both; else 0
    std::uint16_t dst_port_be = 0;  // 34
    std::uint16_t tenant = 0;       // 36  slot in the snapshot, host order, dense
    std::uint8_t proto = 0;         // 38  of the upper layer, after IPv6 extension headers
    std::uint8_t reserved = 0;      // 39  0
    // What follows is not identity: first-packet fields, which a verdict depends on and the session keeps cold.
    std::uint16_t in_interface_be = 0;  // 40  index in the snapshot
    std::uint8_t tcp_flags = 0;         // 42
    std::uint8_t dscp = 0;              // 43  0-63
    std::uint8_t icmp_type = 0;         // 44
    std::uint8_t icmp_code = 0;         // 45
    std::uint8_t match_flags = 0;       // 46
    std::uint8_t pcp = 0;               // 47  VLAN priority 0-7

    [[nodiscard]] bool is_v4() const noexcept { return dst.is_v4(); }
};
inline constexpr std::size_t kFlowIdentityBytes = 40;
static_assert(sizeof(FlowKey) == 48 && offsetof(FlowKey, in_interface_be) == kFlowIdentityBytes);

}  // namespace cachewire::net
