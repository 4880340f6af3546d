// SPDX-License-Identifier: BSD-3-Clause
// Right files and the exact values they become.
#include <filesystem>

#include "config/load.h"
#include "support/catch.h"
#include "support/config_of.h"
#include "support/parsed.h"

using namespace cachewire;
using config::Config;

namespace {

using test::address;
using test::config_of;
using test::prefix;

}  // namespace

TEST_CASE("config: a file with ports alone gets every default", "[config]") {
    const Config c = config_of("version: 1\nports: [{name: wan, device: net_null0}]\n");
    CHECK(c.path == "test.yaml");
    // sha256sum of the same bytes
    CHECK(c.sha256 == "ab8ce67e5623d887779d0609925e6a0372d71c2ac2e14e9599328c648e108c72");
    CHECK(c.eal.empty());
    CHECK(c.workers.lcores.empty());
    CHECK(c.workers.idle == config::Idle::poll);
    CHECK(c.workers.dispatch == config::Dispatch::rss);
    CHECK(c.memory.mbufs == 0);
    CHECK(c.memory.mbuf_size == 2176);
    CHECK(c.memory.mempool_cache == 256);
    CHECK(c.pipeline.burst == 32);
    CHECK(c.pipeline.prefetch_header == 8);
    CHECK(c.pipeline.prefetch_session == 0);
    CHECK(c.pipeline.memoize);
    CHECK(c.pipeline.shadow_check == 0);
    CHECK(c.sessions.on_policy_change == config::OnPolicyChange::revalidate);
    CHECK(c.sessions.capacity == 1048576);
    REQUIRE(c.ports.size() == 1);
    CHECK(c.ports[0].name == "wan");
    CHECK(c.ports[0].device == "net_null0");
    CHECK(c.ports[0].rxq == 0);
    CHECK(c.ports[0].rxd == 1024);
    CHECK(c.ports[0].mtu == 1500);
    CHECK_FALSE(c.ports[0].promiscuous);
    CHECK_FALSE(c.ports[0].mac);
    REQUIRE(c.tenants.size() == 1);
    CHECK(c.tenants[0].name == "default");
    CHECK(c.tenants[0].id == 0);
    CHECK(c.tenants[0].sessions == config::SessionMode::none);
    REQUIRE(c.tenants[0].match.size() == 1);
    CHECK(c.tenants[0].match[0].port == 0);
    CHECK_FALSE(c.tenants[0].match[0].vlan);
}

TEST_CASE("config: a router's values arrive as written", "[config]") {
    const Config c = config_of(R"(
version: 1
description: "free text: anything"
eal: ["-l", "0-1", --no-huge, "-m", "512"]
workers: {lcores: "1-2,5", idle: adaptive, placement: warn, dispatch: software}
memory: {mbufs: 4096, mbuf_size: 4096, mempool_cache: 0}
pipeline: {burst: 64, prefetch: {header: 0, session: 4}, metadata: mbuf_dynfield, memoize: false, shadow_check: 1000}
sessions: {capacity: 1000}
ports:
  - {name: wan, device: "net_tap0,iface=cw0", rxq: 2, txq: auto, rxd: 512, txd: 256, mtu: 9000, promiscuous: true, mac: 12:34:56:10:20:30}
  - {name: lan, device: "0000:03:00.1", mac: auto, admin: down, description: uplink}
  - {name: host, device: "kernel:veth-a.1@x", admin: up}
interfaces:
  - {port: wan, addresses: ["192.0.2.1/24", "2001:db8::1/64"]}
  - {name: "no", port: lan, vlan: 100, inner_vlan: 7, tenant: default, addresses: [10.0.0.1/31]}
neighbors:
  - {address: 192.0.2.9, mac: "02:00:00:00:00:09"}
routes:
  - {prefix: 0.0.0.0/0, via: 192.0.2.254}
  - {tenant: default, prefix: ::/0, via: 2001:db8::fe}
)");
    CHECK(c.eal == std::vector<std::string>{"-l", "0-1", "--no-huge", "-m", "512"});
    CHECK(c.workers.lcores == std::vector<unsigned>{1, 2, 5});
    CHECK(c.workers.idle == config::Idle::adaptive);
    CHECK(c.workers.dispatch == config::Dispatch::software);
    CHECK(c.memory.mbufs == 4096);
    CHECK(c.pipeline.burst == 64);
    CHECK(c.pipeline.prefetch_header == 0);
    CHECK(c.pipeline.prefetch_session == 4);
    CHECK(c.pipeline.metadata == config::Metadata::mbuf_dynfield);
    CHECK_FALSE(c.pipeline.memoize);
    CHECK(c.pipeline.shadow_check == 1000);
    REQUIRE(c.ports.size() == 3);
    CHECK(c.ports[0].device == "net_tap0,iface=cw0");
    CHECK(c.ports[0].admin_up);
    CHECK_FALSE(c.ports[1].admin_up);
    CHECK(c.ports[2].admin_up);
    CHECK(c.ports[2].device == "kernel:veth-a.1@x");
    CHECK(c.ports[0].rxq == 2);
    CHECK(c.ports[0].mtu == 9000);
    CHECK(c.ports[0].promiscuous);
    // Base 60 to YAML 1.1; here a MAC address is text.
    CHECK(c.ports[0].mac == net::parse_mac("12:34:56:10:20:30"));
    CHECK_FALSE(c.ports[1].mac);
    REQUIRE(c.interfaces.size() == 2);
    CHECK(c.interfaces[0].name == "wan");
    CHECK(c.interfaces[0].mtu == 9000);
    REQUIRE(c.interfaces[0].addresses.size() == 2);
    CHECK(c.interfaces[0].addresses[0].address == address("192.0.2.1"));
    CHECK(c.interfaces[0].addresses[0].prefix == prefix("192.0.2.0/24"));
    CHECK(c.interfaces[1].name == "no");
    CHECK(c.interfaces[1].port == 1);
    CHECK(c.interfaces[1].vlan == 100);
    CHECK(c.interfaces[1].inner_vlan == 7);
    REQUIRE(c.neighbors.size() == 1);
    CHECK(c.neighbors[0].mac == net::parse_mac("02:00:00:00:00:09"));
    REQUIRE(c.routes.size() == 2);
    CHECK(c.routes[0].prefix == net::Prefix{address("0.0.0.0"), 0, net::Family::ip4});
    CHECK(c.routes[1].prefix == net::Prefix{net::Address{}, 0, net::Family::ip6});  // ::/0 stays IPv6
    REQUIRE(c.routes[1].via.size() == 1);
    CHECK(c.routes[1].via[0].address == address("2001:db8::fe"));
}

TEST_CASE("config: tenants own their interfaces, routes, lists and policers", "[config]") {
    const Config c = config_of(R"(
version: 1
ports: [{name: wan, device: net_null0}, {name: lan, device: net_null1}]
tenants:
  - {name: red, id: 10, match: [{port: wan, vlan: 100}], acl: edge, policer: {in: slow}}
  - name: blue
    id: 20
    acl: open
    interfaces: [{name: b, port: wan, vlan: 100, inner_vlan: 5, addresses: [10.0.0.1/8]}]
    routes: [{prefix: 0.0.0.0/0, via: 10.0.0.2}]
interfaces:
  - {port: wan, vlan: 100, addresses: [10.0.0.1/8]}
routes:
  - {tenant: red, prefix: 0.0.0.0/0, via: 10.0.0.3}
acl:
  - name: edge
    stateful: true
    rules:
      - {name: web, action: permit, in: b, proto: tcp, src: 0.0.0.0/0, dst: 10.1.0.0/16, dst_ports: 80-443, tcp_flags: "syn/syn,ack"}
      - {action: deny, proto: icmpv6, icmp: {type: 128, code: 0}, dscp: ef, fragment: any}
      - {action: permit, in: lan, proto: 47, src: ::/0}
  - {name: open, default: permit}
qos: {policers: [{name: slow, type: single, rate: 2.5Mbit, burst: 64KiB, accounting: l1}, {name: auto-burst, rate: 1Gbit, burst: auto}]}
)");
    REQUIRE(c.tenants.size() == 2);
    CHECK(c.tenants[0].id == 10);
    CHECK(c.tenants[0].acl == 0u);
    CHECK(c.tenants[0].sessions == config::SessionMode::track);  // its list is stateful
    CHECK(c.tenants[0].policer_in == 0u);
    CHECK_FALSE(c.tenants[0].policer_out);
    CHECK(c.tenants[1].sessions == config::SessionMode::none);
    // The match that the interface implies; a wider one of another tenant gives way.
    REQUIRE(c.tenants[1].match.size() == 1);
    CHECK(c.tenants[1].match[0].port == 0);
    CHECK(c.tenants[1].match[0].vlan == std::uint16_t{100});
    CHECK(c.tenants[1].match[0].inner_vlan == std::uint16_t{5});
    REQUIRE(c.interfaces.size() == 2);
    CHECK(c.interfaces[0].tenant == 1);
    CHECK(c.interfaces[1].tenant == 0);
    CHECK(c.interfaces[1].name == "wan.100");
    REQUIRE(c.routes.size() == 2);
    CHECK(c.routes[0].tenant == 1);
    CHECK(c.routes[1].tenant == 0);
    REQUIRE(c.acls.size() == 2);
    CHECK(c.acls[0].default_action == config::AclAction::deny);
    CHECK(c.acls[1].default_action == config::AclAction::permit);
    REQUIRE(c.acls[0].rules.size() == 3);
    const config::AclRule& web = c.acls[0].rules[0];
    CHECK(web.name == "web");
    CHECK(web.in == "b");
    CHECK(web.proto == std::uint8_t{6});
    CHECK(web.dst == prefix("10.1.0.0/16"));
    CHECK(web.dst_ports->first == 80);
    CHECK(web.dst_ports->last == 443);
    CHECK_FALSE(web.src_ports);
    CHECK(web.tcp_flags == std::uint8_t{0x02});
    CHECK(web.tcp_flags_mask == 0x12);
    const config::AclRule& ping = c.acls[0].rules[1];
    CHECK(ping.line == 20);
    CHECK(ping.icmp_type == std::uint8_t{128});
    CHECK(ping.icmp_code == std::uint8_t{0});
    CHECK(ping.dscp == std::uint8_t{46});
    CHECK(ping.fragment == config::FragmentMatch::any_fragment);
    CHECK(c.acls[0].rules[2].src == net::Prefix{net::Address{}, 0, net::Family::ip6});
    REQUIRE(c.policers.size() == 2);
    CHECK(c.policers[0].rate_bps == 2'500'000);
    CHECK(c.policers[0].burst_bytes == 65536);
    CHECK(c.policers[0].accounting == config::Accounting::l1);
    CHECK(c.policers[1].burst_bytes == 0);
}

TEST_CASE("config: sessions, their time-outs and each tenant's quota", "[config]") {
    const Config defaults =
        config_of("version: 1\nports: [{name: wan, device: net_null0}]\ntenants: [{name: a, id: 1}]\n");
    CHECK(defaults.sessions.high_watermark_percent == 90);
    CHECK(defaults.sessions.on_full == config::OnFull::evict_embryonic);
    CHECK(defaults.sessions.timeouts.established_tcp == 7200);
    CHECK_FALSE(defaults.tenants[0].quota.sessions);
    CHECK_FALSE(defaults.tenants[0].quota.new_sessions_per_second);
    CHECK(defaults.tenants[0].midstream == config::Midstream::deny);

    const Config c = config_of(R"(
version: 1
ports: [{name: wan, device: net_null0}]
tenants:
  - {name: a, id: 1, sessions: cache, midstream: allow, quota: {sessions: 200000, new_sessions_per_second: 20000}}
  - {name: b, id: 2, quota: {sessions: 7}}
sessions:
  capacity: 1000
  high_watermark: 75%
  on_full: deny_new
  timeouts: {new: 1s, established_udp: 2s, established_tcp: 3h, half_close: 4m, time_wait: 5s, closed: 6000ms, icmp: 7d}
)");
    CHECK(c.tenants[0].sessions == config::SessionMode::cache);
    CHECK(c.tenants[0].midstream == config::Midstream::allow);
    CHECK(c.tenants[0].quota.sessions == 200000u);
    CHECK(c.tenants[0].quota.new_sessions_per_second == 20000u);
    CHECK(c.tenants[1].quota.sessions == 7u);
    CHECK_FALSE(c.tenants[1].quota.new_sessions_per_second);
    CHECK(c.sessions.high_watermark_percent == 75);
    CHECK(c.sessions.on_full == config::OnFull::deny_new);
    const config::Timeouts& t = c.sessions.timeouts;
    CHECK(t.fresh == 1);
    CHECK(t.established_udp == 2);
    CHECK(t.established_tcp == 3 * 3600);
    CHECK(t.half_close == 240);
    CHECK(t.time_wait == 5);
    CHECK(t.closed == 6);
    CHECK(t.icmp == 7 * 86400);
}

TEST_CASE("config: JSON and aliases within bounds are read", "[config]") {
    const Config c = config_of(
        "{\n\t\"version\": 1,\n\t\"ports\": [{\"name\": \"wan\", \"device\": \"net_tap0,iface=a\", \"mtu\": "
        "1400}]\n}\n");
    CHECK(c.ports.at(0).mtu == 1400);
    const Config aliased = config_of(
        "version: 1\nports:\n  - {name: a, device: net_null0, mtu: &m 1400}\n  - {name: b, device: net_null1, mtu: "
        "*m}\n");
    CHECK(aliased.ports.at(1).mtu == 1400);
}

TEST_CASE("config: what is right and does nothing is warned of", "[config]") {
    const auto warnings = [](const std::string& text) {
        std::string all;
        for (const auto& diagnostic :
             config::load_text("version: 1\nports: [{name: wan, device: net_null0}]\n" + text, "f.yaml").diagnostics)
            all += config::to_string(diagnostic) + "\n";
        return all;
    };
    CHECK(warnings("") ==
          "f.yaml: warning: interfaces: there are none, so nothing is routed and nothing is answered\n");
    const std::string interface = "interfaces: [{port: wan}]\n";
    CHECK(warnings(interface) == "");
    const std::string objects =
        interface +
        "acl:\n  - {name: used, default: permit}\n  - {name: spare, default: permit}\n"
        "qos: {policers: [{name: fast, type: single, rate: 1Gbit}, {name: slow, type: single, rate: 1Mbit}]}\n";
    CHECK(
        warnings(objects + "tenants: [{name: red, id: 1, match: [{port: wan}], acl: used, policer: {out: slow}}]\n") ==
        "f.yaml:6:12: warning: nothing refers to the acl 'spare', so it does nothing\n"
        "f.yaml:7:25: warning: nothing refers to the policer 'fast', so it does nothing\n");
    CHECK(warnings(interface + "acl: [{name: spare, default: permit}]\nzzz: 1\n").find("warning") == std::string::npos);
}

TEST_CASE("config: every example file is right", "[config]") {
    unsigned files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(CACHEWIRE_SOURCE_DIR "/conf")) {
        if (entry.path().extension() != ".yaml") continue;
        ++files;
        const auto result = config::load_file(entry.path());
        for (const auto& diagnostic : result.diagnostics) UNSCOPED_INFO(config::to_string(diagnostic));
        CHECK(result.config.has_value());
        CHECK(result.diagnostics.empty());
    }
    CHECK(files >= 2);
}
