#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The Internet checksum (RFC 1071): one's complement sums over 16-bit words in memory order, so that nothing is
// swapped. A 16-bit value here is what stands in the packet, loaded as it is. Pure functions; callers have checked the
// lengths.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "net/flow_key.h"

namespace cachewire::net {

// RFC 1071 2(B): wider words may be added, carries and all, and folded at the end.
inline std::uint16_t fold_checksum(std::uint64_t sum) noexcept {
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<std::uint16_t>(sum);
}

// Sum, not complemented. An odd last byte counts as if a zero followed.
inline std::uint64_t checksum_add(std::uint64_t sum, std::span<const std::uint8_t> bytes) noexcept {
    std::size_t i = 0;
    for (; i + 4 <= bytes.size(); i += 4) {
        std::uint32_t word;
        std::memcpy(&word, bytes.data() + i, 4);
        sum += word;
    }
    if (i == bytes.size()) return sum;  // also of nothing, whose data() may be null
    std::uint32_t rest = 0;
    std::memcpy(&rest, bytes.data() + i, bytes.size() % 4);
    return sum + rest;
}

// What to store in the checksum field while that field is zero; 0 over a header whose field is right.
inline std::uint16_t checksum(std::span<const std::uint8_t> bytes) noexcept {
    return static_cast<std::uint16_t>(~fold_checksum(checksum_add(0, bytes)));
}

// 20 bytes without options, as three loads from memory. An all-zero header would sum to 0 and is no valid one, its
// version is checked. One's complement addition is addition modulo 2^n - 1 for any n, and 65535 divides 2^32 - 1: the
// sum of 32-bit words need not be folded, it is a multiple of 65535, which is one multiplication.
inline bool ip4_checksum_ok(std::uint64_t a, std::uint64_t b, std::uint32_t c) noexcept {
    const std::uint64_t sum = (a & 0xffffffff) + (a >> 32) + (b & 0xffffffff) + (b >> 32) + c;
    return sum % 0xffff == 0;
}
inline bool ip4_checksum_ok(const std::uint8_t* header) noexcept {
    std::uint64_t a, b;
    std::uint32_t c;
    std::memcpy(&a, header, 8);
    std::memcpy(&b, header + 8, 8);
    std::memcpy(&c, header + 16, 4);
    return ip4_checksum_ok(a, b, c);
}

// RFC 1624 3, equation 3: HC' = ~(~HC + ~m + m'). The older form of RFC 1141 can give 0xffff where 0 is right.
inline std::uint16_t update_checksum(std::uint16_t checksum, std::uint16_t before, std::uint16_t after) noexcept {
    const std::uint32_t sum =
        static_cast<std::uint16_t>(~checksum) + static_cast<std::uint16_t>(~before) + std::uint32_t{after};
    return static_cast<std::uint16_t>(~fold_checksum(sum));
}

// IPv4 TTL minus one with its checksum; the caller made sure that the TTL is above 1.
inline void decrement_ttl_ip4(std::uint8_t* header) noexcept {
    // In registers throughout: a byte stored and read back as part of a word waits for the store to leave the core,
    // about 13 cycles a packet. The TTL is the low byte of its little-endian word, so in the same order of bytes the
    // word falls by 1 and RFC 1624's equation 3 becomes ~(~HC + ~1 + 0) = HC + 1 with the carry brought round.
    std::uint16_t word, sum;
    std::memcpy(&word, header + 8, 2);
    std::memcpy(&sum, header + 10, 2);
    --word;
    const std::uint32_t raised = std::uint32_t{sum} + 1;
    sum = static_cast<std::uint16_t>(raised + ((raised + 1) >> 16));  // one more from 0xffff on
    std::memcpy(header + 8, &word, 2);
    std::memcpy(header + 10, &sum, 2);
}

// TCP, UDP and ICMPv6 with the pseudo-header of the addresses' family (RFC 9293 3.1, RFC 8200 8.1): what to store while
// the segment's checksum field is zero, and 0 over a segment whose field is right. UDP sends a computed 0 as 0xffff
// (RFC 768); that is the caller's.
inline std::uint16_t l4_checksum(const Address& src, const Address& dst, std::uint8_t proto,
                                 std::span<const std::uint8_t> segment) noexcept {
    const std::size_t skip = dst.is_v4() ? 12 : 0;
    std::uint64_t sum = checksum_add(0, std::span(src.bytes).subspan(skip));
    sum = checksum_add(sum, std::span(dst.bytes).subspan(skip));
    // Length and protocol are 32-bit words in IPv6, 16-bit ones in IPv4: the same sum either way.
    sum += __builtin_bswap32(static_cast<std::uint32_t>(segment.size()));
    sum += __builtin_bswap32(proto);
    sum = checksum_add(sum, segment);
    return static_cast<std::uint16_t>(~fold_checksum(sum));
}

}  // namespace cachewire::net
