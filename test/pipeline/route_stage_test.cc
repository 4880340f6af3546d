// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/stages/5_route.h"

#include "pipeline/stage_rig.h"
#include "route/fib.h"
#include "support/catch.h"

namespace cachewire::pipeline {

namespace {

using route::NextHopKind;

constexpr std::uint16_t kLeft = 1, kRight = 2, kDrop = 3, kLocal = 4, kBroadcast = 5, kUnresolved = 6;

net::Address v4(std::uint32_t address) { return net::Address::from_v4(address); }

// Two VRFs (tenants 1 and 2) with different answers to the same destinations.
struct RouteRig : test::StageRig {
    RouteRig() {
        snapshot.next_hops.resize(7);
        for (const std::uint16_t n : {kLeft, kRight}) snapshot.next_hops[n].kind = NextHopKind::forward;
        snapshot.next_hops[kRight].mtu = 1000;
        snapshot.next_hops[kDrop].kind = NextHopKind::drop;
        snapshot.next_hops[kLocal].kind = NextHopKind::local;
        snapshot.next_hops[kBroadcast].kind = NextHopKind::broadcast;
        snapshot.next_hops[kUnresolved].kind = NextHopKind::unresolved;
        const auto to = [](std::uint8_t octet, std::uint16_t next_hop) {
            return route::RouteChange{{v4(std::uint32_t{octet} << 24), 8, net::Family::ip4}, next_hop};
        };
        one.apply(std::vector{to(kLeft, kLeft), to(kRight, kRight), to(kDrop, kDrop), to(kLocal, kLocal),
                              to(kBroadcast, kBroadcast), to(kUnresolved, kUnresolved)});
        two.apply(std::vector{to(kLeft, kRight), to(kRight, kLeft)});
        snapshot.tenants[1].fib = one.view().get();
        snapshot.tenants[2].fib = two.view().get();
        for (auto& tenant : snapshot.tenants) tenant.route_generation = 9;
    }

    static net::FlowKey to(std::uint8_t octet, std::uint16_t tenant = 1) {
        net::FlowKey key;
        key.src = v4(0xc0000201);
        key.dst = v4(std::uint32_t{octet} << 24 | 0x010203);
        key.tenant = tenant;
        key.proto = 17;
        return key;
    }

    Lane& lane(unsigned i) { return worker->burst.lane(static_cast<Burst::LaneIndex>(i)); }

    void begin_with_ttl(const std::vector<net::FlowKey>& keys) {
        begin(keys);
        for (unsigned i = 0; i < keys.size(); ++i) lane(i).ttl = 64;
    }

    // A session of `key` whose memo is of route generation `generation`.
    session::HotEntry& session_of(const net::FlowKey& key, unsigned in_lane, std::uint16_t generation) {
        session::Found found{};
        worker->sessions->insert(key, net::flow_hash(key, snapshot.hash_seed), worker->now_tsc, found);
        lane(in_lane).session = found.index;
        session::HotEntry& entry = worker->sessions->hot(found.index);
        entry.route_generation = generation;
        return entry;
    }

    route::Vrf one{"one", {}}, two{"two", {}};
};

}  // namespace

TEST_CASE("route stage: the next hop's kind decides, by name", "[pipeline]") {
    const struct {
        std::uint8_t octet;
        std::string fate;
    } cases[] = {{kLeft, "live"},
                 {kDrop, "route_drop"},
                 {kLocal, "punt local"},
                 {kBroadcast, "broadcast"},
                 {kUnresolved, "punt no_neighbor"},
                 {99, "punt no_route"}};
    RouteRig rig;
    std::vector<net::FlowKey> keys;
    for (const auto& c : cases) keys.push_back(RouteRig::to(c.octet));
    rig.begin_with_ttl(keys);
    rig.run<stages::Route>();
    for (unsigned i = 0; i < keys.size(); ++i) CHECK(rig.fate(i) == cases[i].fate);
    CHECK(rig.lane(0).next_hop == kLeft);
}

TEST_CASE("route stage: TTL and MTU hold for what is forwarded", "[pipeline]") {
    const struct {
        std::uint8_t octet, ttl;
        std::uint16_t l3_length;
        std::string fate;
    } cases[] = {{kLeft, 2, 1500, "live"},
                 {kLeft, 1, 100, "punt ttl_exceeded"},
                 {kLeft, 0, 100, "punt ttl_exceeded"},
                 {kLeft, 64, 1501, "punt mtu_exceeded"},
                 {kRight, 64, 1000, "live"},
                 {kRight, 64, 1001, "punt mtu_exceeded"},
                 {kLocal, 1, 100, "punt local"},
                 {kDrop, 1, 1501, "route_drop"}};
    RouteRig rig;
    std::vector<net::FlowKey> keys;
    for (const auto& c : cases) keys.push_back(RouteRig::to(c.octet));
    rig.begin_with_ttl(keys);
    for (unsigned i = 0; i < keys.size(); ++i) {
        rig.lane(i).ttl = cases[i].ttl;
        rig.lane(i).flags = kLaneIpv6;  // whether IPv4 may be cut stands in the packet, and there is none
        rig.lane(i).l3_length = cases[i].l3_length;
    }
    rig.run<stages::Route>();
    for (unsigned i = 0; i < keys.size(); ++i) {
        INFO(i);
        CHECK(rig.fate(i) == cases[i].fate);
    }
}

TEST_CASE("route stage: each tenant's packets follow its own VRF, however they are mixed", "[pipeline]") {
    RouteRig rig;
    std::vector<net::FlowKey> keys;
    for (unsigned i = 0; i < kMaxLanes; ++i) {
        keys.push_back(RouteRig::to(i % 3 ? kLeft : kRight, static_cast<std::uint16_t>(1 + i % 2)));
    }
    rig.begin_with_ttl(keys);
    rig.run<stages::Route>();
    for (unsigned i = 0; i < kMaxLanes; ++i) {
        INFO(i);
        const bool left = i % 3 != 0;
        CHECK(rig.lane(i).next_hop == ((i % 2 == 0) == left ? kLeft : kRight));
        CHECK(rig.is_live(i));
    }
}

TEST_CASE("route stage: a known next hop is kept, whatever the FIB says", "[pipeline]") {
    RouteRig rig;
    rig.begin_with_ttl({RouteRig::to(kDrop), RouteRig::to(kDrop)});
    rig.lane(0).flags |= kLaneRouteKnown;
    rig.lane(0).next_hop = kRight;
    rig.run<stages::Route>();
    CHECK(rig.fate(0) == "live");
    CHECK(rig.lane(0).next_hop == kRight);
    CHECK(rig.fate(1) == "route_drop");
}

TEST_CASE("route stage: a session remembers what was found for its direction", "[pipeline]") {
    constexpr std::uint16_t kOld = session::kOldNextHop;
    const struct {
        const char* what;
        std::uint16_t flags, generation, before[2], after[2];
    } cases[] = {
        {"forward, fresh: the other direction stays", 0, 9, {0, kRight}, {kLeft, kRight}},
        {"reverse, fresh: the other direction stays", kLaneReverse, 9, {kRight, 0}, {kRight, kLeft}},
        {"forward, stale: the other direction is old", 0, 8, {kRight, kRight}, {kLeft, kRight | kOld}},
        {"reverse, stale: the other direction is old", kLaneReverse, 8, {kRight, kRight}, {kRight | kOld, kLeft}},
        {"stale: nothing known does not become old", 0, 8, {kRight, 0}, {kLeft, 0}},
        {"stale twice", 0, 8, {kRight, kRight | kOld}, {kLeft, kRight | kOld}},
    };
    for (const auto& c : cases) {
        INFO(c.what);
        RouteRig rig;
        rig.begin_with_ttl({RouteRig::to(kLeft)});
        session::HotEntry& entry = rig.session_of(RouteRig::to(kLeft), 0, c.generation);
        entry.next_hop[0] = c.before[0];
        entry.next_hop[1] = c.before[1];
        rig.lane(0).flags = c.flags;
        rig.run<stages::Route>();
        CHECK(rig.fate(0) == "live");
        CHECK(entry.route_generation == 9);
        CHECK(entry.next_hop[0] == c.after[0]);
        CHECK(entry.next_hop[1] == c.after[1]);
    }
}

TEST_CASE("route stage: both directions of a stale session in one burst are both remembered", "[pipeline]") {
    RouteRig rig;
    const net::FlowKey forward = RouteRig::to(kLeft);
    net::FlowKey reverse = forward;
    std::swap(reverse.src, reverse.dst);
    reverse.dst = v4(std::uint32_t{kRight} << 24 | 1);
    rig.begin_with_ttl({forward, reverse});
    session::HotEntry& entry = rig.session_of(forward, 0, 8);
    rig.lane(1).session = rig.lane(0).session;
    rig.lane(1).flags = kLaneReverse;
    rig.run<stages::Route>();
    CHECK(entry.next_hop[0] == kLeft);
    CHECK(entry.next_hop[1] == kRight);
    CHECK(entry.route_generation == 9);
}

TEST_CASE("route stage: an empty burst is none", "[pipeline]") {
    RouteRig rig;
    rig.begin_with_ttl({});
    rig.run<stages::Route>();
    CHECK(rig.worker->burst.size() == 0);
    CHECK(rig.worker->burst.dropped().empty());
}

}  // namespace cachewire::pipeline
