// SPDX-License-Identifier: BSD-3-Clause
#include "control/policy.h"

#include <algorithm>
#include <cstring>

#include "control/policers.h"

namespace cachewire::control {

namespace {

// No packet's egress: packets without one have kNoInterface.
constexpr std::uint16_t kNoEgress = pipeline::kNoInterface - 1;
static_assert(kNoEgress >= pipeline::kMaxInterfaces);

// A port in a transparent pair has one that is called as itself (SnapshotBuilder).
bool is_paired(const config::Config& config, const std::string& port) {
    return std::any_of(config.cross_connects.begin(), config.cross_connects.end(), [&](const auto& pair) {
        return config.ports[pair.ports[0]].name == port || config.ports[pair.ports[1]].name == port;
    });
}

// An interface of that name wins over a port, which stands for all interfaces on it.
std::vector<std::uint16_t> interfaces_named(const config::Config& config, const std::string& name, Registry& registry,
                                            std::uint16_t none) {
    if (name.empty()) return {};
    std::vector<std::uint16_t> indices;
    for (const auto& interface : config.interfaces)
        if (interface.name == name) return {registry.interfaces.get(name)};
    for (const auto& interface : config.interfaces)
        if (!interface.is_loopback() && config.ports[interface.port].name == name)
            indices.push_back(registry.interfaces.get(interface.name));
    if (is_paired(config, name)) indices.push_back(registry.interfaces.get(name));
    // A port without interfaces: no packet comes in or leaves there, and an empty list would mean every interface.
    if (indices.empty()) indices.push_back(none);
    std::sort(indices.begin(), indices.end());
    return indices;
}

acl::Action compile_action(config::AclAction action) {
    switch (action) {
        case config::AclAction::permit:
            return acl::Action::permit;
        case config::AclAction::deny:
            return acl::Action::deny;
        case config::AclAction::reject:
            return acl::Action::reject;
    }
    return acl::Action::deny;
}

void set_fragment(config::FragmentMatch match, acl::Rule& rule) {
    using config::FragmentMatch;
    switch (match) {
        case FragmentMatch::any_packet:
            return;
        case FragmentMatch::none:
            rule.match_flags_mask = net::kFragment;
            return;
        case FragmentMatch::first:
            rule.match_flags = rule.match_flags_mask = net::kFirstFragment;
            return;
        case FragmentMatch::later:
            rule.match_flags = rule.match_flags_mask = net::kLaterFragment;
            return;
        case FragmentMatch::any_fragment:
            rule.match_flags = rule.match_flags_mask = net::kFragment;
            return;
    }
}

// From 1: which of the list's next hops the rule names.
std::uint16_t next_hop_number(const net::Address& address, acl::List& list) {
    const auto found = std::find(list.next_hops.begin(), list.next_hops.end(), address);
    const auto number = static_cast<std::uint16_t>(found - list.next_hops.begin() + 1);
    if (found == list.next_hops.end()) list.next_hops.push_back(address);
    return number;
}

acl::Treatment compile_treatment(const config::Config& config, const config::Acl& acl, std::size_t rule,
                                 Registry& registry, acl::List& list) {
    const config::AclRule& from = acl.rules[rule];
    acl::Treatment to;
    if (from.policer) to.policer = registry.policers.get(rule_policer_key(acl, rule));
    if (from.traffic_class)
        to.traffic_class = static_cast<std::uint8_t>(registry.classes.get(config.classes[*from.traffic_class].name));
    if (from.next_hop) to.next_hop = next_hop_number(from.next_hop->address, list);
    return to;
}

acl::Rule compile_rule(const config::Config& config, const config::AclRule& rule, Registry& registry) {
    acl::Rule out;
    out.name = rule.name;
    out.action = compile_action(rule.action);
    out.in_interfaces = interfaces_named(config, rule.in, registry, pipeline::kNoInterface);
    out.out_interfaces = interfaces_named(config, rule.out, registry, kNoEgress);
    out.proto = rule.proto;
    out.src = rule.src;
    out.dst = rule.dst;
    if (rule.src_ports) out.src_ports = {rule.src_ports->first, rule.src_ports->last};
    if (rule.dst_ports) out.dst_ports = {rule.dst_ports->first, rule.dst_ports->last};
    out.tcp_flags = rule.tcp_flags.value_or(0);
    out.tcp_flags_mask = rule.tcp_flags_mask;
    out.icmp_type = rule.icmp_type;
    out.icmp_code = rule.icmp_code;
    out.dscp = rule.dscp;
    set_fragment(rule.fragment, out);
    return out;
}

qos::ColourAction action_of(const config::ColourAction& action) {
    static constexpr qos::ColourAction::Kind kKinds[] = {qos::ColourAction::Kind::pass, qos::ColourAction::Kind::remark,
                                                         qos::ColourAction::Kind::drop};
    return {kKinds[static_cast<unsigned>(action.kind)], action.dscp};
}

}  // namespace

acl::List compile_list(const config::Config& config, const config::Acl& acl, Registry& registry) {
    acl::List list;
    list.name = acl.name;
    list.default_action = compile_action(acl.default_action);
    list.stateful = acl.stateful;
    list.rules.reserve(acl.rules.size());
    for (std::size_t i = 0; i < acl.rules.size(); ++i) {
        list.rules.push_back(compile_rule(config, acl.rules[i], registry));
        list.rules.back().treatment = compile_treatment(config, acl, i, registry, list);
    }
    return list;
}

std::uint64_t fields_looked_at(const acl::List& list) noexcept {
    net::FlowKey looked_at;  // all bits of a field that any rule compares
    for (const acl::Rule& rule : list.rules) {
        if (!rule.in_interfaces.empty()) looked_at.in_interface_be = 0xffff;
        looked_at.tcp_flags |= rule.tcp_flags_mask;
        if (rule.dscp) looked_at.dscp = 0xff;
        if (rule.icmp_type) looked_at.icmp_type = 0xff;
        if (rule.icmp_code) looked_at.icmp_code = 0xff;
        looked_at.match_flags |= rule.match_flags_mask;
        if (rule.needs_l4()) looked_at.match_flags |= net::kL4Known;
    }
    std::uint64_t word;
    std::memcpy(&word, &looked_at.in_interface_be, sizeof word);
    return word;
}

qos::PolicerConfig policer_config(const config::Policer& policer) {
    static constexpr qos::Accounting kAccounting[] = {qos::Accounting::l1, qos::Accounting::l2, qos::Accounting::l3};
    static constexpr qos::MeterType kTypes[] = {qos::MeterType::single, qos::MeterType::srtcm_2697,
                                                qos::MeterType::trtcm_2698, qos::MeterType::trtcm_4115};
    return {.name = policer.name,
            .rate_bps = policer.rate_bps,
            .burst_bytes = policer.burst_bytes,
            .accounting = kAccounting[static_cast<unsigned>(policer.accounting)],
            .type = kTypes[static_cast<unsigned>(policer.type)],
            .excess_rate_bps = policer.excess_rate_bps,
            .excess_burst_bytes = policer.excess_burst_bytes,
            .colour_aware = policer.colour_aware,
            .yellow = action_of(policer.yellow),
            .red = action_of(policer.red)};
}

}  // namespace cachewire::control
