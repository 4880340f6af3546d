// SPDX-License-Identifier: BSD-3-Clause
#include "support/catch.h"
#include "wrong_files.h"

namespace {

using cachewire::test::WrongFile;

constexpr const char* kPorts =
    "version: 1\nports: [{name: a, device: net_null0}, {name: b, device: net_null1}, {name: c, device: "
    "\"kernel:x\"}]\n";

const WrongFile kWrongPairs[] = {
    {kPorts, "cross_connects: [{name: p, ports: [a]}]\n",
     "f.yaml:3:35: error: cross_connects[0].ports: a pair has two ports; allowed: two names, such as [inside, "
     "outside]\n"},
    {kPorts, "cross_connects: [{name: p, ports: [a, a]}]\n",
     "f.yaml:3:35: error: cross_connects[0].ports: a pair has two ports; allowed: two names, such as [inside, "
     "outside]\n"},
    {kPorts, "cross_connects: [{name: p, ports: [a, z], non_ip: pass}]\n",
     "f.yaml:3:39: error: cross_connects[0].ports[1]: no port is named 'z'; known: a, b, c\n"
     "f.yaml:3:51: error: cross_connects[0].non_ip: 'pass' is not known; allowed: forward | drop\n"},
    {kPorts, "cross_connects: [{name: p, ports: [a, b]}, {name: p, ports: [b, c]}]\n",
     "f.yaml:3:51: error: cross_connects[1].name: a second pair named 'p'; the first stands in line 3\n"
     "f.yaml:3:61: error: cross_connects[1].ports: port 'b' is in pair 'p' already\n"},
    {kPorts, "cross_connects: [{name: p, ports: [a, c], link_follow: true}]\n",
     "f.yaml:3:56: error: cross_connects[0].link_follow: port 'a' (net_null0) has no link that could be followed or "
     "taken down; allowed: \"kernel:\" interfaces, TAPs and NICs by PCI address\n"},
    {kPorts, "interfaces: [{port: a}, {name: b, port: c}]\ncross_connects: [{name: p, ports: [a, b]}]\n",
     "f.yaml:4:35: error: cross_connects[0].ports: port 'a' has interface 'a'; allowed: ports without interfaces\n"
     "f.yaml:4:35: error: cross_connects[0].ports: interface 'b' has this port's name, and rules could mean either; "
     "allowed: another name\n"
     "f.yaml:4:35: error: cross_connects[0].ports: tenant 'default' has interface 'a' and these ports, and a "
     "session has one way out, by a pair or a route; allowed: a tenant that routes, or one of pairs, each with its own "
     "`match` in `tenants`\n"},
    {kPorts,
     "tenants: [{name: t, id: 1, match: [{port: a}, {port: b, vlan: 5}], rpf: loose}]\ncross_connects: [{name: p, "
     "ports: [a, b]}]\n",
     "f.yaml:4:35: error: cross_connects[0].ports: the tenants' `match` differs between ports 'a' and 'b', so replies "
     "would be another tenant's; allowed: the same VLANs of the same tenants on both\n"
     "f.yaml:4:35: error: cross_connects[0].ports: tenant 't' has `rpf`, which needs routes; allowed: none\n"},
};

}  // namespace

TEST_CASE("config: pairs that are none, or whose ports have something else to do, are refused", "[config]") {
    for (const WrongFile& wrong : kWrongPairs) {
        CAPTURE(wrong.text);
        CHECK(cachewire::test::errors_of(wrong) == wrong.errors);
    }
}

TEST_CASE("config: a pair's ports receive everything, and others don't", "[config]") {
    const auto loaded = cachewire::config::load_text(
        std::string(kPorts) + "cross_connects: [{name: p, ports: [b, a], non_ip: drop}]\n", "f.yaml");
    REQUIRE(loaded.config);
    const auto& config = *loaded.config;
    REQUIRE(config.cross_connects.size() == 1);
    CHECK(config.cross_connects[0].ports == std::array<std::size_t, 2>{1, 0});
    CHECK_FALSE(config.cross_connects[0].forward_non_ip);
    CHECK(config.ports[0].promiscuous);
    CHECK(config.ports[1].promiscuous);
    CHECK_FALSE(config.ports[2].promiscuous);
}
