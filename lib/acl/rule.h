#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A list's rules as the classifiers see them: names resolved to indices, absent keys to full masks. First match wins.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/flow_key.h"
#include "net/prefix.h"

namespace cachewire::acl {

enum class Action : std::uint8_t { deny, permit, reject };

struct PortRange {
    std::uint16_t first = 0;
    std::uint16_t last = 65535;
    [[nodiscard]] bool is_any() const noexcept { return first == 0 && last == 65535; }
    friend bool operator==(const PortRange&, const PortRange&) = default;
};

// What a permitting rule does beside letting the packet pass. The numbers mean nothing to a classifier.
inline constexpr std::uint16_t kNoPolicer = 0xffff;
struct Treatment {
    std::uint16_t policer = kNoPolicer;
    std::uint16_t next_hop = 0;      // in List::next_hops, counted from 1; 0: the route's
    std::uint8_t traffic_class = 0;  // 0: none
    friend bool operator==(const Treatment&, const Treatment&) = default;
};

struct Rule {
    std::string name;
    Action action = Action::deny;
    Treatment treatment;
    std::vector<std::uint16_t> in_interfaces;  // snapshot indices, any of them; empty: every interface
    std::vector<std::uint16_t> out_interfaces;
    std::optional<std::uint8_t> proto;
    std::optional<net::Prefix> src;  // a rule with a prefix matches that family only
    std::optional<net::Prefix> dst;
    // Constraints on L4 fields (ports, flags, ICMP) match only packets whose L4 header is present: never later
    // fragments.
    PortRange src_ports;
    PortRange dst_ports;
    std::uint8_t tcp_flags = 0;
    std::uint8_t tcp_flags_mask = 0;
    std::optional<std::uint8_t> icmp_type;
    std::optional<std::uint8_t> icmp_code;
    std::optional<std::uint8_t> dscp;
    std::uint8_t match_flags = 0;       // value of FlowKey::match_flags ...
    std::uint8_t match_flags_mask = 0;  // ... under this mask (fragment: none | first | later | any)

    [[nodiscard]] bool needs_l4() const noexcept;
    friend bool operator==(const Rule&, const Rule&) = default;
};

struct List {
    std::string name;
    Action default_action = Action::deny;
    bool stateful = false;
    std::vector<Rule> rules;
    std::vector<net::Address> next_hops;  // that rules name, each once
    friend bool operator==(const List&, const List&) = default;
};

// A key has no room for the egress, so that a packet's own never has one: in a copy of it for the lists that look at
// the egress, it stands in the tenant's place, which no rule looks at.
inline void put_out_interface(net::FlowKey& key, std::uint16_t interface) noexcept {
    key.tenant = __builtin_bswap16(interface);
}
inline std::uint16_t out_interface(const net::FlowKey& key) noexcept { return __builtin_bswap16(key.tenant); }

inline constexpr std::uint32_t kDefaultRule = 0xffffffff;

// Index of the matching rule, or kDefaultRule; `action` is the rule's or the list's default.
struct Verdict {
    std::uint32_t rule = kDefaultRule;
    Action action = Action::deny;
    Treatment treatment{};
};

}  // namespace cachewire::acl
