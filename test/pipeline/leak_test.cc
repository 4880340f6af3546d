// SPDX-License-Identifier: BSD-3-Clause
// Sessions whose route leads to another tenant: replies come in there, and find the session all the same.
#include "pipeline/stage_rig.h"
#include "pipeline/stages/3_install.h"
#include "session/keys.h"
#include "support/catch.h"

using namespace cachewire;
using namespace cachewire::pipeline;

namespace {

constexpr std::uint16_t kRed = 1, kUplink = 2, kGreen = 3;
constexpr std::uint16_t kUp = 1, kHome = 2;  // next hops: the uplink's, red's own

struct LeakRig : test::StageRig {
    LeakRig() {
        for (const std::uint16_t tenant : {kRed, kUplink, kGreen})
            snapshot.tenants[tenant] = {.sessions = SessionMode::track,
                                        .stateful = true,
                                        .policy_generation = static_cast<std::uint16_t>(5 + tenant),
                                        .route_generation = static_cast<std::uint16_t>(9 + tenant)};
        worker->tenants = std::vector<TenantCounters>(4);
        snapshot.leaks = true;
        snapshot.next_hops.resize(3);
        snapshot.next_hops[kUp].tenant = kUplink;
        snapshot.next_hops[kHome].tenant = kRed;
    }
    Lane& lane(unsigned i) { return worker->burst.lane(static_cast<Burst::LaneIndex>(i)); }
    // Both halves; in between everything is permitted and goes to `next_hop`.
    void pass(const net::FlowKey& key, std::uint16_t next_hop) {
        begin({key});
        run<stages::Session>();
        for (const auto i : worker->burst.live())
            if ((lane(i).flags & kLaneRouteKnown) == 0) lane(i).next_hop = next_hop;
        run<stages::Install>();
    }
    session::Table::Stats stats() const { return worker->sessions->stats(); }
};

net::FlowKey request(std::uint16_t tenant) { return test::key_v4(1, 1024, 2, 53, test::kUdp, tenant); }
net::FlowKey reply(std::uint16_t tenant) { return test::reversed(request(tenant)); }

}  // namespace

TEST_CASE("leak: a reply by the other tenant finds the session and is its tenant's", "[pipeline]") {
    LeakRig rig;
    rig.pass(request(kRed), kUp);
    REQUIRE(rig.fate(0) == "live");
    const std::uint32_t session = rig.lane(0).session;
    CHECK(rig.stats().active == 1);
    CHECK(rig.stats().companions == 1);
    rig.pass(reply(kUplink), kHome);
    REQUIRE(rig.fate(0) == "live");
    CHECK(rig.lane(0).session == session);
    CHECK(rig.lane(0).tenant == kRed);
    CHECK((rig.lane(0).flags & kLaneReverse) != 0);
    CHECK(rig.stats().active == 1);
    CHECK(rig.worker->tenants[kRed].leaked_in.read() == 1);
    CHECK(rig.worker->tenants[kUplink].leaked_in.read() == 0);
    rig.pass(request(kRed), kUp);
    CHECK(rig.lane(0).session == session);
    CHECK((rig.lane(0).flags & kLaneReverse) == 0);
}

TEST_CASE("leak: replies come home after a reload that leaks no more", "[pipeline]") {
    LeakRig rig;
    rig.pass(request(kRed), kUp);
    rig.snapshot.leaks = false;
    rig.pass(reply(kUplink), kHome);
    CHECK(rig.lane(0).tenant == kRed);
    CHECK(rig.worker->tenants[kRed].leaked_in.read() == 1);
}

TEST_CASE("leak: the session of a tenant that a reload took away is nobody's", "[pipeline]") {
    for (const OnPolicyChange change : {OnPolicyChange::revalidate, OnPolicyChange::kill}) {
        LeakRig rig;
        rig.pass(request(kRed), kUp);
        rig.snapshot.tenants[kRed] = {};
        rig.snapshot.on_policy_change = change;
        rig.pass(reply(kUplink), kHome);
        CHECK(rig.lane(0).tenant == kUplink);
        // Killed, the tuple is free for the uplink's own session; else it is taken until the old one's time-out.
        const std::uint32_t session = rig.lane(0).session;
        if (change == OnPolicyChange::kill) {
            REQUIRE(session != kNoSession);
            CHECK(rig.worker->sessions->hot(session).tenant == kUplink);
        } else {
            CHECK(session == kNoSession);
        }
        CHECK(rig.worker->tenants[kRed].leaked_in.read() == 0);
    }
}

TEST_CASE("leak: the same tuple of other tenants is another matter", "[pipeline]") {
    LeakRig rig;
    rig.pass(request(kRed), kUp);
    const std::uint32_t session = rig.lane(0).session;
    rig.pass(reply(kGreen), kHome);
    CHECK(rig.lane(0).session != session);
    CHECK(rig.lane(0).tenant == kGreen);
    // Green leaks to the same uplink with the same addresses: its replies could not be told from red's.
    LeakRig two;
    two.pass(request(kRed), kUp);
    two.pass(request(kGreen), kUp);
    CHECK(two.fate(0) == "leak_conflict");
    CHECK(two.stats().active == 1);
    CHECK(two.stats().companions == 1);
    two.pass(reply(kUplink), kHome);
    CHECK(two.lane(0).tenant == kRed);
}

TEST_CASE("leak: a route within the tenant has no second tuple", "[pipeline]") {
    LeakRig rig;
    rig.pass(request(kRed), kHome);
    CHECK(rig.fate(0) == "live");
    CHECK(rig.stats().companions == 0);
}

TEST_CASE("leak: a policy that kills spares sessions when only routes have changed", "[pipeline]") {
    // As with a list that looks at the egress: its policy generation moves with the routes.
    LeakRig rig;
    rig.snapshot.on_policy_change = OnPolicyChange::kill;
    rig.pass(request(kRed), kUp);
    Tenant& red = rig.snapshot.tenants[kRed];
    ++red.policy_generation;
    rig.begin({request(kRed)});
    rig.run<stages::Session>();
    CHECK(rig.stats().active == 1);
    CHECK((rig.lane(0).flags & kLaneStale) != 0);
    red.list_generation = red.policy_generation;
    rig.begin({request(kRed)});
    rig.run<stages::Session>();
    CHECK(rig.stats().active == 0);
}

TEST_CASE("leak: a new policy that kills looks at the session's tenant", "[pipeline]") {
    LeakRig rig;
    rig.snapshot.on_policy_change = OnPolicyChange::kill;
    rig.pass(request(kRed), kUp);
    const std::uint32_t session = rig.lane(0).session;
    rig.pass(reply(kUplink), kHome);
    CHECK(rig.lane(0).session == session);  // the uplink's generation is another one, and not its own
    rig.snapshot.tenants[kRed].list_generation = ++rig.snapshot.tenants[kRed].policy_generation;
    rig.begin({reply(kUplink)});
    rig.run<stages::Session>();
    CHECK(rig.stats().active == 0);
}
