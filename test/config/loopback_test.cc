// SPDX-License-Identifier: BSD-3-Clause
// Interfaces that are on no link.
#include "support/catch.h"
#include "wrong_files.h"

namespace {

using cachewire::test::kPort;
using cachewire::test::WrongFile;

const WrongFile kWrongLoopbacks[] = {
    {kPort, "interfaces: [{name: lo0, loopback: true, port: wan, mtu: 1400, addresses: [203.0.113.1/32]}]\n",
     "f.yaml:3:48: error: interfaces[0].port: a loopback is on no link; allowed beside it: name, tenant, addresses, "
     "kernel\n"
     "f.yaml:3:58: error: interfaces[0].mtu: a loopback is on no link; allowed beside it: name, tenant, addresses, "
     "kernel\n"},
    {kPort, "interfaces: [{loopback: true, addresses: [203.0.113.1/32]}]\n",
     "f.yaml:3:14: error: interfaces[0].name: this key is missing\n"},
    {kPort, "interfaces: [{name: lo0, loopback: true}]\n",
     "f.yaml:3:14: error: interfaces[0].addresses: this key is missing\n"},
    {kPort, "interfaces: [{name: lo0, loopback: true, addresses: [203.0.113.1/24, 2001:db8::1/64]}]\n",
     "f.yaml:3:54: error: interfaces[0].addresses[0]: '203.0.113.1/24' is a network's, and a loopback is on no link; "
     "allowed: /32\n"
     "f.yaml:3:70: error: interfaces[0].addresses[1]: '2001:db8::1/64' is a network's, and a loopback is on no link; "
     "allowed: /128\n"},
    {kPort,
     "tenants: [{name: red, id: 1, match: [{port: wan}]}]\n"
     "interfaces: [{name: lo0, loopback: true, addresses: [203.0.113.1/32]}]\n",
     "f.yaml:4:14: error: interfaces[0].tenant: this key is missing\n"},
    {kPort,
     "interfaces: [{port: wan, addresses: [10.0.0.1/24]}, {name: lo0, loopback: true, addresses: [10.0.0.1/32]}]\n",
     "f.yaml:3:93: error: interfaces[1].addresses[0]: 10.0.0.1 is in use already, in line 3\n"},
    {kPort,
     "interfaces: [{name: lo0, loopback: true, addresses: [203.0.113.1/32]}]\n"
     "neighbors: [{address: 'fe80::1', interface: lo0, mac: '02:00:00:00:00:09'}]\n"
     "routes: [{prefix: 10.0.0.0/8, via: {interface: lo0}}]\n",
     "f.yaml:4:45: error: neighbors[0].interface: 'lo0' is a loopback: nobody is behind it; allowed: an interface of a "
     "port\n"
     "f.yaml:5:48: error: routes[0].via.interface: 'lo0' is a loopback: nobody is behind it; allowed: an interface of "
     "a port\n"},
    {kPort,
     "interfaces: [{name: lo0, loopback: true, addresses: [203.0.113.1/32]}]\n"
     "acl: [{name: a, rules: [{action: permit, in: lo0}]}]\n",
     "f.yaml:4:46: error: acl[0].rules[0].in: 'lo0' is a loopback: no packet comes in or leaves there\n"},
    {kPort, "interfaces: [{name: lo0, loopback: perhaps, addresses: [203.0.113.1/32]}]\n",
     "f.yaml:3:14: error: interfaces[0].port: this key is missing\n"
     "f.yaml:3:36: error: interfaces[0].loopback: 'perhaps' is not a boolean; allowed: true | false\n"},
};

}  // namespace

TEST_CASE("config: a loopback has addresses and nothing that a link is needed for", "[config]") {
    for (const WrongFile& wrong : kWrongLoopbacks) {
        CAPTURE(wrong.text);
        CHECK(cachewire::test::errors_of(wrong) == wrong.errors);
    }
}

TEST_CASE("config: loopbacks of tenants", "[config]") {
    const auto loaded = cachewire::config::load_text(
        std::string(kPort) +
            "tenants:\n"
            "  - {name: red, id: 1, match: [{port: wan}]}\n"
            "  - {name: blue, id: 2, interfaces: [{name: lob, loopback: true, addresses: [203.0.113.1/32]}]}\n"
            "interfaces:\n"
            "  - {name: lor, loopback: true, tenant: red, addresses: [203.0.113.1/32, '2001:db8::1/128'],\n"
            "     kernel: {ifname: cw-lo, netns: edge}}\n",
        "f.yaml");
    REQUIRE(loaded.config);
    const auto& interfaces = loaded.config->interfaces;
    REQUIRE(interfaces.size() == 2);
    for (const auto& interface : interfaces) CHECK(interface.is_loopback());
    CHECK((interfaces[0].name == "lob" && interfaces[0].tenant == 1 && interfaces[0].addresses.size() == 1));
    CHECK((interfaces[1].name == "lor" && interfaces[1].tenant == 0 && interfaces[1].addresses.size() == 2));
    CHECK(interfaces[1].kernel.has_value());
    CHECK(loaded.config->tenants[1].match.empty());
}
