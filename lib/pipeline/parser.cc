// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/parser.h"

#include "net/martian.h"

namespace cachewire::pipeline::parser {

namespace {

bool is_tag(std::uint16_t ether_type) noexcept {
    return ether_type == net::kEtherTypeVlan || ether_type == net::kEtherTypeServiceVlan;
}

// Tags from the outermost in. A priority tag (ID 0, IEEE 802.1Q 9.6) counts as a tag and names no VLAN.
struct TagStack {
    unsigned count = 0;
    std::uint16_t vlans[2] = {0, 0};  // outer first, 0 past the end
    unsigned vlan_count = 0;
    std::uint8_t pcp = 0;  // of the outermost

    bool add(std::uint16_t tci) noexcept {
        if (count == 2) return false;
        if (count++ == 0) pcp = static_cast<std::uint8_t>(tci >> 13);
        const std::uint16_t vlan = tci & 0x0fff;
        if (vlan != 0) vlans[vlan_count++] = vlan;
        return true;
    }
};

L2 refuse(DropReason reason) noexcept { return {reason, 0, 0, {}, 0}; }

}  // namespace

[[gnu::cold]] L2 parse_tags(const Frame& frame, const Port& port) noexcept {
    TagStack tags;
    for (unsigned i = 0; i < frame.stripped_tags; ++i) {
        if (!tags.add(frame.stripped_tci[i])) return refuse(DropReason::vlan_depth);
    }
    std::uint32_t offset = net::kEthernetBytes;
    std::uint16_t ether_type = net::load16_be(frame.data + offset - 2);
    while (is_tag(ether_type)) {
        if (offset + net::kTagBytes > frame.length) return refuse(DropReason::vlan_truncated);
        if (!tags.add(net::load16_be(frame.data + offset))) return refuse(DropReason::vlan_depth);
        offset += net::kTagBytes;
        ether_type = net::load16_be(frame.data + offset - 2);
    }
    return {std::nullopt, net::be16(ether_type), static_cast<std::uint16_t>(offset),
            find_attachment(port, tags.vlans[0], tags.vlans[1]), tags.pcp};
}

[[gnu::cold]] Drop refuse_ether_type(std::uint16_t ether_type_be) noexcept {
    return ether_type_be == net::be16(net::kEtherTypeArp) ? DropReason::arp : DropReason::not_ip;
}

// RFC 4861 6.1, 7.1: a hop limit of 255 says that no router has passed it on, so only such messages are any.
[[gnu::cold]] bool is_neighbor_discovery(const Frame& frame, std::uint16_t l3_offset) noexcept {
    if (frame.length < l3_offset + net::kIp6Bytes + net::kIcmp6Bytes) return false;
    const std::uint8_t* l3 = frame.data + l3_offset;
    const std::uint8_t type = l3[net::kIp6Bytes];
    return l3[0] >> 4 == 6 && l3[6] == net::kProtoIcmp6 && l3[7] == 255 && type >= 133 && type <= 137;
}

// Destinations before sources: what hosts say to their link (DHCP from 0.0.0.0, duplicate address detection from ::) is
// no martian, it is not for a router to pass on.
[[gnu::cold]] Drop check_addresses(net::Family family, const net::FlowKey& key, bool group_mac,
                                   bool broadcast_mac) noexcept {
    // ::ffff:0:0/96 on the wire (RFC 4291 2.5.5.2 gives it to nodes' insides) would pass for IPv4 from here on.
    if (family == net::Family::ip6) {
        if (key.dst.is_v4()) return DropReason::martian_destination;
        if (key.src.is_v4()) return DropReason::martian_source;
    }
    switch (net::destination_class(key.dst)) {
        case net::DestinationClass::multicast:
            return DropReason::multicast;
        case net::DestinationClass::broadcast:
            return DropReason::broadcast;
        case net::DestinationClass::martian:
            return DropReason::martian_destination;
        case net::DestinationClass::unicast:
            break;
    }
    if (net::is_martian_source(key.src)) return DropReason::martian_source;
    // RFC 1812 5.3.4: a unicast packet in a link-layer broadcast is not forwarded, or every router on the link would.
    if (group_mac) return broadcast_mac ? DropReason::broadcast : DropReason::multicast;
    return {};
}

[[gnu::cold]] Fragment classify_fragment(std::uint32_t fragment, std::uint8_t proto) noexcept {
    const std::uint32_t offset = fragment & ~7u;
    if (offset == 0) return {std::nullopt, net::kFragment | net::kFirstFragment};
    if (offset == 8 && proto == net::kProtoTcp) return {DropReason::fragment_offset, 0};
    return {std::nullopt, net::kFragment | net::kLaterFragment};
}

namespace {

L4 truncated() noexcept {
    L4 l4;
    l4.drop = DropReason::l4_truncated;
    return l4;
}

struct IcmpNumbers {
    unsigned header_bytes;
    std::uint8_t echo, echo_reply;
};
constexpr IcmpNumbers kIcmp4{net::kIcmpBytes, 8, 0};
constexpr IcmpNumbers kIcmp6{net::kIcmp6Bytes, 128, 129};

bool is_icmp_error(net::Family family, std::uint8_t type) noexcept {
    if (family == net::Family::ip6) return type < 128;  // RFC 4443 2.1
    // RFC 1122 3.2.2: unreachable, source quench, redirect, time exceeded, parameter problem.
    return type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
}

L4 parse_icmp(net::Family family, const std::uint8_t* icmp, std::size_t remaining) noexcept {
    const IcmpNumbers& numbers = family == net::Family::ip4 ? kIcmp4 : kIcmp6;
    if (remaining < numbers.header_bytes) return truncated();
    L4 l4;
    l4.known = true;
    l4.type = icmp[0];
    l4.code = icmp[1];
    l4.icmp_error = is_icmp_error(family, l4.type);
    if (l4.type == numbers.echo || l4.type == numbers.echo_reply) {
        if (remaining < net::kIcmpBytes) return truncated();
        l4.src_port_be = l4.dst_port_be = net::load16(icmp + 4);  // both, so that request and reply are one flow
    }
    return l4;
}

}  // namespace

[[gnu::cold]] L4 parse_other_l4(net::Family family, std::uint8_t proto, const std::uint8_t* l4,
                                std::size_t remaining) noexcept {
    const std::uint8_t icmp = family == net::Family::ip4 ? net::kProtoIcmp : net::kProtoIcmp6;
    if (proto == icmp) return parse_icmp(family, l4, remaining);
    L4 other;
    if (proto == net::kProtoSctp) {
        if (remaining < net::kSctpBytes) return truncated();
        other.known = true;
        other.src_port_be = net::load16(l4);
        other.dst_port_be = net::load16(l4 + 2);
    }
    return other;
}

[[gnu::cold]] std::uint32_t fragment_hash(const net::FlowKey& key, const net::HashSeed& seed) noexcept {
    net::FlowKey without_ports = key;
    without_ports.src_port_be = without_ports.dst_port_be = 0;
    return net::flow_hash(without_ports, seed);
}

}  // namespace cachewire::pipeline::parser
