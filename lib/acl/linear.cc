// SPDX-License-Identifier: BSD-3-Clause
#include "acl/linear.h"

#include <algorithm>

namespace cachewire::acl {

namespace {

bool in_range(const PortRange& range, std::uint16_t port_be) noexcept {
    const std::uint16_t port = __builtin_bswap16(port_be);
    return range.first <= port && port <= range.last;
}

bool in_prefix(const std::optional<net::Prefix>& prefix, const net::Address& address, bool v4) noexcept {
    if (!prefix) return true;
    return (prefix->family == net::Family::ip4) == v4 && prefix->contains(address);
}

bool is_among(const std::vector<std::uint16_t>& interfaces, std::uint16_t interface) noexcept {
    return interfaces.empty() || std::find(interfaces.begin(), interfaces.end(), interface) != interfaces.end();
}

template <class T>
bool is(const std::optional<T>& wanted, T value) noexcept {
    return !wanted || *wanted == value;
}

bool same_under(std::uint8_t mask, std::uint8_t a, std::uint8_t b) noexcept { return ((a ^ b) & mask) == 0; }

}  // namespace

bool matches(const Rule& rule, const net::FlowKey& key) noexcept {
    if (rule.needs_l4() && (key.match_flags & net::kL4Known) == 0) return false;
    if (!is_among(rule.in_interfaces, __builtin_bswap16(key.in_interface_be))) return false;
    if (!is_among(rule.out_interfaces, out_interface(key))) return false;
    return is(rule.proto, key.proto) && in_prefix(rule.src, key.src, key.is_v4()) &&
           in_prefix(rule.dst, key.dst, key.is_v4()) && in_range(rule.src_ports, key.src_port_be) &&
           in_range(rule.dst_ports, key.dst_port_be) &&
           same_under(rule.tcp_flags_mask, rule.tcp_flags, key.tcp_flags) && is(rule.icmp_type, key.icmp_type) &&
           is(rule.icmp_code, key.icmp_code) && is(rule.dscp, key.dscp) &&
           same_under(rule.match_flags_mask, rule.match_flags, key.match_flags);
}

Verdict classify_linear(const List& list, const net::FlowKey& key) noexcept {
    for (std::size_t i = 0; i < list.rules.size(); ++i) {
        if (matches(list.rules[i], key))
            return {static_cast<std::uint32_t>(i), list.rules[i].action, list.rules[i].treatment};
    }
    return {kDefaultRule, list.default_action, {}};
}

}  // namespace cachewire::acl
