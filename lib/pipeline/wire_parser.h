#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The parser of transparent pairs: the same checks of what is malformed, none of who it is for.
#include "pipeline/parser.h"

namespace cachewire::pipeline::parser {

// A frame of a transparent pair, whoever it is for. `arp`, `nd` and `not_ip` say that it is no packet for lists and
// sessions, with `out` as parse_packet() leaves it for ARP.
template <class Out>
[[gnu::noinline]] Drop parse_wire_frame(const Frame& frame, const Port& port, const net::HashSeed& seed, Out& out,
                                        net::FlowKey& key) noexcept {
    if (frame.length < net::kEthernetBytes) return DropReason::frame_short;
    L2 l2 = parse_tags(frame, port);
    if (l2.drop) return l2.drop;
    out.tenant = l2.attachment.tenant;
    if (l2.attachment.tenant == kNoTenant) return DropReason::no_tenant;
    l2.attachment.interface = out.in_interface = port.wire_interface;
    out.l3_offset = l2.l3_offset;
    const auto parse = [&]<net::Family kFamily>() {
        return parse_ip_as<kFamily, Shape::wire>(frame.data, frame.length, frame.ip_checksum, false, l2, seed, out,
                                                 key);
    };
    if (l2.ether_type_be == net::be16(net::kEtherTypeIp4)) return parse.template operator()<net::Family::ip4>();
    if (l2.ether_type_be == net::be16(net::kEtherTypeIp6)) {
        if (is_neighbor_discovery(frame, l2.l3_offset)) return DropReason::nd;
        return parse.template operator()<net::Family::ip6>();
    }
    return refuse_ether_type(l2.ether_type_be);
}

}  // namespace cachewire::pipeline::parser
