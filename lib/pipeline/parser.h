#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// From a frame's bytes to what the pipeline knows of it: one function for both families, called by the parse stage and
// by tests without any worker. Bytes are read once, in order, with wide loads into registers; each length is compared
// before the bytes are read. What is rare (tags, options, extension headers, fragments, ICMP, group addresses) is a
// call to a function that stands apart in parser.cc and answers in registers, so the straight line stays short and
// there is no second parser. IP's fixed headers are ip_header.h's.
//
// parse_ip_as is one template with two instances a family. `plain` is what nearly every packet is: to our unicast
// address, no tag or one, no options, extension headers or fragment, TCP or UDP. For it the compiler drops all the
// rest: about half of the instructions. `any` handles everything, plain packets too, and gives them the same answers.
//
// `Out` is what receives the fields: the lane itself on workers, a Parsed elsewhere. Frame, L2 and IpHeader are passed
// by value or inlined away, so that for plain packets they are registers and never memory.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "net/flow_hash.h"
#include "net/flow_key.h"
#include "net/headers.h"
#include "net/ip6_extensions.h"
#include "net/prefix.h"
#include "pipeline/attachment.h"
#include "pipeline/descriptor.h"
#include "pipeline/drop_reason.h"
#include "pipeline/ip_header.h"
#include "pipeline/snapshot.h"

namespace cachewire::pipeline {

// Headers lie within so many bytes of every frame that is not dropped: Ethernet, two tags, IPv6 with all the extension
// headers that are walked, TCP without options. So many bytes, or the whole frame, are contiguous before the parser
// begins.
inline constexpr std::uint32_t kHeaderBytes = 22 + 40 + net::kMaxIp6ExtensionBytes + 20;

struct Frame {
    const std::uint8_t* data;  // min(length, kHeaderBytes) of them contiguous
    std::uint32_t length;      // all segments, without tags that the device stripped
    IpChecksum::Value ip_checksum = IpChecksum::unknown;
    std::uint8_t stripped_tags = 0;          // 0-2
    std::uint16_t stripped_tci[2] = {0, 0};  // outer first
};

// The lane's fields. `tenant` is right for dropped packets too, as far as it could be known.
struct Parsed {
    std::uint32_t hash = 0;
    std::uint16_t l3_length = 0;
    std::uint16_t l3_offset = 0;
    std::uint16_t l4_offset = 0;
    std::uint16_t in_interface = kNoInterface;
    std::uint16_t tenant = kNoTenant;
    std::uint16_t flags = 0;
    std::uint8_t ttl = 0;
};

namespace parser {

// The rare parts, in parser.cc. Each looks only at what its parameters name and comes back in registers.
struct L2 {
    Drop drop;
    std::uint16_t ether_type_be;
    std::uint16_t l3_offset;
    Attachment attachment;
    std::uint8_t pcp;
};
L2 parse_tags(const Frame& frame, const Port& port) noexcept;
Drop refuse_ether_type(std::uint16_t ether_type_be) noexcept;
// Neighbor discovery, whoever it is for: the slow path's, before a multicast or link-local address would be refused.
bool is_neighbor_discovery(const Frame& frame, std::uint16_t l3_offset) noexcept;
// For frames to a group MAC address and for addresses that may be special.
Drop check_addresses(net::Family family, const net::FlowKey& key, bool group_mac, bool broadcast_mac) noexcept;

struct Fragment {
    Drop drop;
    std::uint8_t match_flags;
};
Fragment classify_fragment(std::uint32_t fragment, std::uint8_t proto) noexcept;

struct L4 {
    Drop drop;
    bool known = false;
    bool icmp_error = false;
    std::uint8_t type = 0, code = 0;
    std::uint16_t src_port_be = 0, dst_port_be = 0;
};
L4 parse_other_l4(net::Family family, std::uint8_t proto, const std::uint8_t* l4, std::size_t remaining) noexcept;

std::uint32_t fragment_hash(const net::FlowKey& key, const net::HashSeed& seed) noexcept;

// Word by word: as one 16-byte copy the compiler puts the words together in memory, and the copy waits for them. IPv4's
// as what they consist of, so that nobody has to put them together at all.
template <net::Family kFamily>
[[gnu::always_inline]] inline void store_address(const std::uint64_t* words, net::Address& address) noexcept {
    std::memcpy(address.bytes.data(), &words[0], 8);
    if constexpr (kFamily == net::Family::ip4) {
        const auto prefix = static_cast<std::uint32_t>(words[1]), v4 = static_cast<std::uint32_t>(words[1] >> 32);
        std::memcpy(address.bytes.data() + 8, &prefix, 4);
        std::memcpy(address.bytes.data() + 12, &v4, 4);
    } else {
        std::memcpy(address.bytes.data() + 8, &words[1], 8);
    }
}

// Where FlowKey's first-packet fields stand in one word of it (the layout is asserted in flow_key.h).
inline constexpr unsigned kTcpFlagsBit = 16, kDscpBit = 24, kIcmpTypeBit = 32, kIcmpCodeBit = 40, kMatchFlagsBit = 48,
                          kPcpBit = 56;

// L3 and L4. What is known early is written early: kept for later it would take registers from the hash. Inlined by
// order: as a call, frame and result pass through memory.
template <net::Family kFamily, Shape kShape, class Out>
[[gnu::always_inline]] inline Drop parse_ip_as(const std::uint8_t* frame, std::uint32_t length,
                                               IpChecksum::Value ip_checksum, bool group_mac, const L2& l2,
                                               const net::HashSeed& seed, Out& out, net::FlowKey& key) noexcept {
    constexpr bool kAny = kShape != Shape::plain;
    const std::uint8_t* l3 = frame + l2.l3_offset;
    const std::uint32_t available = length - l2.l3_offset;
    IpHeader ip;
    Drop drop;
    if constexpr (kFamily == net::Family::ip4) {
        drop = read_ip4<kShape>(l3, available, ip_checksum, ip);
    } else {
        drop = read_ip6<kShape>(l3, available, ip);
    }
    if (drop) return drop;
    out.l3_length = static_cast<std::uint16_t>(ip.length);
    out.l3_offset = l2.l3_offset;
    out.l4_offset = static_cast<std::uint16_t>(l2.l3_offset + ip.header_length);
    if constexpr (kFamily == net::Family::ip6) out.flags = kLaneIpv6;
    out.in_interface = l2.attachment.interface;  // with l3_offset for who asks whether the kernel's twin takes it
    out.ttl = ip.ttl;
    store_address<kFamily>(ip.words.src, key.src);
    store_address<kFamily>(ip.words.dst, key.dst);
    if constexpr (kShape == Shape::wire) {
        if (kFamily == net::Family::ip6 && key.dst.is_v4()) return DropReason::martian_destination;
        if (kFamily == net::Family::ip6 && key.src.is_v4()) return DropReason::martian_source;
    } else if ((kAny && group_mac) | ip.maybe_special) {
        const bool broadcast_mac = group_mac && net::load32(frame) == 0xffffffff && net::load16(frame + 4) == 0xffff;
        drop = check_addresses(kFamily, key, group_mac, broadcast_mac);
        if (drop) [[unlikely]]
            return drop;
    }
    std::uint8_t match_flags = ip.has_options ? net::kHasOptions : 0;
    if (kAny && ip.fragment != 0) {
        const Fragment fragment = classify_fragment(ip.fragment, ip.proto);
        if (fragment.drop) return fragment.drop;
        match_flags |= fragment.match_flags;
    }

    const std::uint8_t* l4 = l3 + ip.header_length;
    const std::uint32_t remaining = ip.length - ip.header_length;
    std::uint32_t ports = 0;
    std::uint64_t l4_fields = 0;  // TCP flags or ICMP type and code, where they stand in the key
    std::uint64_t proto = ip.proto;
    if (kAny && (match_flags & net::kLaterFragment) != 0) {
        out.l4_offset = 0;
    } else if (ip.proto == net::kProtoTcp) {
        if (remaining < net::kTcpBytes) return DropReason::l4_truncated;
        ports = net::load32(l4);
        const std::uint32_t data_offset = (l4[12] >> 4) * 4u;
        l4_fields = std::uint64_t{l4[13]} << kTcpFlagsBit;
        if (data_offset < net::kTcpBytes || data_offset > remaining) return DropReason::tcp_data_offset;
        proto = net::kProtoTcp;  // constants for plain packets, so that nobody keeps the field until here
        match_flags |= net::kL4Known;
    } else if (!kAny || ip.proto == net::kProtoUdp) {
        if (remaining < net::kUdpBytes) return DropReason::l4_truncated;
        const std::uint64_t header = net::load64(l4);
        ports = static_cast<std::uint32_t>(header);
        const std::uint32_t udp_length = net::be16(static_cast<std::uint16_t>(header >> 32));
        // A first fragment tells the whole datagram's length.
        const bool over = udp_length > remaining && (match_flags & net::kFirstFragment) == 0;
        if (udp_length < net::kUdpBytes || over) return DropReason::udp_length;
        proto = net::kProtoUdp;
        match_flags |= net::kL4Known;
    } else {
        const L4 other = parse_other_l4(kFamily, ip.proto, l4, remaining);
        if (other.drop) return other.drop;
        ports = std::uint32_t{other.dst_port_be} << 16 | other.src_port_be;
        l4_fields = std::uint64_t{other.type} << kIcmpTypeBit | std::uint64_t{other.code} << kIcmpCodeBit;
        if (other.known) match_flags |= net::kL4Known;
        if (other.icmp_error) out.flags |= kLaneIcmpError;
        if (ip.proto == net::kProtoNoNext && kFamily == net::Family::ip6) out.l4_offset = 0;
    }

    // The rest of the key as two words in one store each.
    ip.words.rest = std::uint64_t{ports} | std::uint64_t{l2.attachment.tenant} << 32 | proto << 48;
    const std::uint64_t first_packet = l4_fields | std::uint64_t{net::be16(l2.attachment.interface)} |
                                       std::uint64_t{ip.dscp} << kDscpBit |
                                       std::uint64_t{match_flags} << kMatchFlagsBit | std::uint64_t{l2.pcp} << kPcpBit;
    std::memcpy(&key.src_port_be, &ip.words.rest, 8);
    std::memcpy(&key.in_interface_be, &first_packet, 8);
    // Pieces of one datagram share a hash: only the first one has ports.
    out.hash = kAny && ip.fragment != 0 ? fragment_hash(key, seed)
                                        : net::flow_hash(ip.words, seed, kFamily == net::Family::ip4);
    return {};
}

// What is rare stands apart: the plain packets' values fit into the registers, and their instructions stand together.
template <net::Family kFamily, class Out>
[[gnu::noinline]] Drop parse_any_ip(const Frame& frame, bool group_mac, L2 l2, const net::HashSeed& seed, Out& out,
                                    net::FlowKey& key) noexcept {
    return parse_ip_as<kFamily, Shape::any>(frame.data, frame.length, frame.ip_checksum, group_mac, l2, seed, out, key);
}

template <net::Family kFamily, class Out>
[[gnu::always_inline]] inline Drop parse_ip(const Frame& frame, bool group_mac, const L2& l2, const net::HashSeed& seed,
                                            Out& out, net::FlowKey& key) noexcept {
    if (!group_mac && is_plain<kFamily>(frame.data + l2.l3_offset, frame.length - l2.l3_offset))
        return parse_ip_as<kFamily, Shape::plain>(frame.data, frame.length, frame.ip_checksum, false, l2, seed, out,
                                                  key);
    return parse_any_ip<kFamily>(frame, group_mac, l2, seed, out, key);
}

// Both as eight bytes, of which the upper two fall away: what follows the address in the frame and in the port.
inline bool is_for(const std::uint8_t* frame, const Port& port) noexcept {
    static_assert(offsetof(Port, mac) == 0 && sizeof(Port) >= 8);
    std::uint64_t own;
    std::memcpy(&own, static_cast<const void*>(&port), sizeof own);  // only its first 8 bytes, which are plain
    return (net::load64(frame) ^ own) << 16 == 0;
}

// Every frame, whatever its L2.
template <class Out>
[[gnu::noinline]] Drop parse_any_frame(const Frame& frame, const Port& port, const net::HashSeed& seed, Out& out,
                                       net::FlowKey& key) noexcept {
    if (frame.length < net::kEthernetBytes) return DropReason::frame_short;
    const bool group_mac = (frame.data[0] & 1) != 0;
    if (!group_mac && !is_for(frame.data, port)) return DropReason::foreign_mac;

    L2 l2{{}, net::load16(frame.data + 12), net::kEthernetBytes, port.untagged, 0};
    const bool is_ip =
        l2.ether_type_be == net::be16(net::kEtherTypeIp4) || l2.ether_type_be == net::be16(net::kEtherTypeIp6);
    if (!is_ip || frame.stripped_tags != 0) {
        l2 = parse_tags(frame, port);
        if (l2.drop) return l2.drop;
    }
    out.tenant = l2.attachment.tenant;
    if (l2.attachment.tenant == kNoTenant) return DropReason::no_tenant;
    if (l2.attachment.interface == kNoInterface) return DropReason::no_interface;
    // For ARP and ND, which come to no further line.
    out.in_interface = l2.attachment.interface;
    out.l3_offset = l2.l3_offset;

    if (l2.ether_type_be == net::be16(net::kEtherTypeIp4))
        return parse_ip<net::Family::ip4>(frame, group_mac, l2, seed, out, key);
    if (l2.ether_type_be == net::be16(net::kEtherTypeIp6)) {
        if (is_neighbor_discovery(frame, l2.l3_offset)) return DropReason::nd;
        return parse_ip<net::Family::ip6>(frame, group_mac, l2, seed, out, key);
    }
    return refuse_ether_type(l2.ether_type_be);
}

// What comes behind L2 if it is a plain packet, at a place that the compiler knows. False: something else, for
// parse_any_frame, and nothing is written but the tenant, which is the right one. Else `drop` is the answer.
template <class Out>
[[gnu::always_inline]] inline bool parse_plain_ip(const std::uint8_t* frame, std::uint32_t length,
                                                  IpChecksum::Value ip_checksum, const L2& l2,
                                                  const net::HashSeed& seed, Out& out, net::FlowKey& key,
                                                  Drop& drop) noexcept {
    const std::uint8_t* const l3 = frame + l2.l3_offset;
    const std::uint32_t available = length - l2.l3_offset;
    const auto parse_as = [&]<net::Family kFamily>() __attribute__((always_inline)) {
        // The tenant first: nothing is stored then between is_plain's loads and the same ones again, which the compiler
        // takes for one.
        out.tenant = l2.attachment.tenant;
        if (!is_plain<kFamily>(l3, available)) return false;
        drop = parse_ip_as<kFamily, Shape::plain>(frame, length, ip_checksum, false, l2, seed, out, key);
        return true;
    };
    if (l2.ether_type_be == net::be16(net::kEtherTypeIp4)) return parse_as.template operator()<net::Family::ip4>();
    return l2.ether_type_be == net::be16(net::kEtherTypeIp6) && parse_as.template operator()<net::Family::ip6>();
}

// A plain packet to our address without a tag; false as above. Takes no Frame, so that none is put together in memory:
// 20 instructions a packet.
template <class Out>
[[gnu::always_inline]] inline bool parse_plain_frame(const std::uint8_t* frame, std::uint32_t length,
                                                     IpChecksum::Value ip_checksum, const Port& port,
                                                     const net::HashSeed& seed, Out& out, net::FlowKey& key,
                                                     Drop& drop) noexcept {
    if (length < net::kEthernetBytes + net::kIp4Bytes || !is_for(frame, port)) return false;
    // Asked as a whole, the attachment goes through memory, 30 instructions a packet.
    if (port.untagged.interface == kNoInterface) return false;
    const L2 l2{{}, net::load16(frame + 12), net::kEthernetBytes, port.untagged, 0};
    return parse_plain_ip(frame, length, ip_checksum, l2, seed, out, key, drop);
}

// The same with one 802.1Q tag, which is how most ports tell tenants apart.
template <class Out>
[[gnu::always_inline]] inline bool parse_tagged_frame(const std::uint8_t* frame, std::uint32_t length,
                                                      IpChecksum::Value ip_checksum, const Port& port,
                                                      const net::HashSeed& seed, Out&& out, net::FlowKey& key,
                                                      Drop& drop) noexcept {
    constexpr std::uint16_t kL3 = net::kEthernetBytes + net::kTagBytes;
    if (length < kL3 + net::kIp4Bytes || !is_for(frame, port)) return false;
    if (net::load16(frame + 12) != net::be16(net::kEtherTypeVlan) || port.by_vlan.empty()) return false;
    const std::uint16_t tci = net::load16_be(frame + net::kEthernetBytes);
    const Attachment attachment = port.by_vlan[tci & 0x0fff];
    if (attachment.interface == kNoInterface) return false;
    const L2 l2{{}, net::load16(frame + kL3 - 2), kL3, attachment, static_cast<std::uint8_t>(tci >> 13)};
    return parse_plain_ip(frame, length, ip_checksum, l2, seed, out, key, drop);
}

}  // namespace parser

// `out` is fresh. nullopt: `out` and `key` are whole. Otherwise the reason, `out.tenant` as far as known, with `arp`,
// `nd` and what an address is refused for the interface and l3_offset too, all else in `out` and `key` undefined.
template <class Out>
std::optional<DropReason> parse_packet(const Frame& frame, const Port& port, const net::HashSeed& seed, Out& out,
                                       net::FlowKey& key) noexcept {
    std::optional<DropReason> drop;
    if (frame.stripped_tags == 0 &&
        (parser::parse_plain_frame(frame.data, frame.length, frame.ip_checksum, port, seed, out, key, drop) ||
         parser::parse_tagged_frame(frame.data, frame.length, frame.ip_checksum, port, seed, out, key, drop)))
        return drop;
    return parser::parse_any_frame(frame, port, seed, out, key);
}

}  // namespace cachewire::pipeline
