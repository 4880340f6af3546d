// SPDX-License-Identifier: BSD-3-Clause
#include "acl/linear.h"
#include "pipeline/stage_rig.h"
#include "pipeline/stages/3_install.h"
#include "pipeline/stages/4_acl.h"
#include "support/catch.h"
#include "support/random.h"

namespace cachewire::pipeline {

namespace {

net::FlowKey key_to(std::uint16_t tenant, std::uint16_t dst_port, bool v6 = false) {
    net::FlowKey key;
    key.tenant = tenant;
    key.src = net::Address::from_v4(0x0a000001);
    key.dst = net::Address::from_v4(0x0a000002);
    if (v6) key.src.bytes = {0x20, 1, 0xd, 0xb8, 1}, key.dst.bytes = {0x20, 1, 0xd, 0xb8, 2};
    key.src_port_be = __builtin_bswap16(40000);
    key.dst_port_be = __builtin_bswap16(dst_port);
    key.proto = 17;
    key.match_flags = net::kL4Known;
    return key;
}

net::FlowKey reply_to(net::FlowKey key) {
    std::swap(key.src, key.dst);
    std::swap(key.src_port_be, key.dst_port_be);
    return key;
}

acl::Rule port_rule(acl::Action action, std::uint16_t port) {
    acl::Rule rule;
    rule.action = action;
    rule.dst_ports = {port, port};
    return rule;
}

struct AclRig : test::StageRig {
    const acl::Classifier* add_list(std::vector<acl::Rule> rules, acl::Action by_default) {
        acl::List list;
        list.name = "list" + std::to_string(snapshot.classifiers.size());
        list.default_action = by_default;
        list.rules = std::move(rules);
        snapshot.classifiers.push_back(acl::Classifier::build(std::move(list), -1));
        return snapshot.classifiers.back().get();
    }
    void set_list(std::uint16_t tenant, const acl::Classifier* list) {
        snapshot.tenants[tenant].acl = list;
        ++snapshot.tenants[tenant].policy_generation;
    }
    void track(std::uint16_t tenant, bool stateful) {
        snapshot.tenants[tenant].sessions = SessionMode::track;
        snapshot.tenants[tenant].stateful = stateful;
    }
    // A burst from the session stage's look-up to the installation of what is new.
    void pass(const std::vector<net::FlowKey>& keys) {
        begin(keys);
        run<stages::Session>();
        run<stages::Acl>();
        run<stages::Install>();
    }
    std::uint32_t session_of(const net::FlowKey& key) {
        const net::FlowKey* pointer = &key;
        const std::uint32_t hash = net::flow_hash(key, snapshot.hash_seed);
        session::Found found;
        worker->sessions->lookup({&pointer, 1}, {&hash, 1}, {&found, 1});
        return found.index;
    }
    const session::HotEntry& hot(const net::FlowKey& key) { return worker->sessions->hot(session_of(key)); }
};

}  // namespace

TEST_CASE("acl stage: rules permit and deny, defaults decide the rest, each with its own reason", "[pipeline]") {
    AclRig rig;
    rig.set_list(
        1, rig.add_list({port_rule(acl::Action::deny, 23), port_rule(acl::Action::permit, 80)}, acl::Action::deny));
    rig.set_list(2, rig.add_list({port_rule(acl::Action::deny, 23)}, acl::Action::permit));
    struct Case {
        std::uint16_t tenant, port;
        const char* fate;
        std::uint32_t rule;
    };
    const std::vector<Case> cases = {
        {1, 23, "acl_deny", 0},          {2, 23, "acl_deny", 0},   {1, 80, "live", 1}, {2, 80, "live", kNoRule},
        {1, 81, "acl_default", kNoRule}, {3, 23, "live", kNoRule}, {1, 80, "live", 1}};
    for (const bool v6 : {false, true}) {
        std::vector<net::FlowKey> keys;
        for (const Case& c : cases) keys.push_back(key_to(c.tenant, c.port, v6));
        rig.begin(keys);
        rig.run<stages::Acl>();
        for (unsigned i = 0; i < cases.size(); ++i) {
            INFO("lane " << i << (v6 ? " v6" : " v4"));
            const auto l = static_cast<Burst::LaneIndex>(i);
            CHECK(rig.fate(i) == cases[i].fate);
            CHECK(rig.worker->burst.lane(l).rule == cases[i].rule);
            CHECK(rig.worker->burst.lane(l).policer == kNoPolicer);
        }
    }
}

TEST_CASE("acl stage: bursts of any size over tenants, families and lists are judged as by the linear walk",
          "[pipeline]") {
    AclRig rig;
    auto engine = test::random_engine();
    const auto below = [&engine](unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(engine); };
    const auto* shared =
        rig.add_list({port_rule(acl::Action::permit, 1), port_rule(acl::Action::deny, 2)}, acl::Action::deny);
    rig.set_list(0, shared);
    rig.set_list(
        1, rig.add_list({port_rule(acl::Action::deny, 1), port_rule(acl::Action::permit, 3)}, acl::Action::permit));
    rig.set_list(3, shared);
    for (unsigned size = 1; size <= kMaxLanes; ++size) {
        std::vector<net::FlowKey> keys;
        for (unsigned i = 0; i < size; ++i) {
            keys.push_back(
                key_to(static_cast<std::uint16_t>(below(4)), static_cast<std::uint16_t>(below(4)), below(2) != 0));
        }
        rig.begin(keys);
        rig.run<stages::Acl>();
        for (unsigned i = 0; i < size; ++i) {
            const auto* list = rig.snapshot.tenants[keys[i].tenant].acl;
            const acl::Verdict verdict =
                list ? acl::classify_linear(list->list(), keys[i]) : acl::Verdict{kNoRule, acl::Action::permit};
            const char* denied = verdict.rule == kNoRule ? "acl_default" : "acl_deny";
            INFO("lane " << i << " of " << size);
            REQUIRE(rig.fate(i) == (verdict.action == acl::Action::permit ? "live" : denied));
        }
    }
}

TEST_CASE("acl stage: a fresh memo is not judged again", "[pipeline]") {
    AclRig rig;
    rig.set_list(1, rig.add_list({}, acl::Action::deny));
    rig.begin({key_to(1, 80), key_to(1, 80)});
    rig.worker->burst.lane(1).flags = kLaneVerdictKnown;
    rig.worker->burst.lane(1).rule = 77;
    rig.run<stages::Acl>();
    CHECK(rig.fate(0) == "acl_default");
    CHECK(rig.fate(1) == "live");
    CHECK(rig.worker->burst.lane(1).rule == 77);
}

TEST_CASE("acl stage: after a change of policy a session is judged once, kept when denied, and lives again later",
          "[pipeline]") {
    AclRig rig;
    rig.track(1, true);
    const auto* permits = rig.add_list({port_rule(acl::Action::permit, 80)}, acl::Action::deny);
    const auto* denies = rig.add_list({port_rule(acl::Action::deny, 80)}, acl::Action::permit);
    const auto* nothing = rig.add_list({}, acl::Action::deny);
    const net::FlowKey key = key_to(1, 80);
    rig.set_list(1, permits);
    rig.pass({key});
    const std::uint32_t index = rig.session_of(key);
    REQUIRE(index != session::kNone);

    struct Case {
        const acl::Classifier* list;
        const char* fate;
        std::uint32_t rule;
    };
    for (const auto& c : {Case{denies, "acl_deny", 0}, Case{permits, "live", 0}, Case{nothing, "acl_default", kNoRule},
                          Case{nullptr, "live", kNoRule}}) {
        rig.set_list(1, c.list);
        for (unsigned round = 0; round < 3; ++round) {  // stale in the first, by the memo in the others
            INFO((c.list ? c.list->list().name : "no list") << ", round " << round);
            // The reply is judged by the session's forward key: no list here permits it by its own.
            rig.pass({key, reply_to(key), key});
            for (unsigned i = 0; i < 3; ++i) CHECK(rig.fate(i) == c.fate);
            REQUIRE(rig.session_of(key) == index);
            CHECK(rig.hot(key).policy_generation == rig.snapshot.tenants[1].policy_generation);
            CHECK(rig.worker->outcomes[rig.hot(key).outcome].permit == (std::string(c.fate) == "live"));
            CHECK(rig.worker->sessions->cold(index).rule == c.rule);
            // One session, one reference: renewing leaks none.
            CHECK(rig.worker->outcomes.size() == 1);
            CHECK(rig.worker->outcomes.references(rig.hot(key).outcome) == 1);
        }
    }
}

TEST_CASE("acl stage: a stale session is judged by its first packet's fields, not by the packet at hand",
          "[pipeline]") {
    AclRig rig;
    rig.track(1, true);
    acl::Rule from_three;
    from_three.action = acl::Action::permit;
    from_three.in_interfaces = {3};
    from_three.dscp = 10;
    const auto* list = rig.add_list({from_three}, acl::Action::deny);
    rig.set_list(1, list);
    net::FlowKey first = key_to(1, 80);
    first.in_interface_be = __builtin_bswap16(3);
    first.dscp = 10;
    rig.pass({first});
    REQUIRE(rig.fate(0) == "live");

    net::FlowKey later = first;
    later.in_interface_be = __builtin_bswap16(4);
    later.dscp = 0;
    rig.set_list(1, list);
    rig.pass({later, reply_to(later)});
    CHECK(rig.fate(0) == "live");
    CHECK(rig.fate(1) == "live");
}

TEST_CASE("acl stage: replies under a list without state are judged by their own key and renew their half of the memo",
          "[pipeline]") {
    AclRig rig;
    rig.track(1, false);
    const auto* list = rig.add_list({port_rule(acl::Action::permit, 80)}, acl::Action::deny);
    rig.set_list(1, list);
    const net::FlowKey key = key_to(1, 80);
    rig.pass({key});
    REQUIRE(rig.fate(0) == "live");
    rig.set_list(1, list);
    const auto verdicts = [&] { return rig.worker->outcomes.verdicts(rig.hot(key).outcome); };
    rig.pass({reply_to(key)});
    CHECK(rig.fate(0) == "acl_default");
    CHECK(rig.hot(key).policy_generation == rig.snapshot.tenants[1].policy_generation);
    CHECK((verdicts().knows_reverse && !verdicts().reverse.permit && !verdicts().knows_forward));
    rig.pass({key});
    CHECK(rig.fate(0) == "live");
    CHECK((verdicts().knows_forward && verdicts().forward.permit && verdicts().knows_reverse));
    CHECK(rig.worker->outcomes.size() == 1);
}

TEST_CASE("acl stage: denied packets install no session and hold no outcome", "[pipeline]") {
    AclRig rig;
    rig.track(1, true);
    rig.set_list(1, rig.add_list({}, acl::Action::deny));
    rig.pass({key_to(1, 80), key_to(1, 81), key_to(1, 82)});
    CHECK(rig.worker->sessions->stats().active == 0);
    CHECK(rig.worker->outcomes.size() == 0);
}

}  // namespace cachewire::pipeline
