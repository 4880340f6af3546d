// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/twin.h"

#include <algorithm>

#include <rte_mbuf.h>

#include "net/headers.h"

namespace cachewire::pipeline {

namespace {

constexpr std::uint8_t kProtoOspf = 89;
constexpr std::uint16_t kBgp = net::be16(179);
// RFC 5881 4, RFC 5883 5; 3785 is echo, which comes back to whoever sent it.
constexpr std::uint16_t kBfd[] = {net::be16(3784), net::be16(3785), net::be16(4784)};

bool is_link_local_group(const net::Address& address) noexcept {
    if (address.is_v4()) return address.v4() >> 8 == 0xe00000;
    return address.bytes[0] == 0xff && (address.bytes[1] & 0x0f) == 2;
}

}  // namespace

[[gnu::cold]] PuntReason twin_reason(const net::FlowKey& key) noexcept {
    if (key.proto == kProtoOspf) return PuntReason::kernel_ospf;
    if ((key.match_flags & net::kL4Known) == 0) return PuntReason::kernel_other;
    if (key.proto == net::kProtoTcp && (key.src_port_be == kBgp || key.dst_port_be == kBgp))
        return PuntReason::kernel_bgp;
    const bool bfd =
        key.proto == net::kProtoUdp && std::find(std::begin(kBfd), std::end(kBfd), key.dst_port_be) != std::end(kBfd);
    return bfd ? PuntReason::kernel_bfd : PuntReason::kernel_other;
}

[[gnu::cold]] std::optional<PuntReason> twin_takes_refused(const Snapshot& snapshot, Burst& burst, Burst::LaneIndex i,
                                                           DropReason reason) noexcept {
    Lane& lane = burst.lane(i);
    const net::FlowKey& key = burst.key(i);
    if (lane.in_interface >= snapshot.interfaces.size() || !snapshot.interfaces[lane.in_interface].twin)
        return std::nullopt;
    const bool group_mac = (*rte_pktmbuf_mtod(lane.mbuf, const std::uint8_t*) & 1) != 0;
    const bool taken =
        reason == DropReason::multicast ? is_link_local_group(key.dst) : !group_mac && is_link_local(key.dst);
    if (!taken) return std::nullopt;
    const bool ip6 = !key.dst.is_v4();
    const auto* l3 = rte_pktmbuf_mtod_offset(lane.mbuf, const std::uint8_t*, lane.l3_offset);
    const std::uint32_t header = ip6 ? net::kIp6Bytes : net::kIp4Bytes;
    lane.flags = ip6 ? kLaneIpv6 : 0;
    lane.l3_length = static_cast<std::uint16_t>(std::min(lane.mbuf->pkt_len - lane.l3_offset, 65535u));
    net::FlowKey known;  // as far as the reason asks
    known.proto = l3[ip6 ? 6 : 9];
    const bool has_ports = known.proto == net::kProtoTcp || known.proto == net::kProtoUdp;
    if (has_ports && (ip6 || l3[0] == 0x45) && lane.l3_length >= header + net::kUdpBytes) {
        lane.l4_offset = static_cast<std::uint16_t>(lane.l3_offset + header);
        known.match_flags = net::kL4Known;
        known.src_port_be = net::load16(l3 + header);
        known.dst_port_be = net::load16(l3 + header + 2);
    }
    return twin_reason(known);
}

[[gnu::cold]] bool is_local_by_route(const Snapshot& snapshot, const Tenant& tenant,
                                     const net::Address& address) noexcept {
    std::uint16_t next_hop = kNoNextHop;
    const net::Address* const one = &address;
    tenant.fib->lookup({&one, 1}, {&next_hop, 1});
    return snapshot.next_hops[next_hop].kind == route::NextHopKind::local;
}

}  // namespace cachewire::pipeline
