// SPDX-License-Identifier: BSD-3-Clause
#include "acl/random_rules.h"

#include <array>

#include <fmt/format.h>

namespace cachewire::test {

namespace {

constexpr std::array<std::uint8_t, 6> kProtocols = {1, 6, 17, 58, 132, 47};
constexpr unsigned kInterfaces = 5;

}  // namespace

// Few distinct high bytes, so that prefixes nest; the rest is random.
net::Address RandomRules::address(net::Family family) {
    if (family == net::Family::ip4) {
        return net::Address::from_v4((10u + below(2)) << 24 | below(3) << 16 | below(65536));
    }
    net::Address a;
    for (auto& byte : a.bytes) byte = static_cast<std::uint8_t>(one_in(3) ? below(256) : below(2));
    a.bytes[0] = 0x20;
    return a;
}

net::Prefix RandomRules::prefix(net::Family family) {
    const unsigned width = family == net::Family::ip4 ? 32 : 128;
    net::Prefix p{address(family), static_cast<std::uint8_t>(below(width + 1)), family};
    for (unsigned bit = p.length; bit < width; ++bit) {
        const unsigned at = 128 - width + bit;
        p.address.bytes[at / 8] &= static_cast<std::uint8_t>(~(0x80u >> (at % 8)));
    }
    return p;
}

acl::PortRange RandomRules::ports() {
    constexpr std::array<std::uint16_t, 6> kEdges = {0, 1, 255, 256, 1023, 65534};
    const auto port = [this, &kEdges] {
        return static_cast<std::uint16_t>(one_in(2) ? kEdges[below(6)] : below(65536));
    };
    const std::uint16_t a = port();
    if (one_in(2)) return {a, a};
    const std::uint16_t b = one_in(4) ? std::uint16_t{65535} : port();
    return {std::min(a, b), std::max(a, b)};
}

acl::Rule RandomRules::rule() {
    acl::Rule r;
    r.action = one_in(2) ? acl::Action::permit : acl::Action::deny;
    const auto family = one_in(2) ? net::Family::ip4 : net::Family::ip6;
    if (!one_in(3)) r.src = prefix(family);
    if (!one_in(3)) r.dst = prefix(one_in(20) ? net::Family::ip4 : family);  // mixed families: matches nothing
    if (!one_in(3)) r.proto = kProtocols[below(kProtocols.size())];
    if (one_in(3)) r.src_ports = ports();
    if (one_in(2)) r.dst_ports = ports();
    for (unsigned n = one_in(3) ? 1 + below(3) : 0; n > 0; --n) {
        r.in_interfaces.push_back(static_cast<std::uint16_t>(below(kInterfaces) * 257));
    }
    for (unsigned n = one_in(8) ? 1 + below(2) : 0; n > 0; --n) {
        r.out_interfaces.push_back(static_cast<std::uint16_t>(below(kInterfaces) * 257));
    }
    if (one_in(5)) {
        r.tcp_flags = static_cast<std::uint8_t>(below(256));
        r.tcp_flags_mask = static_cast<std::uint8_t>(below(256) & below(256));
    }
    if (one_in(8)) r.icmp_type = static_cast<std::uint8_t>(below(4));
    if (one_in(8)) r.icmp_code = static_cast<std::uint8_t>(below(4));
    if (one_in(8)) r.dscp = static_cast<std::uint8_t>(below(64));
    if (one_in(5)) {
        r.match_flags = static_cast<std::uint8_t>(below(16));
        r.match_flags_mask = static_cast<std::uint8_t>(below(16) & below(16));
    }
    return r;
}

acl::List RandomRules::list(unsigned rules) {
    acl::List list;
    list.name = "random";
    list.default_action = one_in(2) ? acl::Action::permit : acl::Action::deny;
    for (unsigned i = 0; i < rules; ++i) {
        list.rules.push_back(rule());
        list.rules.back().name = fmt::format("r{}", i);
    }
    return list;
}

net::Address RandomRules::address_near(const std::optional<net::Prefix>& prefix, net::Family family) {
    net::Address a = address(family);
    if (!prefix || prefix->family != family || one_in(6)) return a;
    const unsigned first = family == net::Family::ip4 ? 96 : 0;
    for (unsigned bit = first; bit < first + prefix->length; ++bit) {
        const auto mask = static_cast<std::uint8_t>(0x80u >> (bit % 8));
        a.bytes[bit / 8] =
            static_cast<std::uint8_t>((a.bytes[bit / 8] & ~mask) | (prefix->address.bytes[bit / 8] & mask));
    }
    if (prefix->length > 0 && one_in(4)) {  // one bit outside
        const unsigned bit = first + prefix->length - 1;
        a.bytes[bit / 8] ^= static_cast<std::uint8_t>(0x80u >> (bit % 8));
    }
    return a;
}

std::uint16_t RandomRules::port_near(const acl::PortRange& range) {
    switch (below(6)) {
        case 0:
            return static_cast<std::uint16_t>(range.first - 1);
        case 1:
            return range.first;
        case 2:
            return range.last;
        case 3:
            return static_cast<std::uint16_t>(range.last + 1);
        case 4:
            return static_cast<std::uint16_t>(range.first + below(range.last - range.first + 1u));
        default:
            return static_cast<std::uint16_t>(below(65536));
    }
}

net::FlowKey RandomRules::key(const acl::List& list) {
    const acl::Rule r =
        list.rules.empty() || one_in(10) ? rule() : list.rules[below(static_cast<unsigned>(list.rules.size()))];
    auto family = one_in(2) ? net::Family::ip4 : net::Family::ip6;
    if (r.src)
        family = r.src->family;
    else if (r.dst)
        family = r.dst->family;
    net::FlowKey k;
    k.src = address_near(r.src, family);
    k.dst = address_near(r.dst, family);
    k.src_port_be = __builtin_bswap16(port_near(r.src_ports));
    k.dst_port_be = __builtin_bswap16(port_near(r.dst_ports));
    k.tenant = static_cast<std::uint16_t>(below(65536));
    if (!one_in(4)) {
        acl::put_out_interface(k, !r.out_interfaces.empty() && !one_in(6)
                                      ? r.out_interfaces[below(static_cast<unsigned>(r.out_interfaces.size()))]
                                      : static_cast<std::uint16_t>(below(kInterfaces) * 257));
    }
    k.proto = r.proto && !one_in(6) ? *r.proto : kProtocols[below(kProtocols.size())];
    const std::uint16_t interface = !r.in_interfaces.empty() && !one_in(6)
                                        ? r.in_interfaces[below(static_cast<unsigned>(r.in_interfaces.size()))]
                                        : static_cast<std::uint16_t>(below(kInterfaces) * 257);
    k.in_interface_be = __builtin_bswap16(interface);
    k.tcp_flags = one_in(4) ? static_cast<std::uint8_t>(below(256)) : r.tcp_flags;
    k.dscp = r.dscp && !one_in(6) ? *r.dscp : static_cast<std::uint8_t>(below(64));
    k.icmp_type = r.icmp_type && !one_in(6) ? *r.icmp_type : static_cast<std::uint8_t>(below(4));
    k.icmp_code = r.icmp_code && !one_in(6) ? *r.icmp_code : static_cast<std::uint8_t>(below(4));
    const auto other = static_cast<std::uint8_t>(one_in(3) ? below(16) : 0);
    k.match_flags = static_cast<std::uint8_t>((r.match_flags & r.match_flags_mask) | (other & ~r.match_flags_mask));
    if (!one_in(4)) k.match_flags |= net::kL4Known;
    if ((k.match_flags & net::kL4Known) == 0) {
        k.src_port_be = k.dst_port_be = 0;
        k.tcp_flags = k.icmp_type = k.icmp_code = 0;
    }
    k.pcp = static_cast<std::uint8_t>(below(8));
    return k;
}

}  // namespace cachewire::test
