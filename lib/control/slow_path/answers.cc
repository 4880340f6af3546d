// SPDX-License-Identifier: BSD-3-Clause
#include "control/slow_path/answers.h"

#include <cstring>

#include "net/headers.h"
#include "net/ip6_extensions.h"

namespace cachewire::control {

using pipeline::PuntReason;
using pipeline::PuntRecord;

namespace {

net::Family family_of(const PuntRecord& record) noexcept { return record.ip6 ? net::Family::ip6 : net::Family::ip4; }

net::Address source_of(const PuntRecord& record, std::span<const std::uint8_t> packet) noexcept {
    if (!record.ip6) return net::Address::from_v4(__builtin_bswap32(net::load32(packet.data() + 12)));
    net::Address a;
    std::memcpy(a.bytes.data(), packet.data() + 8, 16);
    return a;
}

std::uint8_t proto_of(const PuntRecord& record, std::span<const std::uint8_t> packet) noexcept {
    if (!record.ip6) return packet[9];
    return net::walk_ip6_extensions(packet.data(), packet.size()).proto;
}

// RFC 1812 4.3.2.7, RFC 4443 2.4(e): nothing is said about an ICMP error or a later fragment. Of packets that the
// workers have judged by their lane this is known; those that waited for a neighbor are looked at here.
bool is_silent(const PuntRecord& record, std::span<const std::uint8_t> packet) noexcept {
    const auto l4 = static_cast<std::size_t>(record.l4_offset - record.l3_offset);
    if (record.ip6) {
        const net::Ip6Chain chain = net::walk_ip6_extensions(packet.data(), packet.size());
        if ((chain.fragment & ~7u) != 0) return true;
        return chain.proto == net::kProtoIcmp6 && (l4 >= packet.size() || packet[l4] < 128);
    }
    if (((packet[6] & 0x1f) | packet[7]) != 0) return true;
    if (packet[9] != net::kProtoIcmp) return false;
    constexpr std::uint32_t kErrors = 1u << 3 | 1u << 4 | 1u << 5 | 1u << 11 | 1u << 12;
    return l4 >= packet.size() || (packet[l4] < 32 && (kErrors >> packet[l4] & 1) != 0);
}

}  // namespace

std::span<const std::uint8_t> Answers::about(const PuntRecord& record, std::span<const std::uint8_t> packet,
                                             std::uint16_t mtu) {
    if (packet.size() < (record.ip6 ? net::kIp6Bytes : net::kIp4Bytes)) return {};
    switch (record.reason) {
        case PuntReason::ttl_exceeded:
            return error(record, packet, net::IcmpError::time_exceeded, 0);
        case PuntReason::no_route:
            return error(record, packet, net::IcmpError::net_unreachable, 0);
        case PuntReason::mtu_exceeded:
            return error(record, packet, net::IcmpError::packet_too_big, mtu);
        case PuntReason::local:
            return not_local(record, packet, proto_of(record, packet));
        case PuntReason::reject:
            if (proto_of(record, packet) == net::kProtoTcp) return reset(record, packet);
            return error(record, packet, net::IcmpError::admin_prohibited, 0);
        case PuntReason::arp:
        case PuntReason::nd:
        case PuntReason::echo:
        case PuntReason::no_neighbor:
        case PuntReason::kernel_bgp:
        case PuntReason::kernel_ospf:
        case PuntReason::kernel_bfd:
        case PuntReason::kernel_other:
            break;
    }
    return {};
}

std::span<const std::uint8_t> Answers::host_unreachable(const PuntRecord& record,
                                                        std::span<const std::uint8_t> packet) {
    if (packet.size() < (record.ip6 ? net::kIp6Bytes : net::kIp4Bytes) || is_silent(record, packet)) return {};
    return error(record, packet, net::IcmpError::host_unreachable, 0);
}

bool Answers::echo(const PuntRecord& record, std::span<std::uint8_t> packet) {
    const auto l4 = static_cast<unsigned>(record.l4_offset - record.l3_offset);
    if (!is_host(record.tenant, source_of(record, packet)) || !net::turn_echo_request(family_of(record), packet, l4)) {
        ++counters_.not_due;
        return false;
    }
    ++counters_.echo_replies;
    return true;
}

// Addressed to us, and nothing here listens.
std::span<const std::uint8_t> Answers::not_local(const PuntRecord& record, std::span<const std::uint8_t> packet,
                                                 std::uint8_t proto) {
    switch (proto) {
        case net::kProtoTcp:
            return reset(record, packet);
        case net::kProtoUdp:
            return error(record, packet, net::IcmpError::port_unreachable, 0);
        case net::kProtoIcmp:
        case net::kProtoIcmp6:
        case net::kProtoNoNext:
            ++counters_.not_due;  // replies, and requests that a router has no answer to
            return {};
        default:
            if (!record.ip6) return error(record, packet, net::IcmpError::protocol_unreachable, 0);
            // RFC 4443 3.4 points at the next header field; where extension headers stand between, at the first one's.
            return error(record, packet, net::IcmpError::parameter_next_header, 6);
    }
}

std::span<const std::uint8_t> Answers::error(const PuntRecord& record, std::span<const std::uint8_t> packet,
                                             net::IcmpError error, std::uint32_t value) {
    const net::Address to = source_of(record, packet);
    const auto from = interfaces_.source(record.interface, record.tenant, to);
    if (!from || !is_host(record.tenant, to)) {
        ++counters_.not_due;
        return {};
    }
    ++counters_.errors;
    return std::span(out_).first(net::write_icmp_error(family_of(record), error, value, *from, packet, out_.data()));
}

std::span<const std::uint8_t> Answers::reset(const PuntRecord& record, std::span<const std::uint8_t> packet) {
    const unsigned size = record.l4_offset == 0 || !is_host(record.tenant, source_of(record, packet))
                              ? 0
                              : net::write_tcp_reset(family_of(record), packet,
                                                     static_cast<unsigned>(record.l4_offset - record.l3_offset),
                                                     record.l3_length, out_.data());
    ++(size != 0 ? counters_.resets : counters_.not_due);
    return std::span(out_).first(size);
}

// RFC 1812 4.3.2.7: nothing goes to an address that is no single host's; and to one of ours it would be a loop.
bool Answers::is_host(std::uint16_t tenant, const net::Address& source) const {
    using Kind = route::NextHopKind;
    const Kind kind = route_(tenant, source);
    return kind != Kind::no_route && kind != Kind::drop && kind != Kind::local && kind != Kind::broadcast;
}

}  // namespace cachewire::control
