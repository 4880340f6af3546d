// SPDX-License-Identifier: BSD-3-Clause
// Hits by rule through the whole path and over reloads: each packet counts once, for the rule that judged it.
#include "control/rule_hits.h"

#include "memo_rig.h"
#include "support/catch.h"
#include "support/config_of.h"

namespace cachewire {

namespace {

using test::PacketBuilder;

using test::kInside;
using test::kOutside;

std::string config_text(const std::string& tenant, const std::string& acl) {
    return "version: 1\n"
           "ports: [{name: inside, device: net_null0}, {name: outside, device: net_null1}]\n"
           "tenants: [{name: red, id: 1, match: [{port: inside}, {port: outside}], acl: edge" +
           tenant +
           "}]\n"
           "interfaces:\n"
           "  - {name: lan, port: inside, addresses: [10.0.0.1/24]}\n"
           "  - {name: wan, port: outside, addresses: [198.18.0.254/24]}\n"
           "neighbors:\n"
           "  - {tenant: red, address: 10.0.0.9, mac: \"02:00:00:00:00:11\"}\n"
           "  - {tenant: red, address: 198.18.0.1, mac: \"02:00:00:00:00:12\"}\n"
           "acl: [{name: edge, " +
           acl + "}]\n";
}

constexpr const char* kRules =
    "rules: [{name: dns, action: permit, proto: udp, dst_ports: 53}, {name: no-ntp, action: deny, proto: udp, "
    "dst_ports: 123}]";

struct HitsRig {
    control::SnapshotBuilder builder{{{"inside", {0, 1, kInside}}, {"outside", {1, 1, kOutside}}}, {}, -1};
    std::unique_ptr<pipeline::Snapshot> snapshot;
    config::Config config;
    test::Runner runner;

    explicit HitsRig(const std::string& text) {
        test::ensure_eal();
        builder.rule_hits().add_worker(runner.worker->rules);
        load(text);
    }
    void load(const std::string& text) {
        config = test::config_of(text);
        auto pass = builder.begin(config, 1);
        builder.complete(*pass);
        auto next = builder.commit(std::move(pass));
        builder.grace_period_over();
        snapshot = std::move(next);
    }
    std::string udp(std::uint16_t dst_port, bool reply = false, std::uint16_t src_port = 1000) {
        PacketBuilder packet;
        packet.eth(reply ? kOutside : kInside);
        if (reply) {
            packet.ip4("198.18.0.1", "10.0.0.9").udp(dst_port, src_port);
        } else {
            packet.ip4("10.0.0.9", "198.18.0.1").udp(src_port, dst_port);
        }
        const auto port = *builder.registry().ports.find(reply ? "outside" : "inside");
        const std::string fate = runner.run_one(*snapshot, {port, packet.payload(8).bytes()});
        return fate.starts_with("to ") ? "passes" : fate;
    }
    control::RuleTotals hits(std::uint32_t rule) {
        session::Table& sessions = *runner.worker->sessions;
        for (std::uint32_t i = 0; i < sessions.used_end(); ++i)
            if (sessions.hot(i).state() != session::State::free) sessions.flush(i);
        return builder.rule_hits().of(*builder.registry().hits.at("edge"), rule);
    }
};

}  // namespace

TEST_CASE("rule hits: a stateful list counts both directions for the rule that let the session in", "[hits]") {
    HitsRig rig(config_text("", std::string("stateful: true, ") + kRules));
    for (int i = 0; i < 4; ++i) CHECK(rig.udp(53) == "passes");
    for (int i = 0; i < 3; ++i) CHECK(rig.udp(53, true) == "passes");
    for (int i = 0; i < 2; ++i) CHECK(rig.udp(123) == "acl_deny");
    CHECK(rig.udp(99) == "acl_default");
    CHECK(rig.hits(0).packets == 7);
    CHECK(rig.hits(0).sessions == 1);
    CHECK(rig.hits(0).bytes == 350);
    CHECK(rig.hits(1).packets == 2);
    CHECK(rig.hits(1).sessions == 0);
    CHECK(rig.hits(2).packets == 1);  // the default
}

TEST_CASE("rule hits: without sessions and without a memo the same packets count the same", "[hits]") {
    for (const char* tenant : {", sessions: none", ", sessions: cache", ", sessions: track"}) {
        for (const bool memoize : {true, false}) {
            INFO(tenant << " memoize " << memoize);
            HitsRig rig(config_text(tenant, std::string("default: permit, ") + kRules));
            rig.snapshot->memoize = memoize;
            for (int i = 0; i < 4; ++i) CHECK(rig.udp(53) == "passes");
            for (int i = 0; i < 3; ++i) CHECK(rig.udp(53, true) == "passes");  // judged alone: the default
            CHECK(rig.udp(123) == "acl_deny");
            CHECK(rig.hits(0).packets == 4);
            CHECK(rig.hits(1).packets == 1);
            CHECK(rig.hits(2).packets == 3);
        }
    }
}

TEST_CASE("rule hits: over reloads a rule that stays goes on counting, one that goes is forgotten", "[hits]") {
    const std::string tenant = ", sessions: track";
    HitsRig rig(config_text(tenant, std::string("stateful: true, ") + kRules));
    for (int i = 0; i < 4; ++i) CHECK(rig.udp(53) == "passes");
    CHECK(rig.udp(123) == "acl_deny");
    // Before the session's counts have been flushed.
    rig.load(config_text(tenant,
                         "stateful: true, rules: [{name: ssh, action: permit, proto: tcp, dst_ports: 22}, {name: dns, "
                         "action: permit, proto: udp, dst_ports: 53}]"));
    CHECK(rig.hits(0).packets == 0);
    CHECK(rig.hits(1).packets == 4);
    CHECK(rig.hits(2).packets == 0);
    for (int i = 0; i < 2; ++i) CHECK(rig.udp(53) == "passes");
    CHECK(rig.hits(1).packets == 6);
    CHECK(rig.hits(1).sessions == 2);  // it has come to the rule a second time, judged anew
    // The verdict turns: the session's packets until then stay with the old rule, which is gone.
    rig.load(config_text(tenant, "stateful: true, rules: [{name: no-dns, action: deny, proto: udp, dst_ports: 53}]"));
    for (int i = 0; i < 3; ++i) CHECK(rig.udp(53) == "acl_deny");
    CHECK(rig.hits(0).packets == 3);
    CHECK(rig.hits(0).sessions == 1);
}

TEST_CASE("rule hits: numbers are used again when no session holds them", "[hits]") {
    HitsRig rig(config_text("", std::string("stateful: true, ") + kRules));
    CHECK(rig.udp(53) == "passes");
    std::uint32_t highest = 0;
    for (int i = 0; i < 200; ++i) {
        rig.load(config_text("",
                             "stateful: true, rules: [{name: dns, action: permit, proto: udp, dst_ports: 53}, "
                             "{action: deny, proto: udp, dst_ports: " +
                                 std::to_string(1000 + i) + "}]"));
        CHECK(rig.udp(53) == "passes");
        highest = std::max(highest, rig.builder.registry().hits.at("edge")->numbers->first);
    }
    CHECK(highest <= 4 * session::RuleCounters::kChunkRules);
    CHECK(rig.hits(0).packets == 201);
    CHECK(rig.builder.registry().hits.at("edge")->older.size() <= 2);
}

TEST_CASE("rule hits: a list that is given up mid-way leaves the counts as they were", "[hits]") {
    HitsRig rig(config_text("", std::string("stateful: true, ") + kRules));
    CHECK(rig.udp(53) == "passes");
    const auto empty = test::config_of(config_text("", "rules: []"));
    for (int i = 0; i < 50; ++i) rig.builder.begin(empty, 2).reset();
    CHECK(rig.udp(53) == "passes");
    CHECK(rig.hits(0).packets == 2);
}

TEST_CASE("acl: a rule on the egress follows the routes, for sessions too", "[hits]") {
    const std::string acl = "stateful: true, rules: [{name: out, action: permit, in: lan, out: wan}]";
    HitsRig rig(config_text("", acl));
    CHECK(rig.udp(53) == "passes");
    CHECK(rig.udp(53, true) == "passes");
    CHECK(rig.udp(53, true, 1001) == "acl_default");  // from wan to lan
    CHECK(rig.hits(0).packets == 2);
    const auto routed = [&](const char* via) {
        rig.load(config_text("", acl) + "routes: [{tenant: red, prefix: 203.0.113.0/24, via: " + via + "}]\n");
        const std::string fate = rig.runner.run_one(
            *rig.snapshot, {*rig.builder.registry().ports.find("inside"),
                            PacketBuilder().eth(kInside).ip4("10.0.0.9", "203.0.113.5").udp(7, 9).payload(8).bytes()});
        return fate.starts_with("to ") ? "passes" : fate;
    };
    CHECK(routed("198.18.0.1") == "passes");
    CHECK(routed("10.0.0.9") == "acl_default");  // the same session, and no rule has changed
    CHECK(routed("198.18.0.1") == "passes");
}

}  // namespace cachewire
