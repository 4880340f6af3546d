// SPDX-License-Identifier: BSD-3-Clause
// The oracle itself, against cases worked out by hand: one key of a rule at a time.
#include "acl/linear.h"

#include <functional>

#include "support/catch.h"

namespace cachewire::acl {

TEST_CASE("acl: each key of a rule matches its own field and no other", "[acl]") {
    net::FlowKey key;
    key.src = net::Address::from_v4(0x0a000001);
    key.dst = net::Address::from_v4(0xc0000207);
    key.src_port_be = __builtin_bswap16(1024);
    key.dst_port_be = __builtin_bswap16(443);
    key.proto = 6;
    key.in_interface_be = __builtin_bswap16(3);
    key.tcp_flags = 0x12;
    key.dscp = 46;
    key.icmp_type = 8;
    key.icmp_code = 1;
    key.match_flags = net::kL4Known;

    struct Case {
        const char* what;
        std::function<void(Rule&)> set;
        bool matches;
    };
    const net::Prefix ten = {net::Address::from_v4(0x0a000000), 8, net::Family::ip4};
    const net::Prefix host = {net::Address::from_v4(0xc0000207), 32, net::Family::ip4};
    const net::Prefix any4 = {net::Address::from_v4(0), 0, net::Family::ip4};
    const net::Prefix any6 = {net::Address{}, 0, net::Family::ip6};
    const Case cases[] = {
        {"nothing", [](Rule&) {}, true},
        {"src", [&](Rule& r) { r.src = ten; }, true},
        {"dst", [&](Rule& r) { r.dst = host; }, true},
        {"src is not dst", [&](Rule& r) { r.src = host; }, false},
        {"0.0.0.0/0", [&](Rule& r) { r.src = any4; }, true},
        {"::/0 is the other family", [&](Rule& r) { r.src = any6; }, false},
        {"proto", [](Rule& r) { r.proto = 6; }, true},
        {"other proto", [](Rule& r) { r.proto = 17; }, false},
        {"src ports",
         [](Rule& r) {
             r.src_ports = {1024, 1024};
         },
         true},
        {"src ports below",
         [](Rule& r) {
             r.src_ports = {0, 1023};
         },
         false},
        {"dst ports",
         [](Rule& r) {
             r.dst_ports = {80, 443};
         },
         true},
        {"dst ports above",
         [](Rule& r) {
             r.dst_ports = {444, 65535};
         },
         false},
        {"one of the interfaces",
         [](Rule& r) {
             r.in_interfaces = {2, 3};
         },
         true},
        {"other interface", [](Rule& r) { r.in_interfaces = {768}; }, false},
        {"flags", [](Rule& r) { r.tcp_flags = 2, r.tcp_flags_mask = 3; }, true},
        {"other flags", [](Rule& r) { r.tcp_flags = 2, r.tcp_flags_mask = 0x12; }, false},
        {"dscp", [](Rule& r) { r.dscp = 46; }, true},
        {"dscp 0", [](Rule& r) { r.dscp = 0; }, false},
        {"icmp type", [](Rule& r) { r.icmp_type = 8; }, true},
        {"icmp type 0", [](Rule& r) { r.icmp_type = 0; }, false},
        {"icmp code", [](Rule& r) { r.icmp_code = 1; }, true},
        {"icmp code 0", [](Rule& r) { r.icmp_code = 0; }, false},
        {"not a fragment", [](Rule& r) { r.match_flags_mask = net::kFirstFragment | net::kLaterFragment; }, true},
        {"fragment", [](Rule& r) { r.match_flags = r.match_flags_mask = net::kLaterFragment; }, false},
    };
    for (const Case& c : cases) {
        INFO(c.what);
        List list;
        list.rules.resize(1);
        list.rules[0].action = Action::permit;
        c.set(list.rules[0]);
        const Verdict verdict = classify_linear(list, key);
        CHECK(verdict.rule == (c.matches ? 0 : kDefaultRule));
        CHECK(verdict.action == (c.matches ? Action::permit : Action::deny));
    }
}

}  // namespace cachewire::acl
