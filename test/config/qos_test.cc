// SPDX-License-Identifier: BSD-3-Clause
// Policers, classes, and what rules do beside letting pass: what is read, and what is refused.
#include "config/load.h"
#include "support/catch.h"
#include "wrong_files.h"

namespace cachewire {

namespace {

using test::kPort;
using test::kRouter;
using test::WrongFile;

const WrongFile kWrongQos[] = {
    {kPort, "qos: {policers: [{name: p, type: trtcm_2698}]}\n",
     "f.yaml:3:18: error: qos.policers[0].cir: this key is missing\n"
     "f.yaml:3:18: error: qos.policers[0].pir: this key is missing\n"},
    {kPort, "qos: {policers: [{name: p, type: srtcm_2697, cir: 1Mbit, pir: 2Mbit}]}\n",
     "f.yaml:3:63: error: qos.policers[0].pir: type srtcm_2697 has no such number; allowed: cir cbs ebs\n"},
    {kPort, "qos: {policers: [{name: p, type: trtcm_4115, cir: 1Mbit, rate: 2Mbit, eir: 1Mbit}]}\n",
     "f.yaml:3:64: error: qos.policers[0].rate: type trtcm_4115 has no such number; allowed: cir cbs eir ebs\n"},
    {kPort, "qos: {policers: [{name: p, rate: 1Mbit, cbs: 64KiB}]}\n",
     "f.yaml:3:46: error: qos.policers[0].cbs: type single has no such number; allowed: rate burst\n"},
    {kPort, "qos: {policers: [{name: p, type: trtcm_2698, cir: 2Mbit, pir: 1Mbit}]}\n",
     "f.yaml:3:63: error: qos.policers[0].pir: a peak rate under the committed one; allowed: `cir` or more\n"},
    {kPort, "qos: {policers: [{name: p, type: trtcm_2698, cir: 2Mbit, pir: 100}]}\n",
     "f.yaml:3:63: error: qos.policers[0].pir: '100' has no unit; allowed: 8kbit to 1Tbit, in bit, kbit, Mbit, Gbit "
     "or Tbit\n"},
    {kPort, "qos: {policers: [{name: p, type: trtcm_2698, cir: 2Mbit, pir: 4Mbit, pbs: 5GiB}]}\n",
     "f.yaml:3:75: error: qos.policers[0].pbs: '5GiB' is out of range; allowed: auto, or 64B to 4GiB, in B, KiB, MiB, "
     "GiB, kB, MB or GB\n"},
    {kPort, "qos: {policers: [{name: p, rate: 1Mbit, yellow: drop}]}\n",
     "f.yaml:3:49: error: qos.policers[0].yellow: one rate knows green and red only; allowed: with another `type`\n"},
    {kPort, "qos: {policers: [{name: p, rate: 1Mbit, colour_aware: true}]}\n",
     "f.yaml:3:55: error: qos.policers[0].colour_aware: one rate knows green and red only; allowed: with another "
     "`type`\n"},
    {kPort, "qos: {policers: [{name: p, rate: 1Mbit, red: {dscp: af99}}]}\n",
     "f.yaml:3:53: error: qos.policers[0].red.dscp: 'af99' is not known; allowed: 0 to 63, or a name such as ef, "
     "af11, cs6\n"},
    {kPort, "qos: {policers: [{name: p, rate: 1Mbit, red: remark}]}\n",
     "f.yaml:3:46: error: qos.policers[0].red: 'remark' is not known; allowed: pass, drop, or {dscp: NAME}\n"},
    {kPort, "qos: {policers: [{name: p, rate: 1Mbit, shared: yes}]}\n",
     "f.yaml:3:49: error: qos.policers[0].shared: 'yes' is not a boolean; allowed: true | false\n"},
    {kPort, "qos: {policers: [{name: p, rate: 1Mbit, shared: true, per_session: true}]}\n",
     "f.yaml:3:68: error: qos.policers[0].per_session: one bucket for all, or one for each session; allowed: `shared` "
     "or this\n"},
    {kPort, "qos: {policers: [{name: p, rate: 1Mbit, per_session: true}], classes: [{name: c, policer: p}]}\n",
     "f.yaml:3:91: error: qos.classes[0].policer: has a bucket for each session, but a session's packets may be of "
     "several classes; allowed: on tenants with sessions and on rules of stateful lists\n"},
    {kPort,
     "qos: {policers: [{name: p, rate: 1Mbit, per_session: true}]}\n"
     "interfaces: [{port: wan, policer: {out: p}}]\n",
     "f.yaml:4:41: error: interfaces[0].policer.out: has a bucket for each session, but a session's packets come and "
     "leave by several interfaces; allowed: on tenants with sessions and on rules of stateful lists\n"},
    {kPort,
     "qos: {policers: [{name: p, rate: 1Mbit, per_session: true}]}\n"
     "acl: [{name: a, rules: [{action: permit, proto: tcp}, {action: permit, policer: p}]}]\n",
     "f.yaml:4:81: error: acl[0].rules[1].policer: has a bucket for each session, but the list judges packets by "
     "themselves; allowed: in a list with `stateful: true`\n"},
    {kPort,
     "qos: {policers: [{name: p, rate: 1Mbit, per_session: true}]}\n"
     "tenants: [{name: red, id: 1, match: [{port: wan}], policer: {out: p}}]\n",
     "f.yaml:4:61: error: tenants[0].policer: policer 'p' has a bucket for each session, and tenant 'red' keeps none; "
     "allowed: with `sessions: track` or `cache`\n"},
    {kPort,
     "qos: {policers: [{name: p, rate: 1Mbit, per_session: true}]}\n"
     "defaults: {tenant: {policer: {in: p}}}\n"
     "tenants: [{name: red, id: 1, match: [{port: wan}]}, {name: blue, id: 2, sessions: cache}]\n",
     "f.yaml:5:11: error: tenants[0]: policer 'p' has a bucket for each session, and tenant 'red' keeps none; allowed: "
     "with `sessions: track` or `cache`\n"},
    {kPort, "qos: {classes: [{name: a, dscp: ef}, {name: b, dscp: 46}]}\n",
     "f.yaml:3:54: error: qos.classes[1].dscp: stands for class 'a' already\n"},
    {kPort, "qos: {classes: [{name: a, pcp: 8}]}\n",
     "f.yaml:3:32: error: qos.classes[0].pcp: '8' is out of range; allowed: 0 to 7\n"},
    {kPort, "qos: {classes: [{name: a, pcp: 5}, {name: a, pcp: 5}]}\n",
     "f.yaml:3:43: error: qos.classes[1].name: a second class named 'a'; the first stands in line 3\n"
     "f.yaml:3:51: error: qos.classes[1].pcp: stands for class 'a' already\n"},
    {kPort, "qos: {classes: [{name: a, policer: p}]}\n",
     "f.yaml:3:36: error: qos.classes[0].policer: no policer is named 'p'; known: none\n"},
    {kPort, "interfaces: [{port: wan, policer: {in: p}}]\n",
     "f.yaml:3:40: error: interfaces[0].policer.in: no policer is named 'p'; known: none\n"},
    {kPort, "acl: [{name: a, rules: [{action: permit, class: gold}]}]\n",
     "f.yaml:3:49: error: acl[0].rules[0].class: no class is named 'gold'; known: none\n"},
    {kPort, "qos: {classes: [{name: gold}]}\nacl: [{name: a, rules: [{action: deny, class: gold}]}]\n",
     "f.yaml:4:47: error: acl[0].rules[0].class: the rule lets nothing pass; allowed: with `action: permit`\n"},
    {kRouter, "acl: [{name: a, rules: [{action: permit, dst: 2001:db8::/32, next_hop: 192.0.2.9}]}]\n",
     "f.yaml:4:72: error: acl[0].rules[0].next_hop: `next_hop` and the prefixes are of different families\n"},
    {"version: 1\nports: [{name: wan, device: net_null0}]\n"
     "interfaces: [{port: wan, addresses: [192.0.2.1/24]}]\n",
     "tenants: [{name: red, id: 1, match: [{port: wan}], acl: a}]\n"
     "acl: [{name: a, rules: [{action: permit, proto: tcp, next_hop: 198.51.100.1}, {action: permit, next_hop: "
     "192.0.2.1}]}]\n",
     "f.yaml:5:64: error: acl[0].rules[0].next_hop: 198.51.100.1 is on no connected network of tenant 'red'\n"
     "f.yaml:5:106: error: acl[0].rules[1].next_hop: 192.0.2.1 is an address of our own, in f.yaml:3\n"},
};

std::string warnings_of(const std::string& text) {
    const auto result = config::load_text(text, "f.yaml");
    REQUIRE(result.config.has_value());
    std::string all;
    for (const auto& diagnostic : result.diagnostics)  // nothing refers to these policers, which is another warning
        if (diagnostic.text.find("full frame") != std::string::npos) all += config::to_string(diagnostic) + "\n";
    return all;
}

}  // namespace

TEST_CASE("config: policers, classes and rules' treatments that make no sense are refused", "[config]") {
    for (const WrongFile& wrong : kWrongQos) {
        CAPTURE(wrong.text);
        CHECK(test::errors_of(wrong) == wrong.errors);
    }
}

TEST_CASE("config: numbers of two-rate policers are kept to the bit", "[config]") {
    const auto result = config::load_text(std::string(kRouter) + R"(
qos:
  policers:
    - {name: a, type: trtcm_2698, cir: 5Gbit, pir: 40000000001bit, cbs: 64KiB, pbs: 4GiB, yellow: {dscp: af12}, red: pass}
    - {name: b, type: srtcm_2697, cir: 100Mbit, ebs: 128kB, colour_aware: true, shared: true, yellow: drop}
    - {name: c, type: trtcm_4115, cir: 8kbit, eir: 1Tbit, accounting: l3}
  classes:
    - {name: gold, dscp: ef, pcp: 5, policer: a}
    - {name: other}
acl:
  - {name: l, rules: [{action: permit, class: other, policer: b, next_hop: 192.0.2.9}]}
)",
                                          "f.yaml");
    REQUIRE(result.config.has_value());
    const config::Config& c = *result.config;
    using Kind = config::ColourAction::Kind;
    REQUIRE(c.policers.size() == 3);
    CHECK(c.policers[0].type == config::PolicerType::trtcm_2698);
    CHECK(c.policers[0].rate_bps == 5'000'000'000);
    CHECK(c.policers[0].excess_rate_bps == 40'000'000'001);
    CHECK(c.policers[0].burst_bytes == 65536);
    CHECK(c.policers[0].excess_burst_bytes == 1ull << 32);
    CHECK(c.policers[0].yellow.kind == Kind::remark);
    CHECK(c.policers[0].yellow.dscp == 12);
    CHECK(c.policers[0].red.kind == Kind::pass);
    CHECK(c.policers[1].colour_aware);
    CHECK(c.policers[1].shared);
    CHECK(c.policers[1].burst_bytes == 0);
    CHECK(c.policers[1].excess_burst_bytes == 128'000);
    CHECK(c.policers[1].yellow.kind == Kind::drop);
    CHECK(c.policers[1].red.kind == Kind::drop);
    CHECK(c.policers[2].rate_bps == 8'000);
    CHECK(c.policers[2].excess_rate_bps == 1'000'000'000'000);
    CHECK(c.policers[2].yellow.kind == Kind::pass);
    REQUIRE(c.classes.size() == 2);
    CHECK(c.classes[0].dscp == 46);
    CHECK(c.classes[0].pcp == 5);
    CHECK(c.classes[0].policer == 0u);
    CHECK_FALSE(c.classes[1].dscp);
    const config::AclRule& rule = c.acls[0].rules[0];
    CHECK(rule.traffic_class == 1u);
    CHECK(rule.policer == 1u);
    CHECK(rule.next_hop->address == net::parse_address("192.0.2.9")->address);
}

TEST_CASE("config: policers with a bucket for each session stand on tenants and on rules of stateful lists",
          "[config]") {
    const auto result = config::load_text(std::string(kPort) + R"(
qos:
  policers:
    - {name: each, rate: 1Mbit, per_session: true}
    - {name: own, rate: 1Mbit}
acl:
  - {name: l, stateful: true, rules: [{action: permit, policer: each}]}
  - {name: stateless, rules: [{action: permit, policer: own}]}
tenants:
  - {name: red, id: 1, match: [{port: wan}], acl: l, policer: {in: each, out: own}}
  - {name: blue, id: 2, sessions: cache, policer: {in: own, out: each}}
)",
                                          "f.yaml");
    REQUIRE(result.config.has_value());
    CHECK(result.config->policers[0].per_session);
    CHECK_FALSE(result.config->policers[1].per_session);
    CHECK(result.config->acls[0].rules[0].policer == 0u);
    CHECK(result.config->tenants[1].policer_out == 0u);
}

TEST_CASE("config: a bucket that no full frame fits into is warned of", "[config]") {
    const auto policer = [](const char* rest) {
        return std::string(kPort) + "qos: {policers: [{name: p, " + rest + "}]}\n";
    };
    CHECK(warnings_of(policer("rate: 1Mbit, burst: 1513B")) ==
          "f.yaml:3:48: warning: qos.policers[0].burst: shorter than a full frame of 1514 bytes, which will always be "
          "over the rate\n");
    CHECK(warnings_of(policer("rate: 1Mbit, burst: 1514B")).empty());
    CHECK(warnings_of(policer("rate: 1Mbit, burst: 1500B, accounting: l3")).empty());
    CHECK(warnings_of(policer("type: srtcm_2697, cir: 1Mbit, cbs: 100B")).empty());  // E holds it
    CHECK(warnings_of(policer("type: srtcm_2697, cir: 1Mbit, cbs: 100B, ebs: 200B")) ==
          "f.yaml:3:74: warning: qos.policers[0].ebs: shorter than a full frame of 1514 bytes, which will always be "
          "over the rate\n");
    CHECK(warnings_of(policer("type: trtcm_2698, cir: 1Mbit, pir: 2Mbit, pbs: 1000B")) ==
          "f.yaml:3:75: warning: qos.policers[0].pbs: shorter than a full frame of 1514 bytes, which will always be "
          "over the rate\n");
}

}  // namespace cachewire
