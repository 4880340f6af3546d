// SPDX-License-Identifier: BSD-3-Clause
// Replies of a stateless list: they have a verdict of their own, and the session's memo holds it beside the other one.
#include "control/memo_rig.h"
#include "support/catch.h"

namespace cachewire {
namespace {

using test::Arrival;
using test::kInside;
using test::kOutside;
using test::PacketBuilder;

std::string stateless_config(const std::string& list, const std::string& sessions = "") {
    return test::two_sides(", sessions: cache") + sessions + "acl: [{name: edge, " + list + "}]\n";
}
// Out by one rule, back by another.
const std::string kBothWays =
    "rules: [{name: out, action: permit, in: lan, proto: udp}, {name: back, action: permit, in: wan, proto: udp}]";
const std::string kOutOnly =
    "rules: [{name: out, action: permit, in: lan, proto: udp}, {name: back, action: deny, in: wan, proto: udp}]";

struct ReplyRig {
    test::Builder builder{{{"inside", {0, 1, kInside}}, {"outside", {1, 1, kOutside}}}};
    test::Runner runner;
    std::unique_ptr<pipeline::Snapshot> snapshot;
    bool v6 = false;

    explicit ReplyRig(const std::string& text) {
        builder.count_hits_of(runner);
        snapshot = builder.build(text);
    }
    Arrival packet(bool reply, std::uint8_t tos = 0, std::uint16_t port = 1000) const {
        PacketBuilder p;
        p.eth(reply ? kOutside : kInside);
        const char* inside = v6 ? "2001:db8:a::9" : "10.0.0.9";
        const char* outside = v6 ? "2001:db8:b::9" : "10.0.1.9";
        const char *src = reply ? outside : inside, *dst = reply ? inside : outside;
        if (v6) {
            p.ip6(src, dst, {.traffic_class = tos});
        } else {
            p.ip4(src, dst, {.tos = tos});
        }
        p.udp(reply ? 53 : port, reply ? port : 53).payload(8);
        return {builder.port(reply ? "outside" : "inside"), p.bytes()};
    }
    std::string send(bool reply, std::uint8_t tos = 0, std::uint16_t port = 1000) {
        const std::string fate = runner.run_one(*snapshot, packet(reply, tos, port));
        return fate.starts_with("to ") ? "passes" : fate;
    }
    std::uint64_t hits_of(unsigned rule) {
        return runner.rule_hits(snapshot->tenants[builder.tenant("red")].rule_base + rule);
    }
    // Memo hits and those that ran the list since the last call: "2 hits, 1 judged".
    std::string memo() {
        const pipeline::MemoCounters& m = runner.worker->memo;
        const std::uint64_t hits = m.hits.read(), stale = m.stale.read();
        const std::uint64_t judged = m.misses.read() + m.bypass_other.read() + m.bypass_outcome_full.read();
        const std::string text =
            fmt::format("{} hits, {} stale, {} judged", hits - hits_, stale - stale_, judged - judged_);
        hits_ = hits, stale_ = stale, judged_ = judged;
        return text;
    }

  private:
    std::uint64_t hits_ = 0, stale_ = 0, judged_ = 0;
};

}  // namespace

TEST_CASE("memo: replies of a stateless list run it once, and keep a verdict of their own", "[memo]") {
    for (const bool v6 : {false, true}) {
        for (const std::string& list : {kBothWays, kOutOnly}) {
            INFO((v6 ? "IPv6, " : "IPv4, ") << list);
            const char* reply = list == kBothWays ? "passes" : "acl_deny";
            ReplyRig rig(stateless_config(list));
            rig.v6 = v6;
            for (int i = 0; i < 4; ++i) {
                CHECK(rig.send(false) == "passes");
                CHECK(rig.send(true) == reply);
            }
            CHECK(rig.memo() == "6 hits, 0 stale, 2 judged");
            CHECK(rig.hits_of(0) == 4);
            CHECK(rig.hits_of(1) == 4);
            CHECK(rig.runner.worker->outcomes.size() == 1);  // both verdicts are one value
        }
    }
}

TEST_CASE("memo: a reply that rules see differently is judged alone, and the memo stays", "[memo]") {
    ReplyRig rig(stateless_config("rules: [{action: deny, dscp: ef}, {action: permit, proto: udp}]"));
    CHECK(rig.send(false) == "passes");
    CHECK(rig.send(true) == "passes");
    rig.memo();
    CHECK(rig.send(true, 0xb8) == "acl_deny");
    CHECK(rig.send(true, 0x20) == "passes");
    CHECK(rig.send(true) == "passes");
    CHECK(rig.memo() == "1 hits, 0 stale, 2 judged");
}

TEST_CASE("memo: after a reload each direction of a stateless session is judged by its own first packet", "[memo]") {
    for (const bool reply_first : {false, true}) {
        INFO(reply_first);
        ReplyRig rig(stateless_config(kBothWays));
        for (const bool reply : {false, true, false, true}) CHECK(rig.send(reply) == "passes");
        rig.memo();
        rig.snapshot = rig.builder.build(stateless_config(kOutOnly));
        for (int i = 0; i < 3; ++i) {
            for (const bool reply : {reply_first, !reply_first})
                CHECK(rig.send(reply) == (reply ? "acl_deny" : "passes"));
        }
        // Who comes second finds a memo of this generation without its direction.
        CHECK(rig.memo() == (reply_first ? "4 hits, 2 stale, 0 judged" : "4 hits, 1 stale, 1 judged"));
        CHECK(rig.hits_of(1) == 3);
    }
}

TEST_CASE("memo: a list that turns stateful has the session's verdict for replies as well", "[memo]") {
    for (const std::string policy : {"revalidate", "keep"}) {
        const std::string sessions = "sessions: {on_policy_change: " + policy + "}\n";
        ReplyRig rig(stateless_config(kOutOnly, sessions));
        CHECK(rig.send(false) == "passes");
        CHECK(rig.send(true) == "acl_deny");
        // The memo of this generation knows replies alone.
        std::string renamed = kOutOnly;
        renamed.replace(renamed.find("back"), 4, "gone");
        rig.snapshot = rig.builder.build(stateless_config(renamed, sessions));
        CHECK(rig.send(true) == "acl_deny");
        std::string stateful = stateless_config("stateful: true, " + kOutOnly, sessions);
        stateful.replace(stateful.find("sessions: cache"), 15, "sessions: track");
        rig.snapshot = rig.builder.build(stateful);
        for (const bool reply : {true, true, false, true}) CHECK(rig.send(reply) == "passes");
        CHECK(rig.hits_of(1) == 0);
    }
}

TEST_CASE("memo: where no index is left for both verdicts replies run the list, rightly", "[memo]") {
    ReplyRig rig(stateless_config(kOutOnly));
    rig.runner.worker->outcomes = session::OutcomeTable(1);  // half of which is none
    CHECK(rig.send(false) == "passes");
    for (int i = 0; i < 3; ++i) CHECK(rig.send(true) == "acl_deny");
    CHECK(rig.runner.worker->memo.bypass_outcome_full.read() == 3);
    CHECK(rig.send(false) == "passes");
    CHECK(rig.runner.worker->memo.hits.read() == 1);
    CHECK(rig.hits_of(0) == 2);
    CHECK(rig.hits_of(1) == 3);
}

TEST_CASE("memo: a check finds a wrong verdict on replies, and puts it right", "[memo]") {
    ReplyRig rig(stateless_config(kBothWays));
    rig.snapshot->shadow_check = 1;
    for (const bool reply : {false, true, true}) CHECK(rig.send(reply) == "passes");
    const pipeline::MemoCounters& m = rig.runner.worker->memo;
    CHECK(m.shadow_checked.read() == 1);
    CHECK(m.shadow_mismatch.read() == 0);
    session::Table& sessions = *rig.runner.worker->sessions;
    const std::uint16_t generation = rig.snapshot->tenants[rig.builder.tenant("red")].policy_generation;
    const std::uint64_t fields = rig.runner.worker->outcomes.reverse_fields(sessions.hot(0).outcome);
    SECTION("verdict") {
        CHECK(sessions.memoize_reverse(0, rig.runner.worker->outcomes, {.permit = false}, fields, generation,
                                       sessions.cold(0).reverse_rule));
    }
    SECTION("rule") { sessions.cold(0).reverse_rule = 5; }
    SECTION("next hop") { sessions.hot(0).next_hop[1] = 1; }
    CHECK(rig.send(true) == "passes");
    CHECK(m.shadow_mismatch.read() == 1);
    CHECK(rig.send(true) == "passes");
    CHECK(m.shadow_mismatch.read() == 1);
}

TEST_CASE("memo: a session and its reply in one burst are both counted for their own rules", "[memo]") {
    ReplyRig rig(stateless_config(kBothWays));
    rig.runner.run(*rig.snapshot, {rig.packet(false), rig.packet(true), rig.packet(true), rig.packet(false)});
    rig.runner.run(*rig.snapshot, {rig.packet(true), rig.packet(true), rig.packet(false)});
    CHECK(rig.memo() == "1 hits, 0 stale, 6 judged");
    CHECK(rig.send(true) == "passes");
    CHECK(rig.memo() == "1 hits, 0 stale, 0 judged");
    CHECK(rig.hits_of(0) == 3);
    CHECK(rig.hits_of(1) == 5);
}

}  // namespace cachewire
