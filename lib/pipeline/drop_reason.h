#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Every way a packet can end without leaving. The name is the key in /cachewire/drops, the text is what docs and tables
// show. To find the line that drops: grep -rn DropReason::NAME lib/pipeline.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cachewire::pipeline {

// clang-format off
#define CACHEWIRE_DROP_REASONS(X)                                                                                        \
    X(frame_short,           "shorter than an Ethernet header")                                                        \
    X(vlan_truncated,        "ends inside a VLAN tag")                                                                 \
    X(vlan_depth,            "more than two VLAN tags")                                                                \
    X(foreign_mac,           "unicast to another station's MAC address")                                               \
    X(not_ip,                "EtherType is neither IPv4, IPv6 nor ARP")                                                \
    X(arp,                   "ARP over the rate that the slow path takes")                                             \
    X(nd,                    "neighbor discovery over the rate that the slow path takes")                              \
    X(pair_non_ip,           "ARP, neighbor discovery or no IP at all, on a transparent pair with `non_ip: drop`")       \
    X(no_tenant,             "no tenant matches the port and VLAN")                                                    \
    X(no_interface,          "the tenant has no interface on this port and VLAN")                                      \
    X(headers_chained,       "headers spread over buffers and could not be pulled together")                           \
    X(ip4_truncated,         "ends inside the IPv4 header")                                                            \
    X(ip4_version,           "EtherType says IPv4, the header another version (RFC 1812 5.2.2)")                        \
    X(ip4_header_length,     "IPv4 header length under 20 bytes or over the packet (RFC 1812 5.2.2)")                   \
    X(ip4_total_length,      "IPv4 total length under the header or over the frame (RFC 1812 5.2.2)")                   \
    X(ip4_checksum,          "IPv4 header checksum is wrong (RFC 1812 5.2.2)")                                          \
    X(ip4_options,           "IPv4 options malformed, or source routing, which is not done")                           \
    X(ip6_truncated,         "ends inside the IPv6 header")                                                            \
    X(ip6_version,           "EtherType says IPv6, the header another version")                                        \
    X(ip6_payload_length,    "IPv6 payload length is over the frame, or a jumbogram")                                  \
    X(ip6_extension_truncated, "an IPv6 extension header or option runs past its end")                              \
    X(ip6_extension_limit,   "more than 8 IPv6 extension headers or 256 bytes of them")                                \
    X(ip6_extension_order,   "hop-by-hop header not first (RFC 8200 4.1), or a second fragment header")                \
    X(ip6_routing_header,    "IPv6 routing header type 0 (RFC 5095)")                                                  \
    X(martian_source,        "source address that can't be one (RFC 1812 5.3.7, RFC 4291)")                             \
    X(martian_destination,   "destination address that is never routed (RFC 1812 5.3.7, RFC 4291)")                     \
    X(broadcast,             "limited, link-layer or directed broadcast; routers don't pass it on")                    \
    X(multicast,             "multicast, which is not routed")                                                         \
    X(fragment_length,       "fragment past 65535 bytes, or not a multiple of 8 before the last")                       \
    X(fragment_offset,       "fragment that would overwrite the upper-layer header (RFC 1858 4.2)")                    \
    X(l4_truncated,          "ends inside the TCP, UDP, SCTP or ICMP header")                                          \
    X(tcp_data_offset,       "TCP data offset under 20 bytes or past the segment")                                     \
    X(udp_length,            "UDP length under 8 or over the IP payload")                                              \
    X(icmp_quote,            "ICMP error whose quoted packet is cut short or malformed")                               \
    X(session_state,         "no session, and this packet can't begin one")                                            \
    X(session_table_full,    "session table at capacity")                                                              \
    X(session_bucket_full,   "no free slot in both buckets")                                                           \
    X(session_quota,         "the tenant is at its quota of sessions, or of new ones a second")                        \
    X(leak_conflict,         "another tenant's session awaits the same replies by the same tenant")                    \
    X(acl_deny,              "a deny rule of the tenant's list")                                                       \
    X(acl_default,           "no rule matched and the list's default is deny")                                         \
    X(blocked,               "to or from a prefix that `cwctl block` keeps out for now")                                 \
    X(no_route,              "no route to the destination in the tenant's VRF")                                        \
    X(route_drop,            "the route says drop")                                                                    \
    X(no_neighbor,           "the next hop's MAC address is not known")                                                \
    X(local,                 "addressed to the router itself, where nothing listens")                                  \
    X(ttl_exceeded,          "TTL or hop limit used up (RFC 1812 5.3.1)")                                               \
    X(mtu_exceeded,          "longer than the egress MTU")                                                             \
    X(rpf,                   "no route, or not this one, back to the source (the tenant's rpf)")                        \
    X(policer,               "over the policer's rate")                                                                \
    X(handoff_full,          "the ring to the session's owner is full: that worker is too slow, or stalled")              \
    X(kernel_rate,           "for the kernel's twin, over the rate of `kernel: punt`")                                   \
    X(punt_full,             "the queue to the slow path is full")                                                     \
    X(tx_full,               "the device did not take it and the TX buffer is full")                                   \
    X(scheduler_feed_full,   "the ring to the port's scheduler is full: its lcore is too slow, or stalled")               \
    X(scheduler_full,        "the port's scheduler has as many packets of the class as it can hold")                     \
    X(no_mbuf,               "the pool has no buffers for its fragments")                                              \
    X(frame_oversize,        "longer than the port's MTU and its headers; the device may have cut it")                  \
    X(tx_chained,            "in several buffers, which the egress device can't send, and too long for one")            \
    X(port_down,             "the port it came from or goes to is administratively down or gone")                   \
    X(link_down,             "the port it goes to has no link")                                                         \
    X(shutdown,              "still held when the drain at shutdown ran out of time")
// clang-format on

enum class DropReason : std::uint8_t {
#define X(name, text) name,
    CACHEWIRE_DROP_REASONS(X)
#undef X
};

#define X(name, text) +1
inline constexpr std::size_t kDropReasons = 0 CACHEWIRE_DROP_REASONS(X);
#undef X

struct DropReasonText {
    std::string_view name;
    std::string_view text;
};

inline constexpr std::array<DropReasonText, kDropReasons> kDropReasonTexts = {{
#define X(name, text) {#name, text},
    CACHEWIRE_DROP_REASONS(X)
#undef X
}};

// "" for a name that is none.
constexpr std::string_view drop_reason_text(std::string_view name) noexcept {
    for (const DropReasonText& reason : kDropReasonTexts)
        if (reason.name == name) return reason.text;
    return "";
}

}  // namespace cachewire::pipeline
