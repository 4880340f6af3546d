// SPDX-License-Identifier: BSD-3-Clause
// The session stage where sessions are refused, end early, or may begin in the middle.
#include <string>
#include <vector>

#include "pipeline/expiry.h"
#include "pipeline/stage_rig.h"
#include "pipeline/stages/3_install.h"
#include "session/keys.h"
#include "support/catch.h"

using namespace cachewire;
using namespace cachewire::pipeline;
using session::State;

namespace {

using namespace test::tcp_flags;
using test::kCache;
using test::kTrack;
using test::tcp;
using test::udp;
constexpr std::uint16_t kMidstream = 3;  // as kTrack

const net::Address kRouter = net::Address::from_v4(0x0a000001);

// The router's own address, and no route.
struct OwnAddress : route::FibView {
    void lookup(std::span<const net::Address* const> destinations,
                std::span<std::uint16_t> next_hops) const noexcept override {
        for (std::size_t i = 0; i < destinations.size(); ++i) next_hops[i] = *destinations[i] == kRouter ? 1 : 0;
    }
};

struct LimitsRig : test::StageRig {
    OwnAddress fib;

    LimitsRig() {
        snapshot.tenants[kTrack] = {
            .sessions = SessionMode::track, .stateful = true, .policy_generation = 5, .route_generation = 9};
        snapshot.tenants[kCache] = {.sessions = SessionMode::cache, .policy_generation = 5, .route_generation = 9};
        snapshot.tenants[kMidstream] = snapshot.tenants[kTrack];
        snapshot.tenants[kMidstream].midstream = true;
        snapshot.next_hops.resize(12);
        snapshot.next_hops[1].kind = route::NextHopKind::local;
        for (pipeline::Tenant& tenant : snapshot.tenants) tenant.fib = &fib;
    }
    // One burst; a list that permits and a route stand in between.
    void pass(const std::vector<net::FlowKey>& keys) {
        begin(keys);
        run<stages::Session>();
        for (const auto i : worker->burst.live()) worker->burst.lane(i).next_hop = 11;
        run<stages::Install>();
    }
    std::string pass_one(const net::FlowKey& key) {
        pass({key});
        const std::string result = fate(0);
        worker->burst.clear_dropped();
        return result;
    }
    Lane& lane(unsigned i) { return worker->burst.lane(static_cast<Burst::LaneIndex>(i)); }
    session::Table& sessions() { return *worker->sessions; }
    State state(const net::FlowKey& key) {
        const session::Found found = test::look_up(sessions(), key, net::flow_hash(key, snapshot.hash_seed));
        return found.index == session::kNone ? State::free : sessions().hot(found.index).state();
    }
    void handshake(const net::FlowKey& key) {
        pass({with(key, S)});
        pass({with(test::reversed(key), S | A)});
        pass({with(key, A)});
        REQUIRE(state(key) == State::established);
    }
    static net::FlowKey with(net::FlowKey key, std::uint8_t flags) {
        key.tcp_flags = flags;
        return key;
    }
};

}  // namespace

TEST_CASE("session limits: over its quota a stateful tenant's packet is dropped by name, a caching one's passes",
          "[pipeline]") {
    LimitsRig rig;
    rig.snapshot.tenants[kTrack].quota.sessions = 2;
    rig.snapshot.tenants[kCache].quota.sessions = 1;
    rig.pass({udp(kTrack, 1), udp(kTrack, 2), udp(kTrack, 3), udp(kTrack, 1), udp(kCache, 1), udp(kCache, 2)});
    const char* const fates[] = {"live", "live", "session_quota", "live", "live", "live"};
    for (unsigned i = 0; i < 6; ++i) CHECK(rig.fate(i) == fates[i]);
    CHECK(rig.lane(4).session != kNoSession);
    CHECK(rig.lane(5).session == kNoSession);
    CHECK(rig.sessions().use(kTrack).quota_denied.read() == 1);
    CHECK(rig.sessions().use(kCache).quota_denied.read() == 1);
}

// Neither the list, which might name another reason, nor the route; only what is for the router itself goes on.
TEST_CASE("session limits: what a quota refuses asks neither list nor route", "[pipeline]") {
    LimitsRig rig;
    rig.snapshot.tenants[kTrack].quota.sessions = 1;
    CHECK(rig.pass_one(udp(kTrack, 1)) == "live");
    net::FlowKey to_router = udp(kTrack, 2);
    to_router.dst = kRouter;
    rig.begin({udp(kTrack, 2), udp(kTrack, 1), to_router, tcp(kTrack, S), udp(kCache, 2)});
    rig.run<stages::Session>();
    const char* const fates[] = {"session_quota", "live", "live", "session_quota", "live"};
    for (unsigned i = 0; i < 5; ++i) CHECK(rig.fate(i) == fates[i]);
    CHECK(rig.sessions().use(kTrack).quota_denied.read() == 2);
}

TEST_CASE("session limits: new sessions a second", "[pipeline]") {
    LimitsRig rig;
    rig.snapshot.tenants[kTrack].quota.new_per_second = 20;  // two at once
    unsigned created = 0;
    for (std::uint32_t i = 0; i < 1000; ++i) {
        rig.worker->now_tsc += test::kRigHz / 100;
        created += rig.pass_one(udp(kTrack, i)) == "live" ? 1 : 0;
    }
    CHECK(created >= 200);
    CHECK(created <= 202);
}

TEST_CASE("session limits: midstream", "[pipeline]") {
    struct Case {
        std::string what;
        std::uint8_t flags;
        std::string deny, allow;
        bool installs;
    };
    const Case cases[] = {
        {"data", A, "session_state", "live", true},
        {"the server's SYN and ACK", S | A, "session_state", "live", true},
        {"a late FIN passes and begins nothing", F | A, "session_state", "live", false},
        {"a late RST passes and begins nothing", R | A, "session_state", "live", false},
        {"no ACK", 0, "session_state", "session_state", false},
        {"SYN", S, "live", "live", true},
    };
    for (const Case& c : cases) {
        INFO(c.what);
        LimitsRig rig;
        CHECK(rig.pass_one(tcp(kTrack, c.flags)) == c.deny);
        CHECK(rig.pass_one(tcp(kMidstream, c.flags)) == c.allow);
        CHECK(rig.sessions().use(kMidstream).active.read() == (c.installs ? 1 : 0));
    }
}

TEST_CASE("session limits: a cache has no state rules, whichever direction comes by and in whatever state",
          "[pipeline]") {
    LimitsRig rig;
    // Replies only, as on one of two asymmetric paths; then every set of flags in any order.
    for (const std::uint8_t flags : {std::uint8_t(S | A), A, std::uint8_t(F | A), A, R, A, S, std::uint8_t(S | F),
                                     std::uint8_t{0}, std::uint8_t{0xff}}) {
        INFO(unsigned{flags});
        CHECK(rig.pass_one(test::reversed(tcp(kCache, flags))) == "live");
    }
    CHECK(rig.sessions().use(kCache).active.read() == 1);
    // The other direction as well, judged by its own key: the list there is not stateful.
    CHECK(rig.pass_one(tcp(kCache, A)) == "live");
    CHECK((rig.lane(0).flags & kLaneVerdictKnown) == 0);
    CHECK((rig.lane(0).flags & kLaneReverse) != 0);
}

TEST_CASE("session limits: two forged packets do not turn an established session round", "[pipeline]") {
    LimitsRig rig;
    const net::FlowKey client = tcp(kTrack, 0);
    rig.handshake(client);
    CHECK(rig.pass_one(LimitsRig::with(test::reversed(client), R)) == "live");
    CHECK(rig.pass_one(LimitsRig::with(test::reversed(client), S)) == "live");
    CHECK(rig.state(client) == State::reset_reverse);
    CHECK(rig.pass_one(LimitsRig::with(client, A)) == "live");
    CHECK((rig.lane(0).flags & kLaneReverse) == 0);
    CHECK((rig.lane(0).flags & kLaneVerdictKnown) != 0);
    CHECK(rig.pass_one(LimitsRig::with(test::reversed(client), A)) == "live");
    CHECK(rig.state(client) == State::established);
    // The client itself may begin again after a RST.
    rig.pass({LimitsRig::with(client, R)});
    rig.pass({LimitsRig::with(client, S)});
    CHECK(rig.state(client) == State::fresh);
}

TEST_CASE("session limits: a 5-tuple in TIME_WAIT begins anew, a late FIN does not", "[pipeline]") {
    LimitsRig rig;
    const net::FlowKey client = tcp(kTrack, 0);
    rig.handshake(client);
    rig.pass({LimitsRig::with(client, F | A)});
    rig.pass({LimitsRig::with(test::reversed(client), F | A)});
    CHECK(rig.state(client) == State::time_wait);
    CHECK(rig.pass_one(LimitsRig::with(test::reversed(client), F | A)) == "live");
    CHECK(rig.state(client) == State::time_wait);
    CHECK(rig.pass_one(LimitsRig::with(client, S)) == "live");
    CHECK(rig.state(client) == State::fresh);
    rig.handshake(client);
    CHECK(rig.sessions().use(kTrack).created.read() == 2);
    CHECK(rig.sessions().use(kTrack).closed.read() == 1);
    // Once the session is gone, a late FIN finds nothing and begins nothing.
    rig.sessions().erase(0, rig.worker->outcomes);
    CHECK(rig.pass_one(LimitsRig::with(client, F | A)) == "session_state");
}

TEST_CASE("session limits: a flood costs the flooding tenant its own unconfirmed sessions", "[pipeline]") {
    LimitsRig rig;
    std::vector<net::FlowKey> established;
    for (std::uint32_t i = 0; i < 200; ++i) {
        established.push_back(tcp(kTrack, A, 1'000'000 + i));
        rig.handshake(established.back());
    }
    std::uint64_t refused = 0;
    for (std::uint32_t n = 0; n < 20'000; n += 32) {
        std::vector<net::FlowKey> burst;
        for (std::uint32_t i = 0; i < 30; ++i) burst.push_back(udp(kMidstream, n + i));
        // Among them the established ones, which must keep their sessions and their memo.
        burst.push_back(established[n / 32 % 200]);
        burst.push_back(test::reversed(established[n / 32 * 7 % 200]));
        rig.pass(burst);
        for (unsigned i = 0; i < 30; ++i) refused += rig.fate(i) != "live" ? 1 : 0;
        REQUIRE(rig.fate(30) == "live");
        REQUIRE(rig.fate(31) == "live");
        REQUIRE((rig.lane(30).flags & kLaneVerdictKnown) != 0);
        REQUIRE((rig.lane(31).flags & kLaneVerdictKnown) != 0);
        rig.worker->burst.clear_dropped();
    }
    CHECK(refused == 0);
    CHECK(rig.sessions().use(kTrack).evicted.read() == 0);
    CHECK(rig.sessions().use(kMidstream).evicted.read() > 10'000);
    for (const auto& key : established) REQUIRE(rig.state(key) == State::established);
}

TEST_CASE("session limits: time-outs and the mark follow the snapshot", "[pipeline]") {
    LimitsRig rig;
    rig.pass({udp(kTrack)});
    const std::uint64_t later = rig.worker->now_tsc + 60 * test::kRigHz;
    rig.snapshot.generation = 2;
    rig.snapshot.sessions.timeouts.fresh = 3600;
    rig.snapshot.sessions.high_watermark_percent = 1;
    CHECK(expire_sessions(*rig.worker, rig.snapshot, later, 100) == 0);
    for (std::uint32_t i = 0; i < 20; ++i) rig.pass({udp(kTrack, 100 + i)});
    CHECK(rig.sessions().use(kTrack).active.read() <= 11);
    rig.snapshot.generation = 3;
    rig.snapshot.sessions.timeouts.fresh = 5;
    CHECK(expire_sessions(*rig.worker, rig.snapshot, later, 100) > 0);
}
