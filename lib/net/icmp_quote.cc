// SPDX-License-Identifier: BSD-3-Clause
#include "net/icmp_quote.h"

#include <algorithm>
#include <cstring>

#include "net/headers.h"
#include "net/ip6_extensions.h"

namespace cachewire::net {

namespace {

constexpr std::size_t kQuotedL4Bytes = 8;

bool is_icmp_error(std::uint8_t proto, std::uint8_t type) noexcept {
    if (proto == kProtoIcmp6) return type < 128;                             // RFC 4443 2.1
    return type == 3 || type == 4 || type == 5 || type == 11 || type == 12;  // RFC 1122 3.2.2
}

// The first 8 bytes of the quoted upper layer, keyed as the parser keys a whole packet.
Quote read_l4(std::uint8_t icmp, const std::uint8_t* l4, FlowKey& key) noexcept {
    key.src_port_be = key.dst_port_be = 0;
    if (key.proto == kProtoTcp || key.proto == kProtoUdp || key.proto == kProtoSctp) {
        key.src_port_be = load16(l4);
        key.dst_port_be = load16(l4 + 2);
        return Quote::flow;
    }
    if (key.proto != icmp) return Quote::flow;
    if (is_icmp_error(key.proto, l4[0])) return Quote::no_flow;  // RFC 1122 3.2.2: none answers another
    const bool echo = icmp == kProtoIcmp ? l4[0] == 8 || l4[0] == 0 : l4[0] == 128 || l4[0] == 129;
    if (echo) key.src_port_be = key.dst_port_be = load16(l4 + 4);
    return Quote::flow;
}

Quote read_ip4(const std::uint8_t* quote, std::size_t length, FlowKey& key) noexcept {
    if (length < kIp4Bytes || quote[0] >> 4 != 4) return Quote::malformed;
    const std::size_t header = std::size_t{quote[0] & 0xfu} * 4;
    if (header < kIp4Bytes || header > length) return Quote::malformed;
    if ((load16_be(quote + 6) & 0x1fff) != 0) return Quote::no_flow;
    if (header + kQuotedL4Bytes > length) return Quote::malformed;
    key.src = Address::from_v4(__builtin_bswap32(load32(quote + 12)));
    key.dst = Address::from_v4(__builtin_bswap32(load32(quote + 16)));
    key.proto = quote[9];
    return read_l4(kProtoIcmp, quote + header, key);
}

Quote read_ip6(const std::uint8_t* quote, std::size_t length, FlowKey& key) noexcept {
    if (length < kIp6Bytes || quote[0] >> 4 != 6) return Quote::malformed;
    // The quote may go on past the packet (RFC 4884 extensions) or end before it.
    length = std::min<std::size_t>(length, kIp6Bytes + load16_be(quote + 4));
    const Ip6Chain chain = walk_ip6_extensions(quote, length);
    // A first or middle piece is cut at 8-byte boundaries on the wire, but not in a quote.
    if (chain.verdict == Ip6Chain::Verdict::fragment_length) return Quote::no_flow;
    if (chain.verdict != Ip6Chain::Verdict::ok) return Quote::malformed;
    if ((chain.fragment & ~7u) != 0) return Quote::no_flow;
    if (chain.upper_offset + kQuotedL4Bytes > length) return Quote::malformed;
    std::memcpy(key.src.bytes.data(), quote + 8, 16);
    std::memcpy(key.dst.bytes.data(), quote + 24, 16);
    if (key.src.is_v4() || key.dst.is_v4()) return Quote::malformed;  // would pass for IPv4 from here on
    key.proto = chain.proto;
    return read_l4(kProtoIcmp6, quote + chain.upper_offset, key);
}

}  // namespace

Quote read_icmp_quote(Family family, const std::uint8_t* quote, std::size_t length, FlowKey& key) noexcept {
    return family == Family::ip4 ? read_ip4(quote, length, key) : read_ip6(quote, length, key);
}

}  // namespace cachewire::net
