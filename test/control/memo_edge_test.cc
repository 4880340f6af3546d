// SPDX-License-Identifier: BSD-3-Clause
// Where the memo ends: generations that wrap, no outcome index left, checks that find a wrong memo, lists whose rules
// look at more than the session's key.
#include "control/memo_rig.h"
#include "support/catch.h"

namespace cachewire {
namespace {

using test::Arrival;
using test::PacketBuilder;

using test::kInside;
using test::kOutside;

std::string config_text(const std::string& tenant, const std::string& list, const std::string& sessions = "") {
    return "version: 1\n" + sessions + R"(ports:
  - {name: inside, device: "net_null0"}
  - {name: outside, device: "net_null1"}
tenants:
  - {name: red, id: 1, match: [{port: inside}, {port: outside}], acl: edge)" +
           tenant + R"(}
interfaces:
  - {name: lan, port: inside, addresses: ["10.0.0.1/24"]}
  - {name: wan, port: outside, addresses: ["10.0.1.1/24"]}
neighbors:
  - {tenant: red, address: 10.0.0.9, mac: "02:00:00:00:00:09"}
  - {tenant: red, address: 10.0.1.9, mac: "02:00:00:00:00:19"}
  - {tenant: red, address: 10.0.1.10, mac: "02:00:00:00:00:20"}
routes: [{tenant: red, prefix: 198.18.0.0/15, via: 10.0.1.9}]
acl:
  - {name: edge, )" +
           list + "}\n";
}
const std::string kStateful = "stateful: true, rules: [{action: permit, in: lan, proto: udp}]";
const std::string kStatefulDeny = "stateful: true, rules: [{action: deny, in: lan, proto: udp}]";

struct EdgeRig {
    test::Builder builder{{{"inside", {0, 1, kInside}}, {"outside", {1, 1, kOutside}}}};
    std::unique_ptr<pipeline::Snapshot> snapshot;
    test::Runner runner;

    explicit EdgeRig(const std::string& text) : snapshot(builder.build(text)) {}
    Arrival udp(bool reply = false, std::uint16_t port = 1000) const {
        if (reply)
            return {builder.port("outside"),
                    PacketBuilder().eth(kOutside).ip4("198.18.0.1", "10.0.0.9").udp(53, port).payload(8).bytes()};
        return {builder.port("inside"),
                PacketBuilder().eth(kInside).ip4("10.0.0.9", "198.18.0.1").udp(port, 53).payload(8).bytes()};
    }
    Arrival tcp(std::uint8_t flags, std::uint8_t tos = 0, bool outside = false) const {
        return {builder.port(outside ? "outside" : "inside"), PacketBuilder()
                                                                  .eth(outside ? kOutside : kInside)
                                                                  .ip4("10.0.0.9", "198.18.0.1", {.tos = tos})
                                                                  .tcp(1000, 80, {.flags = flags})
                                                                  .bytes()};
    }
    std::string send(const Arrival& arrival) {
        const std::string fate = runner.run_one(*snapshot, arrival);
        return fate.starts_with("to ") ? "passes" : fate;
    }
    pipeline::Tenant& tenant() { return snapshot->tenants[builder.tenant("red")]; }
    const pipeline::MemoCounters& memo() const { return runner.worker->memo; }
};

}  // namespace

TEST_CASE("memo: 65536 changes of policy and routes later an idle session is still stale", "[memo]") {
    EdgeRig rig(config_text("", kStateful, "sessions: {timeouts: {established_udp: 1d}}\n"));
    CHECK(rig.send(rig.udp()) == "passes");
    CHECK(rig.send(rig.udp(true)) == "passes");
    const std::uint64_t stale = rig.memo().stale.read();
    // The policy changes once, and then moves on a whole round, at 20 changes a second while the walk goes by.
    const auto deny =
        rig.builder.build(config_text("", kStatefulDeny, "sessions: {timeouts: {established_udp: 1d}}\n"));
    const std::uint16_t policy = rig.tenant().policy_generation, route = rig.tenant().route_generation;
    rig.snapshot = std::make_unique<pipeline::Snapshot>(*deny);
    for (unsigned i = 1; i <= 65536; ++i) {
        rig.tenant().policy_generation = static_cast<std::uint16_t>(policy + i);
        rig.tenant().route_generation = static_cast<std::uint16_t>(route + i);
        rig.runner.advance(*rig.snapshot, 0.05, 1);
    }
    REQUIRE(rig.tenant().policy_generation == policy);
    CHECK(rig.send(rig.udp()) == "acl_deny");
    CHECK(rig.memo().stale.read() == stale + 1);
}

TEST_CASE("memo: 65536 reloads that change the tenant's list later an idle session is judged anew", "[memo]") {
    const std::string text = config_text("", kStateful, "sessions: {timeouts: {established_udp: 1d}}\n") +
                             "  - {name: wider, stateful: true, rules: [{action: permit, in: lan}]}\n" +
                             "  - {name: shut, stateful: true, rules: [{action: deny, in: lan}]}\n";
    const auto with_list = [&text](const char* list) {
        std::string other = text;
        other.replace(other.find("acl: edge"), 9, std::string("acl: ") + list);
        return test::config_of(other);
    };
    // No list changes, so none is compiled again; the tenant's does, which moves the generation.
    const config::Config configs[] = {with_list("edge"), with_list("wider")}, shut = with_list("shut");
    EdgeRig rig(text);
    CHECK(rig.send(rig.udp()) == "passes");
    CHECK(rig.send(rig.udp(true)) == "passes");
    const std::uint16_t generation = rig.tenant().policy_generation;
    for (unsigned i = 1; i <= 65536; ++i) {
        rig.snapshot = rig.builder.build(i == 65536 ? shut : configs[i % 2]);
        REQUIRE(rig.tenant().policy_generation == static_cast<std::uint16_t>(generation + i));
        rig.runner.advance(*rig.snapshot, 0.01, 1);
    }
    REQUIRE(rig.tenant().policy_generation == generation);  // as when the session was made
    const std::uint64_t stale = rig.memo().stale.read();
    CHECK(rig.send(rig.udp(true)) == "acl_deny");
    CHECK(rig.send(rig.udp()) == "acl_deny");
    CHECK(rig.memo().stale.read() == stale + 1);
}

TEST_CASE("memo: 65536 reloads that change a route later an idle session looks its next hop up anew", "[memo]") {
    const std::string here = config_text("", kStateful, "sessions: {timeouts: {established_udp: 1d}}\n");
    std::string there = here;
    there.replace(there.find("via: 10.0.1.9}"), 14, "via: 10.0.1.10}");
    // Each of the two differs from the one before, so each moves the generation; the walk sees one entry in between.
    const config::Config configs[] = {test::config_of(here), test::config_of(there)};
    EdgeRig rig(here);
    const auto to_mac = [&](const char* mac) {
        return rig.runner.run_one(*rig.snapshot, rig.udp()).find(mac) != std::string::npos;
    };
    CHECK(to_mac("02 00 00 00 00 19"));
    CHECK(rig.send(rig.udp(true)) == "passes");
    const std::uint16_t generation = rig.tenant().route_generation;
    for (unsigned i = 1; i <= 65537; ++i) {
        rig.snapshot = rig.builder.build(configs[i % 2]);
        REQUIRE(rig.tenant().route_generation == static_cast<std::uint16_t>(generation + i));
        rig.runner.advance(*rig.snapshot, 0.01, 1);
        if (i != 65536) continue;
        REQUIRE(rig.tenant().route_generation == generation);  // as when the session was made
        const std::uint64_t stale = rig.memo().stale.read();
        CHECK(to_mac("02 00 00 00 00 19"));
        CHECK(rig.memo().stale.read() == stale + 1);
    }
    CHECK(to_mac("02 00 00 00 00 20"));
}

TEST_CASE("memo: without an outcome index left sessions are judged at each packet, rightly", "[memo]") {
    EdgeRig rig(config_text("", kStateful));
    rig.runner.worker->outcomes = session::OutcomeTable(1);
    REQUIRE(rig.runner.worker->outcomes.intern({.permit = true, .traffic_class = 7}) == 0);  // the one there is
    CHECK(rig.send(rig.udp()) == "passes");
    for (int i = 0; i < 3; ++i) {
        CHECK(rig.send(rig.udp()) == "passes");
        CHECK(rig.send(rig.udp(true)) == "passes");
    }
    CHECK(rig.memo().bypass_outcome_full.read() == 6);
    CHECK(rig.memo().hits.read() == 0);
    rig.snapshot = rig.builder.build(config_text("", kStatefulDeny));
    CHECK(rig.send(rig.udp(true)) == "acl_deny");
    rig.runner.worker->outcomes.release(0);
    rig.snapshot = rig.builder.build(config_text("", kStateful));
    CHECK(rig.send(rig.udp()) == "passes");
    CHECK(rig.send(rig.udp()) == "passes");
    CHECK(rig.memo().hits.read() == 1);
}

TEST_CASE("memo: a check finds a wrong verdict and a wrong next hop, counts them and puts them right", "[memo]") {
    EdgeRig rig(config_text("", kStateful));
    rig.snapshot->shadow_check = 1;
    CHECK(rig.send(rig.udp()) == "passes");
    CHECK(rig.send(rig.udp()) == "passes");
    CHECK(rig.memo().shadow_checked.read() == 1);
    CHECK(rig.memo().shadow_mismatch.read() == 0);
    session::Table& sessions = *rig.runner.worker->sessions;
    SECTION("verdict") {
        sessions.memoize(0, rig.runner.worker->outcomes, {.permit = false}, rig.tenant().policy_generation, 0);
    }
    SECTION("rule") { sessions.cold(0).rule = 5; }
    SECTION("next hop") { sessions.hot(0).next_hop[0] = 1; }
    CHECK(rig.send(rig.udp()) == "passes");
    CHECK(rig.memo().shadow_mismatch.read() == 1);
    CHECK(rig.send(rig.udp()) == "passes");
    CHECK(rig.memo().shadow_mismatch.read() == 1);
    CHECK(rig.memo().hits.read() == 3);
}

TEST_CASE("memo: one in N hits is checked", "[memo]") {
    EdgeRig rig(config_text("", kStateful));
    rig.snapshot->shadow_check = 10;
    for (int i = 0; i < 101; ++i) CHECK(rig.send(rig.udp()) == "passes");
    CHECK(rig.memo().shadow_checked.read() == 10);
    CHECK(rig.memo().hits.read() == 100);
}

// The classic stateless rule for established connections: what the memo holds of an ACK is no word on a SYN.
TEST_CASE("memo: of a stateless list it speaks only for packets that agree with the session's first one", "[memo]") {
    for (const std::string sessions : {"cache", "none"}) {
        INFO(sessions);
        EdgeRig rig(
            config_text(", sessions: " + sessions,
                        "rules: [{action: deny, dscp: ef}, {action: deny, in: wan}, {action: permit, proto: tcp, "
                        "tcp_flags: \"ack/ack\"}]"));
        CHECK(rig.send(rig.tcp(16)) == "passes");
        CHECK(rig.send(rig.tcp(16)) == "passes");
        CHECK(rig.send(rig.tcp(2)) == "acl_default");
        CHECK(rig.send(rig.tcp(16, 0xb8)) == "acl_deny");
        CHECK(rig.send(rig.tcp(16, 0, true)) == "acl_deny");
        CHECK(rig.send(rig.tcp(24)) == "passes");  // PSH is none of the rules' concern
        CHECK(rig.memo().hits.read() == (sessions == "cache" ? 2 : 0));
    }
}

TEST_CASE("memo: what a new policy means for old sessions is the configuration's choice", "[memo]") {
    struct Case {
        const char* choice;
        const char* old_session;
        const char* reply;
    };
    const Case cases[] = {
        {"revalidate", "acl_deny", "acl_deny"}, {"keep", "passes", "passes"}, {"kill", "acl_deny", "acl_default"}};
    for (const Case& c : cases) {
        for (const bool memoize : {true, false}) {
            INFO(c.choice << (memoize ? "" : ", memo off"));
            const std::string settings = fmt::format("sessions: {{on_policy_change: {}}}\n", c.choice);
            EdgeRig rig(config_text("", kStateful, settings));
            CHECK(rig.send(rig.udp()) == "passes");
            CHECK(rig.send(rig.udp(false, 1001)) == "passes");
            CHECK(rig.send(rig.udp(true, 1001)) == "passes");
            rig.snapshot = rig.builder.build(config_text("", kStatefulDeny, settings));
            rig.snapshot->memoize = memoize;
            CHECK(rig.send(rig.udp(true, 1001)) == c.reply);
            CHECK(rig.send(rig.udp()) == c.old_session);
            CHECK(rig.send(rig.udp(false, 1002)) == "acl_deny");
            CHECK(rig.runner.worker->sessions->stats().active == (std::string(c.choice) == "kill" ? 0 : 2));
        }
    }
}

// Counters by tenant apart, each looked-up packet is in one of the first eight.
TEST_CASE("memo: the counters add up to the packets that were looked up", "[memo]") {
    EdgeRig rig(config_text("", kStateful));
    unsigned sent = 0;
    for (unsigned i = 0; i < 50; ++i) {
        rig.snapshot->memoize = i % 10 != 3;
        if (i % 20 == 5) ++rig.tenant().policy_generation;
        if (i % 20 == 9) ++rig.tenant().route_generation;
        for (const Arrival& a : {rig.udp(i % 2 != 0, static_cast<std::uint16_t>(1000 + i % 3)), rig.udp()}) {
            rig.send(a);
            ++sent;
        }
    }
    const pipeline::MemoCounters& m = rig.memo();
    CHECK(m.hits.read() + m.misses.read() + m.stale.read() + m.bypass_fragment.read() + m.bypass_icmp_error.read() +
              m.bypass_options.read() + m.bypass_outcome_full.read() + m.bypass_other.read() ==
          sent);
    CHECK(m.stale.read() > 0);
    CHECK(m.bypass_other.read() > 0);
}

}  // namespace cachewire
