// SPDX-License-Identifier: BSD-3-Clause
#include "control/snapshot_builder.h"

#include "base/error.h"
#include "config/load.h"
#include "net/headers.h"
#include "support/catch.h"
#include "support/config_of.h"
#include "support/eal.h"
#include "support/packet_builder.h"

namespace cachewire {
namespace {

const std::string kRouter = R"(version: 1
ports:
  - {name: west, device: "net_null0"}
  - {name: east, device: "net_null1"}
tenants:
  - {name: red, id: 10, match: [{port: west}, {port: east, vlan: 100}], acl: edge, policer: {in: fat}}
  - {name: blue, id: 20, match: [{port: east}]}
interfaces:
  - {name: lan, port: west, addresses: ["10.0.0.1/24", "2001:db8::1/64"]}
  - {name: wan, port: east, vlan: 100, addresses: ["192.0.2.1/31"]}
neighbors:
  - {tenant: red, address: 10.0.0.9, mac: "02:00:00:00:00:09"}
  - {tenant: red, address: 192.0.2.0, mac: "02:00:00:00:00:0a"}
routes:
  - {tenant: red, prefix: 0.0.0.0/0, via: 192.0.2.0}
  - {tenant: red, prefix: 10.0.0.9/32, via: 192.0.2.0}
  - {tenant: red, prefix: 198.18.0.0/15, action: drop}
qos:
  policers: [{name: fat, type: single, rate: 1Gbit, burst: 1MiB}]
acl:
  - {name: edge, rules: [{action: permit, in: lan, proto: tcp, dst_ports: 80}]}
)";

using test::config_of;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

struct Fixture {
    Fixture()
        : builder({{"west", {0, 1, test::kRouterMac}},
                   {"east", {1, 1, net::Mac{{2, 0, 0, 0, 0, 2}}}},
                   {"spare", {2, 1, net::Mac{{2, 0, 0, 0, 0, 3}}}}},
                  {}, -1) {
        test::ensure_eal();
    }
    std::unique_ptr<pipeline::Snapshot> build(const std::string& text) {
        const config::Config config = config_of(text);
        auto pass = builder.begin(config, ++generation);
        builder.complete(*pass);
        auto snapshot = builder.commit(std::move(pass));
        builder.grace_period_over();
        return snapshot;
    }
    const route::NextHop& next_hop(const pipeline::Snapshot& snapshot, const char* destination) {
        const net::Address address = test::address(destination);
        const net::Address* one = &address;
        std::uint16_t index = 0xffff;
        snapshot.tenants[*builder.registry().tenants.find("red")].fib->lookup({&one, 1}, {&index, 1});
        REQUIRE(index < snapshot.next_hops.size());
        return snapshot.next_hops[index];
    }
    control::SnapshotBuilder builder;
    std::uint64_t generation = 0;
};

TEST_CASE_METHOD(Fixture, "snapshot builder: routes know neighbours, own, broadcast and unknown addresses",
                 "[control]") {
    const auto snapshot = build(kRouter);
    struct Case {
        const char* destination;
        route::NextHopKind kind;
    };
    using route::NextHopKind;
    const Case cases[] = {
        {"10.0.0.9", NextHopKind::forward},  // the neighbour beats a static /32
        {"10.0.0.1", NextHopKind::local},       {"10.0.0.255", NextHopKind::broadcast},
        {"10.0.0.0", NextHopKind::broadcast},   {"10.0.0.77", NextHopKind::unresolved},  // connected, no neighbour
        {"192.0.2.0", NextHopKind::forward},  // a /31 has no broadcast address
        {"8.8.8.8", NextHopKind::forward},      {"198.19.0.1", NextHopKind::drop},
        {"2001:db8::1", NextHopKind::local},    {"2001:db8::77", NextHopKind::unresolved},
        {"2001:db9::1", NextHopKind::no_route},
    };
    for (const Case& c : cases) {
        INFO(c.destination);
        CHECK(static_cast<int>(next_hop(*snapshot, c.destination).kind) == static_cast<int>(c.kind));
    }
}

TEST_CASE_METHOD(Fixture, "snapshot builder: a tenant knows what its own addresses end with", "[control]") {
    const auto snapshot = build(kRouter);
    const auto may_be_local = [&](const char* address) {
        return (snapshot->tenants[*builder.registry().tenants.find("red")].local_ends & pipeline::end_bit(test::address(address))) != 0;
    };
    for (const char* own : {"10.0.0.1", "192.0.2.1", "2001:db8::1"}) {
        INFO(own);
        REQUIRE(next_hop(*snapshot, own).kind == route::NextHopKind::local);
        CHECK(may_be_local(own));
    }
    CHECK_FALSE(may_be_local("8.8.8.8"));
    CHECK_FALSE(may_be_local("2001:db8::77"));
}

TEST_CASE_METHOD(Fixture, "snapshot builder: a next hop carries MACs and the interface's tag", "[control]") {
    const auto snapshot = build(kRouter);
    const route::NextHop& hop = next_hop(*snapshot, "8.8.8.8");
    const std::uint8_t expected[] = {2, 0, 0, 0, 0, 0x0a, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 100};
    CHECK(hop.l2_length == 18);
    CHECK(std::equal(std::begin(expected), std::end(expected), hop.l2_header.begin()));
    CHECK(hop.port == *builder.registry().ports.find("east"));
    CHECK(next_hop(*snapshot, "10.0.0.9").l2_length == 14);
}

TEST_CASE_METHOD(Fixture, "snapshot builder: the most specific attachment of a tag stack wins", "[control]") {
    const auto snapshot = build(kRouter);
    const auto red = *builder.registry().tenants.find("red"), blue = *builder.registry().tenants.find("blue");
    const pipeline::Port& east = snapshot->ports[*builder.registry().ports.find("east")];
    CHECK(east.untagged.tenant == blue);
    CHECK(east.untagged.interface == pipeline::kNoInterface);
    REQUIRE(east.tagged.size() == 1);
    CHECK(east.tagged[0].outer == 100);
    CHECK(east.tagged[0].attachment.tenant == red);
    CHECK(east.tagged[0].attachment.interface == *builder.registry().interfaces.find("wan"));
    CHECK(snapshot->ports[*builder.registry().ports.find("west")].untagged.tenant == red);
}

TEST_CASE_METHOD(Fixture, "snapshot builder: generations move only with what they stand for", "[control]") {
    const auto slot = [&] { return *builder.registry().tenants.find("red"); };
    const auto first = build(kRouter);
    const auto before = first->tenants[slot()];

    const auto same = build(kRouter);
    CHECK(same->tenants[slot()].policy_generation == before.policy_generation);
    CHECK(same->tenants[slot()].route_generation == before.route_generation);
    CHECK(same->tenants[slot()].acl == before.acl);  // not compiled again

    const auto rule = build(replaced(kRouter, "dst_ports: 80", "dst_ports: 81"));
    CHECK(rule->tenants[slot()].policy_generation != before.policy_generation);
    CHECK(rule->tenants[slot()].route_generation == before.route_generation);

    const auto route = build(replaced(kRouter, "prefix: 0.0.0.0/0", "prefix: 0.0.0.0/1"));
    CHECK(route->tenants[slot()].route_generation != before.route_generation);

    // A neighbour's new MAC acts through the next hop's index.
    const auto route_now = route->tenants[slot()].route_generation;
    const auto mac = build(replaced(replaced(kRouter, "prefix: 0.0.0.0/0", "prefix: 0.0.0.0/1"), "00:0a", "00:0b"));
    CHECK(mac->tenants[slot()].route_generation == route_now);
    CHECK(next_hop(*mac, "8.8.8.8").l2_header[5] == 0x0b);
}

TEST_CASE_METHOD(Fixture, "snapshot builder: a rule for a port without interfaces meets no packet", "[control]") {
    const std::string spare = replaced(kRouter, "tenants:\n", "  - {name: spare, device: \"net_null2\"}\ntenants:\n");
    const auto snapshot = build(replaced(spare, "in: lan", "in: spare"));
    const acl::Classifier& list = *snapshot->tenants[*builder.registry().tenants.find("red")].acl;
    net::FlowKey key;
    key.src = test::address("10.0.0.9");
    key.dst = test::address("192.0.2.0");
    key.proto = net::kProtoTcp;
    key.dst_port_be = net::be16(80);
    key.match_flags = net::kL4Known;
    key.in_interface_be = net::be16(*builder.registry().interfaces.find("lan"));
    CHECK(list.judge(key).rule == acl::kDefaultRule);
}

TEST_CASE_METHOD(Fixture, "snapshot builder: a pass that is dropped leaves everything as it was", "[control]") {
    const auto first = build(kRouter);
    const auto slot = *builder.registry().tenants.find("red");
    const auto routes = builder.registry().vrfs.at(slot)->routes();
    {
        const config::Config config = config_of(
            replaced(replaced(kRouter, "prefix: 0.0.0.0/0", "prefix: 0.0.0.0/1"), "dst_ports: 80", "dst_ports: 81"));
        auto pass = builder.begin(config, 2);
        builder.complete(*pass);
    }
    CHECK(builder.registry().vrfs.at(slot)->routes() == routes);
    const auto again = build(kRouter);
    CHECK(again->tenants[slot].acl == first->tenants[slot].acl);
    CHECK(again->tenants[slot].route_generation == first->tenants[slot].route_generation);
    CHECK(static_cast<int>(next_hop(*again, "198.19.0.1").kind) == static_cast<int>(route::NextHopKind::drop));
}

TEST_CASE_METHOD(Fixture, "snapshot builder: indices stay with their names when the file's order changes",
                 "[control]") {
    build(kRouter);
    const auto lan = *builder.registry().interfaces.find("lan");
    const std::string line = "  - {name: lan, port: west, addresses: [\"10.0.0.1/24\", \"2001:db8::1/64\"]}\n";
    const std::string next = "  - {name: wan, port: east, vlan: 100, addresses: [\"192.0.2.1/31\"]}\n";
    const auto swapped = build(replaced(kRouter, line + next, next + line));
    CHECK(*builder.registry().interfaces.find("lan") == lan);
    CHECK(swapped->interfaces[lan].port == *builder.registry().ports.find("west"));
}

}  // namespace
}  // namespace cachewire
