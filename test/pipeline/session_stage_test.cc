// SPDX-License-Identifier: BSD-3-Clause
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
constexpr std::uint16_t kNone = 3;  // as kTrack and kCache
constexpr std::uint16_t kForwardHop = 11, kReverseHop = 12;

struct SessionRig : test::StageRig {
    SessionRig() {
        snapshot.tenants[kTrack] = {
            .sessions = SessionMode::track, .stateful = true, .policy_generation = 5, .route_generation = 9};
        snapshot.tenants[kCache] = {.sessions = SessionMode::cache, .policy_generation = 5, .route_generation = 9};
        snapshot.tenants[kNone] = {.sessions = SessionMode::none};
    }
    Lane& lane(unsigned i) { return worker->burst.lane(static_cast<Burst::LaneIndex>(i)); }
    bool has(unsigned i, std::uint16_t flag) { return (lane(i).flags & flag) != 0; }
    session::HotEntry& hot(unsigned i) { return worker->sessions->hot(lane(i).session); }

    // In all: packets that their own rule judges are not left in the hot entry.
    std::uint64_t packets(std::uint32_t index, unsigned direction) {
        worker->sessions->flush(index);
        return worker->sessions->cold(index).packets[direction];
    }

    // The stages in between, as far as these two see them.
    void permit_and_route(std::uint16_t next_hop = kForwardHop) {
        for (const auto i : worker->burst.live()) {
            Lane& l = worker->burst.lane(i);
            if ((l.flags & kLaneVerdictKnown) == 0) {
                l.rule = 3;
                l.policer = 21;
                l.traffic_class = 4;
            }
            if ((l.flags & kLaneRouteKnown) == 0) l.next_hop = next_hop;
        }
    }
    // One burst through both halves.
    void pass(const std::vector<net::FlowKey>& keys, std::uint16_t next_hop = kForwardHop) {
        begin(keys);
        run<stages::Session>();
        permit_and_route(next_hop);
        run<stages::Install>();
    }
    std::uint64_t active() const { return worker->sessions->stats().active; }
};

net::FlowKey with_match_flags(net::FlowKey key, std::uint8_t flags) {
    key.match_flags |= flags;
    return key;
}
net::FlowKey without_l4(net::FlowKey key) {
    key.match_flags &= static_cast<std::uint8_t>(~net::kL4Known);
    return key;
}

}  // namespace

TEST_CASE("session stage: what a packet without a session becomes", "[pipeline]") {
    struct Case {
        std::string what;
        net::FlowKey key;
        std::uint16_t flags;
        std::string fate;
        bool installs;
    };
    const Case cases[] = {
        {"tracked TCP begins with a SYN", tcp(kTrack, S), 0, "live", true},
        {"or with ECN's bits beside it", tcp(kTrack, S | 0xc0), 0, "live", true},
        {"tracked TCP, no SYN", tcp(kTrack, A), 0, "session_state", false},
        {"tracked TCP, SYN and ACK", tcp(kTrack, S | A), 0, "session_state", false},
        {"tracked TCP, SYN and RST", tcp(kTrack, S | R), 0, "session_state", false},
        {"tracked TCP, SYN and FIN", tcp(kTrack, S | F), 0, "session_state", false},
        {"tracked TCP, no flag at all", tcp(kTrack, 0), 0, "session_state", false},
        {"tracked UDP", udp(kTrack), 0, "live", true},
        {"cached TCP from its middle", tcp(kCache, A), 0, "live", true},
        {"tenant without sessions", tcp(kNone, A), 0, "live", false},
        {"UDP with IP options", with_match_flags(udp(kTrack), net::kHasOptions), 0, "live", true},
        {"a protocol without ports", without_l4(test::key_v4(1, 0, 2, 0, 47, kTrack)), 0, "live", true},
        {"ICMP echo", test::key_v4(1, 7, 2, 7, session::kProtoIcmp, kTrack), 0, "live", true},
    };
    for (const Case& c : cases) {
        INFO(c.what);
        SessionRig rig;
        rig.begin({c.key});
        rig.lane(0).flags = c.flags;
        rig.run<stages::Session>();
        CHECK(rig.fate(0) == c.fate);
        CHECK(rig.has(0, kLaneInstall) == c.installs);
        CHECK(rig.lane(0).session == kNoSession);
        CHECK_FALSE(rig.has(0, kLaneVerdictKnown | kLaneRouteKnown | kLaneStale | kLaneReverse));
        rig.permit_and_route();
        rig.run<stages::Install>();
        CHECK(rig.active() == (c.installs ? 1 : 0));
    }
}

// Fragments and ICMP errors need their bytes: test/control/fragment_test.cc and icmp_error_test.cc.
TEST_CASE("session stage: options and unknown protocols find their session and not its memo", "[pipeline]") {
    for (const net::FlowKey& key :
         {with_match_flags(udp(kTrack), net::kHasOptions), without_l4(test::key_v4(1, 0, 2, 0, 47, kTrack))}) {
        SessionRig rig;
        rig.pass({key});
        REQUIRE(rig.lane(0).session != kNoSession);
        CHECK(rig.hot(0).outcome == session::kNoOutcome);
        CHECK(rig.hot(0).policy_generation == 5);
        CHECK((rig.worker->sessions->cold(rig.lane(0).session).match_flags & ~net::kL4Known) == 0);
        rig.pass({key, test::reversed(key)});
        for (const unsigned i : {0u, 1u}) {
            CHECK(rig.lane(i).session != kNoSession);
            CHECK(rig.has(i, kLaneStale));
            CHECK_FALSE(rig.has(i, kLaneVerdictKnown | kLaneRouteKnown | kLaneInstall));
        }
        CHECK(rig.packets(rig.lane(0).session, 0) == 2);
        CHECK(rig.packets(rig.lane(0).session, 1) == 1);
        const MemoCounters& memo = rig.worker->memo;
        CHECK(memo.bypass_options.read() + memo.bypass_other.read() == 3);
        CHECK(memo.hits.read() + memo.misses.read() == 0);
    }
}

TEST_CASE("session stage: the second packet finds verdict and next hop in the session", "[pipeline]") {
    SessionRig rig;
    rig.pass({udp(kTrack)});
    const std::uint32_t index = rig.lane(0).session;
    REQUIRE(index != kNoSession);
    CHECK(rig.worker->sessions->cold(index).rule == 3);
    rig.begin({udp(kTrack)});
    rig.run<stages::Session>();
    CHECK(rig.lane(0).session == index);
    CHECK(rig.has(0, kLaneVerdictKnown));
    CHECK(rig.has(0, kLaneRouteKnown));
    CHECK_FALSE(rig.has(0, kLaneInstall));
    CHECK(rig.lane(0).policer == 21);
    CHECK(rig.lane(0).traffic_class == 4);
    CHECK(rig.lane(0).next_hop == kForwardHop);
    CHECK(rig.hot(0).packets[0] == 1);  // counted once it is permitted and routed
    rig.run<stages::Install>();
    CHECK(rig.hot(0).packets[0] == 2);
    CHECK(rig.hot(0).bytes[0] == 200);
}

TEST_CASE("session stage: a reply passes with its session where the list is stateful, and is judged alone where not",
          "[pipeline]") {
    for (const std::uint16_t tenant : {kTrack, kCache}) {
        INFO("tenant " << tenant);
        SessionRig rig;
        rig.pass({udp(tenant)});
        rig.begin({test::reversed(udp(tenant))});
        rig.run<stages::Session>();
        CHECK(rig.has(0, kLaneReverse));
        CHECK(rig.has(0, kLaneVerdictKnown) == (tenant == kTrack));
        CHECK_FALSE(rig.has(0, kLaneStale));
        CHECK_FALSE(rig.has(0, kLaneRouteKnown));  // nothing has gone this way yet
        rig.run<stages::Install>();
        CHECK(rig.packets(rig.lane(0).session, 1) == 1);
        CHECK(rig.hot(0).state() == State::established);
    }
}

TEST_CASE("session stage: generations decide what is fresh, by equality", "[pipeline]") {
    SessionRig rig;
    rig.pass({udp(kTrack)});
    Tenant& tenant = rig.snapshot.tenants[kTrack];
    SECTION("policy") {
        for (const std::uint16_t generation : {4, 6, 0xffff}) {
            tenant.policy_generation = generation;
            rig.begin({udp(kTrack), test::reversed(udp(kTrack))});
            rig.run<stages::Session>();
            for (const unsigned i : {0u, 1u}) {
                CHECK(rig.has(i, kLaneStale));
                CHECK_FALSE(rig.has(i, kLaneVerdictKnown));
            }
            CHECK(rig.has(0, kLaneRouteKnown));
        }
    }
    SECTION("route") {
        tenant.route_generation = 10;
        rig.begin({udp(kTrack)});
        rig.run<stages::Session>();
        CHECK(rig.has(0, kLaneVerdictKnown));
        CHECK_FALSE(rig.has(0, kLaneRouteKnown));
    }
    SECTION("no memo, because no outcome index was left") {
        rig.worker->outcomes.release(rig.hot(0).outcome);
        rig.hot(0).outcome = session::kNoOutcome;
        rig.begin({udp(kTrack)});
        rig.run<stages::Session>();
        CHECK(rig.has(0, kLaneStale));
        CHECK_FALSE(rig.has(0, kLaneVerdictKnown));
    }
}

TEST_CASE("session stage: a memoised deny drops by its rule and does not keep the session alive", "[pipeline]") {
    for (const std::uint32_t rule : {std::uint32_t{3}, kNoRule}) {
        SessionRig rig;
        rig.pass({udp(kTrack)});
        const std::uint32_t index = rig.lane(0).session;
        rig.worker->sessions->memoize(index, rig.worker->outcomes, {.by_default = rule == kNoRule}, 5, rule);
        const std::uint16_t last_seen = rig.hot(0).last_seen;
        rig.worker->now_tsc += 2 * test::kRigHz;
        rig.begin({udp(kTrack)});
        rig.run<stages::Session>();
        CHECK(rig.fate(0) == (rule == kNoRule ? "acl_default" : "acl_deny"));
        CHECK(rig.worker->sessions->hot(index).last_seen == last_seen);
        CHECK(rig.packets(index, 0) == 1);
    }
}

TEST_CASE("session stage: hits, misses and lanes without sessions of one burst keep apart", "[pipeline]") {
    SessionRig rig;
    rig.pass({udp(kTrack, 1), udp(kTrack, 2)});
    rig.begin({tcp(kTrack, A, 9), udp(kNone), udp(kTrack, 2), tcp(kTrack, S, 8), test::reversed(udp(kTrack, 1)),
               udp(kNone, 2)});
    rig.run<stages::Session>();
    const std::vector<std::string> fates = {"session_state", "live", "live", "live", "live", "live"};
    for (unsigned i = 0; i < fates.size(); ++i) CHECK(rig.fate(i) == fates[i]);
    CHECK(rig.lane(1).session == kNoSession);
    CHECK(rig.hot(2).src == udp(kTrack, 2).src);
    CHECK(rig.has(3, kLaneInstall));
    CHECK(rig.hot(4).src == udp(kTrack, 1).src);
    CHECK(rig.has(4, kLaneReverse));
    CHECK_FALSE(rig.has(2, kLaneReverse));
    CHECK(rig.lane(5).session == kNoSession);
}

TEST_CASE("install: packets of one new flow in a burst make one session", "[pipeline]") {
    SessionRig rig;
    rig.pass({udp(kCache), udp(kCache), test::reversed(udp(kCache))});
    CHECK(rig.active() == 1);
    CHECK(rig.lane(0).session == rig.lane(1).session);
    CHECK(rig.lane(0).session == rig.lane(2).session);
    CHECK_FALSE(rig.has(1, kLaneReverse));
    CHECK(rig.has(2, kLaneReverse));
    CHECK(rig.packets(rig.lane(0).session, 0) == 2);
    CHECK(rig.packets(rig.lane(0).session, 1) == 1);
    CHECK(rig.worker->outcomes.references(rig.hot(0).outcome) == 1);
}

TEST_CASE("install: both directions keep their next hops under one generation", "[pipeline]") {
    SessionRig rig;
    rig.pass({udp(kCache), test::reversed(udp(kCache))});
    rig.hot(0).next_hop[1] = kReverseHop;
    rig.begin({udp(kCache), test::reversed(udp(kCache))});
    rig.run<stages::Session>();
    CHECK(rig.lane(0).next_hop == kForwardHop);
    CHECK(rig.lane(1).next_hop == kReverseHop);
}

TEST_CASE(
    "install: at capacity a stateful tenant's packet is dropped by name, a caching one's passes without a session",
    "[pipeline]") {
    SessionRig rig;
    rig.worker->sessions = std::make_unique<session::Table>(1, -1, test::kRigHz, session::Timeouts{});
    rig.pass({udp(kTrack, 1), udp(kTrack, 2), udp(kCache, 3)});
    CHECK(rig.fate(0) == "live");
    CHECK(rig.fate(1) == "session_table_full");
    CHECK(rig.fate(2) == "live");
    CHECK(rig.lane(2).session == kNoSession);
}

TEST_CASE("install: full buckets have their own name", "[pipeline]") {
    SessionRig rig;
    std::vector<net::FlowKey> keys;
    for (std::uint32_t i = 0; i < 18; ++i) keys.push_back(udp(i == 17 ? kCache : kTrack, i));
    rig.begin(keys);
    for (unsigned i = 0; i < keys.size(); ++i) rig.lane(i).hash = 77;
    rig.run<stages::Session>();
    rig.permit_and_route();
    rig.run<stages::Install>();
    CHECK(rig.fate(15) == "live");
    CHECK(rig.fate(16) == "session_bucket_full");
    CHECK(rig.fate(17) == "live");
    CHECK(rig.active() == 16);
}

TEST_CASE("session stage: a SYN over a connection that is over begins a new one, from either side", "[pipeline]") {
    for (const bool turned : {false, true}) {
        INFO("turned " << turned);
        SessionRig rig;
        rig.pass({tcp(kTrack, S)});
        rig.pass({test::reversed(tcp(kTrack, S | A))}, kReverseHop);
        rig.pass({tcp(kTrack, A)});
        REQUIRE(rig.hot(0).state() == State::established);
        rig.pass({tcp(kTrack, F | A)});
        rig.pass({test::reversed(tcp(kTrack, F | A))});
        REQUIRE(rig.hot(0).state() == State::time_wait);

        const net::FlowKey syn = turned ? test::reversed(tcp(kTrack, S)) : tcp(kTrack, S);
        rig.begin({syn});
        rig.run<stages::Session>();
        CHECK(rig.has(0, kLaneStale));  // judged anew, from this packet
        CHECK_FALSE(rig.has(0, kLaneVerdictKnown | kLaneRouteKnown | kLaneInstall | kLaneReverse));
        CHECK(rig.hot(0).state() == State::fresh);
        CHECK(rig.hot(0).src == syn.src);
        rig.run<stages::Install>();
        CHECK(rig.hot(0).packets[0] == 1);
        CHECK(rig.active() == 1);
        CHECK(rig.worker->outcomes.size() == 0);
    }
}

TEST_CASE("session stage: a late FIN of a connection that is over is no new session", "[pipeline]") {
    SessionRig rig;
    rig.pass({tcp(kTrack, S)});
    rig.pass({tcp(kTrack, R)});
    rig.pass({tcp(kTrack, F | A), test::reversed(tcp(kTrack, F | A))});
    CHECK(rig.fate(0) == "live");
    CHECK(rig.fate(1) == "live");
    CHECK(rig.hot(0).state() == State::closed);
    CHECK(rig.active() == 1);
}

TEST_CASE("session stage: the expiry walk ends sessions and keeps old generations stale", "[pipeline]") {
    SessionRig rig;
    rig.pass({udp(kTrack), tcp(kTrack, S)});
    const std::uint32_t udp_session = rig.lane(0).session;
    rig.worker->sessions->set_state(udp_session, State::established);
    rig.snapshot.tenants[kTrack].policy_generation = 5 + 0x8000;
    CHECK(expire_sessions(*rig.worker, rig.snapshot, rig.worker->now_tsc + 10 * test::kRigHz, 100) == 1);
    CHECK(rig.active() == 1);
    CHECK(rig.worker->sessions->hot(udp_session).policy_generation == 5 + 0x4000);
    CHECK(rig.worker->sessions->hot(udp_session).route_generation == 9);

    rig.snapshot.tenants.resize(1);  // the tenant is gone
    CHECK(expire_sessions(*rig.worker, rig.snapshot, rig.worker->now_tsc + 100 * test::kRigHz, 100) == 1);
    CHECK(rig.worker->outcomes.size() == 0);
}
