// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/reverse_path.h"

#include "pipeline/stage_rig.h"
#include "pipeline/stages/5_route.h"
#include "route/fib.h"
#include "support/catch.h"

namespace cachewire::pipeline {

namespace {

using route::NextHopKind;

constexpr std::uint16_t kViaLeft = 1, kViaRight = 2, kViaDrop = 3, kViaLocal = 4, kViaLink = 5;

net::Address at(std::uint8_t octet) { return net::Address::from_v4(std::uint32_t{octet} << 24 | 0x010203); }

// 1/8 to the left (interface 1), 2/8 to the right (interface 2), 3/8 dropped, 4/8 ours, 5/8 a link on interface 1.
struct ReversePathRig : test::StageRig {
    ReversePathRig() {
        snapshot.next_hops.resize(6);
        for (const std::uint16_t n : {kViaLeft, kViaRight, kViaLink}) {
            snapshot.next_hops[n].kind = n == kViaLink ? NextHopKind::unresolved : NextHopKind::forward;
            snapshot.next_hops[n].interface = n == kViaRight ? 2 : 1;
        }
        snapshot.next_hops[kViaDrop].kind = NextHopKind::drop;
        snapshot.next_hops[kViaLocal].kind = NextHopKind::local;
        std::vector<route::RouteChange> routes;
        for (std::uint8_t n = 1; n < 6; ++n)
            routes.push_back({{net::Address::from_v4(std::uint32_t{n} << 24), 8, net::Family::ip4}, n});
        vrf.apply(routes);
        snapshot.tenants[1].fib = vrf.view().get();
        snapshot.rpf = true;
    }
    std::string fate_of(std::uint8_t source, std::uint16_t in_interface, Rpf rpf, std::uint32_t session = kNoSession) {
        snapshot.tenants[1].rpf = rpf;
        net::FlowKey key;
        key.tenant = 1;
        key.src = at(source);
        key.dst = at(kViaLeft);
        begin({key});
        Lane& lane = worker->burst.lane(0);
        lane.in_interface = in_interface;
        lane.session = session;
        lane.ttl = 64;
        lane.flags = session == kNoSession ? 0 : kLaneRouteKnown;
        lane.next_hop = kViaLeft;
        run<stages::Route>();
        return fate(0);
    }
    route::Vrf vrf{"rpf", {}};
};

}  // namespace

TEST_CASE("reverse path: what loose and strict let pass", "[pipeline]") {
    struct Case {
        const char* what;
        std::uint8_t source;
        std::uint16_t in;
        const char *none, *loose, *strict;
    };
    ReversePathRig rig;
    for (const Case& c : {Case{"from where it should come", 1, 1, "live", "live", "live"},
                          {"by another interface", 1, 2, "live", "live", "rpf"},
                          {"from a link", 5, 1, "live", "live", "live"},
                          {"from a link, by another interface", 5, 2, "live", "live", "rpf"},
                          {"no route back", 9, 1, "live", "rpf", "rpf"},
                          {"a route that drops", 3, 1, "live", "rpf", "rpf"},
                          {"an address of ours", 4, 1, "live", "rpf", "rpf"}}) {
        INFO(c.what);
        CHECK(rig.fate_of(c.source, c.in, Rpf::none) == c.none);
        CHECK(rig.fate_of(c.source, c.in, Rpf::loose) == c.loose);
        CHECK(rig.fate_of(c.source, c.in, Rpf::strict) == c.strict);
    }
    CHECK(rig.fate_of(9, 1, Rpf::strict, 7) == "live");  // a session was let in by its first packet
}

TEST_CASE("reverse path: of several next hops any will do, and a leak leads to the other tenant's route",
          "[pipeline]") {
    ReversePathRig rig;
    rig.snapshot.groups.push_back(std::make_shared<route::Group>(
        std::vector<route::Member>{{.next_hop = kViaLeft}, {.next_hop = kViaRight}}, nullptr));
    rig.snapshot.next_hops.resize(8);
    rig.snapshot.next_hops[6].kind = NextHopKind::group;
    rig.snapshot.next_hops[7].kind = NextHopKind::leak;
    rig.snapshot.next_hops[7].tenant = 1;
    const auto check = [&](std::uint16_t hop, std::uint16_t in, Rpf rpf, std::uint8_t source = 2) {
        return is_reverse_path(rig.snapshot, at(source), hop, in, rpf);
    };
    CHECK(check(6, 1, Rpf::strict));
    CHECK(check(6, 2, Rpf::strict));
    CHECK_FALSE(check(6, 3, Rpf::strict));
    CHECK(check(6, 3, Rpf::loose));
    CHECK(check(7, 2, Rpf::strict));
    CHECK_FALSE(check(7, 1, Rpf::strict));
    CHECK_FALSE(check(7, 1, Rpf::loose, 9));
}

}  // namespace cachewire::pipeline
