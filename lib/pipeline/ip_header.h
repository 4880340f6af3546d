#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The fixed headers of IPv4 and IPv6, read once with wide loads and checked (RFC 1812 5.2.2, RFC 8200 3), into what
// both families have. Options, fragments and extension headers are calls to functions that stand apart in ip_header.cc.
// For parser.h, which says what the shapes are for.
#include <cstddef>
#include <cstdint>
#include <optional>

#include "net/checksum.h"
#include "net/flow_hash.h"
#include "net/headers.h"
#include "net/ip6_extensions.h"
#include "net/martian.h"
#include "net/prefix.h"
#include "pipeline/drop_reason.h"

namespace cachewire::pipeline {

struct IpChecksum {  // what the device found out about an IPv4 header
    enum Value : std::uint8_t { unknown, good, bad };
};

namespace parser {

using Drop = std::optional<DropReason>;

// Version, header length and options of an IPv4 header that does not begin with 0x45.
Drop check_ip4_start(const std::uint8_t* header, std::size_t available) noexcept;
bool ip4_options_checksum_ok(const std::uint8_t* header) noexcept;
Drop check_ip4_fragment(std::uint32_t fragment, std::uint32_t total_length, std::uint32_t header_length) noexcept;
Drop refuse_chain(net::Ip6Chain::Verdict verdict) noexcept;

// What both families' fixed headers say.
struct IpHeader {
    net::FlowWords words{};           // addresses; what is behind them is not set here
    std::uint32_t length = 0;         // of the datagram, L2 padding left out
    std::uint32_t header_length = 0;  // up to the upper layer, options and extension headers in it
    std::uint32_t fragment = 0;       // offset in 8-byte units << 3 | more to come; 0: whole
    std::uint8_t proto = 0;
    std::uint8_t ttl = 0;
    std::uint8_t dscp = 0;
    bool has_options = false;
    bool maybe_special = false;  // an address that check_addresses has to look at
};

// wire: of a transparent pair, on which hosts say to each other what no router passes on.
enum class Shape { plain, any, wire };

// Enough bytes for the fixed header, nothing between it and L4, a whole TCP or UDP datagram. From the words that are
// read anyway.
template <net::Family kFamily>
[[gnu::always_inline]] inline bool is_plain(const std::uint8_t* l3, std::uint32_t available) noexcept {
    constexpr bool kIp4 = kFamily == net::Family::ip4;
    if (available < (kIp4 ? net::kIp4Bytes : net::kIp6Bytes)) return false;
    const std::uint64_t first = net::load64(l3);
    const auto proto = static_cast<std::uint8_t>(kIp4 ? net::load64(l3 + 8) >> 8 : first >> 48);
    if (proto != net::kProtoTcp && proto != net::kProtoUdp) return false;
    constexpr std::uint64_t kStartAndFragment = 0xff | std::uint64_t{net::be16(0x3fff)} << 48;
    return !kIp4 || (first & kStartAndFragment) == 0x45;
}

template <Shape kShape>
[[gnu::always_inline]] inline Drop read_ip4(const std::uint8_t* l3, std::uint32_t available, IpChecksum::Value device,
                                            IpHeader& ip) noexcept {
    constexpr bool kAny = kShape != Shape::plain;
    if (kAny && available < net::kIp4Bytes) return DropReason::ip4_truncated;
    const std::uint64_t first = net::load64(l3);       // version and length, TOS, total length, id, fragment
    const std::uint64_t second = net::load64(l3 + 8);  // TTL, protocol, checksum, source
    const std::uint32_t destination = net::load32(l3 + 16);
    const auto source = static_cast<std::uint32_t>(second >> 32);

    ip.header_length = net::kIp4Bytes;
    if (kAny && (first & 0xff) != 0x45) {
        if (const Drop drop = check_ip4_start(l3, available)) return drop;
        ip.header_length = static_cast<std::uint32_t>(first & 0xf) * 4;
        ip.has_options = true;
    }
    // RFC 1812 5.2.2(2). A device that looked says so; what it has no opinion on is summed here.
    if (device != IpChecksum::good) {
        const bool ok = ip.has_options ? ip4_options_checksum_ok(l3) : net::ip4_checksum_ok(first, second, destination);
        if (!ok || device == IpChecksum::bad) return DropReason::ip4_checksum;
    }
    ip.length = net::be16(static_cast<std::uint16_t>(first >> 16));
    // RFC 1812 5.2.2(5), and the frame has to hold it; what the frame has beyond is padding.
    if (ip.length < ip.header_length || ip.length > available) return DropReason::ip4_total_length;
    const std::uint32_t fragment = kAny ? net::be16(static_cast<std::uint16_t>(first >> 48)) : 0;
    if (kAny && (fragment & 0x3fff) != 0) {  // MF and offset
        ip.fragment = (fragment & 0x1fff) << 3 | (fragment >> 13 & 1);
        if (const Drop drop = check_ip4_fragment(ip.fragment, ip.length, ip.header_length)) return drop;
    }
    ip.ttl = static_cast<std::uint8_t>(second);
    ip.proto = static_cast<std::uint8_t>(second >> 8);
    ip.dscp = static_cast<std::uint8_t>(first >> 10 & 0x3f);

    ip.words = {.src = {0, std::uint64_t{source} << 32 | 0xffff0000u},
                .dst = {0, std::uint64_t{destination} << 32 | 0xffff0000u},
                .rest = 0};
    ip.maybe_special = net::maybe_special_ip4(source) | net::maybe_special_ip4(destination);
    return {};
}

template <Shape kShape>
[[gnu::always_inline]] inline Drop read_ip6(const std::uint8_t* l3, std::uint32_t available, IpHeader& ip) noexcept {
    constexpr bool kAny = kShape != Shape::plain;
    if (kAny && available < net::kIp6Bytes) return DropReason::ip6_truncated;
    const std::uint64_t first =
        net::load64(l3);  // version, class and flow label, payload length, next header, hop limit
    ip.words = {.src = {net::load64(l3 + 8), net::load64(l3 + 16)},
                .dst = {net::load64(l3 + 24), net::load64(l3 + 32)},
                .rest = 0};
    if ((first & 0xf0) != 0x60) return DropReason::ip6_version;
    const std::uint32_t payload = net::be16(static_cast<std::uint16_t>(first >> 32));
    ip.length = payload + net::kIp6Bytes;
    ip.header_length = net::kIp6Bytes;
    ip.proto = static_cast<std::uint8_t>(first >> 48);
    ip.ttl = static_cast<std::uint8_t>(first >> 56);
    ip.dscp = static_cast<std::uint8_t>((first << 2 & 0x3c) | (first >> 14 & 3));
    // Payload length 0 before a hop-by-hop header is a jumbogram (RFC 2675 2); a datagram over 65535 bytes passes no
    // link.
    if (ip.length > available || ip.length > 65535) return DropReason::ip6_payload_length;
    if (kAny && payload == 0 && ip.proto == net::kProtoHopByHop) return DropReason::ip6_payload_length;
    if (kAny && net::is_ip6_extension(ip.proto)) {
        const net::Ip6Chain chain = net::walk_ip6_extensions(l3, ip.length);
        if (chain.verdict != net::Ip6Chain::Verdict::ok) return refuse_chain(chain.verdict);
        ip.proto = chain.proto;
        ip.header_length = chain.upper_offset;
        ip.fragment = chain.fragment;
        ip.has_options = chain.has_options;
    }
    ip.maybe_special = net::maybe_special_ip6(__builtin_bswap64(ip.words.src[0])) |
                       net::maybe_special_ip6(__builtin_bswap64(ip.words.dst[0]));
    return {};
}

}  // namespace parser
}  // namespace cachewire::pipeline
