// SPDX-License-Identifier: BSD-3-Clause
// Routes, and members of a group, that go while packets of them are on their way (B43).
#include <set>

#include "control/route_feed.h"
#include "handoff_rig.h"
#include "support/parsed.h"

namespace cachewire {
namespace {

using control::FedVia;
using control::RouteSource;
using test::Bytes;
using test::HandoffRig;
using test::PacketBuilder;

constexpr unsigned kFedRoutes = 50'000, kMembers = 4, kWithdrawRounds = 100, kGroupFlows = 64, kFedFlows = 8;
constexpr unsigned kARound = kFedRoutes / kWithdrawRounds;

net::Address member_address(unsigned m) { return net::Address::from_v4(0xc0000214 + m); }  // 192.0.2.20
net::Mac member_mac(unsigned m) { return net::Mac{{2, 0, 0, 0, 1, static_cast<std::uint8_t>(m)}}; }
net::Prefix fed_prefix(unsigned n) {
    return {net::Address::from_v4(0x64000000 + (n << 8)), 24, net::Family::ip4};  // from 100.0.0.0/24 on
}

Bytes to_group(unsigned flow) {
    return PacketBuilder()
        .eth()
        .ip4("10.1.0.1", "198.51.100." + std::to_string(1 + flow % 250))
        .udp(static_cast<std::uint16_t>(1024 + flow), 53)
        .payload(20)
        .bytes();
}
Bytes to_fed(unsigned n) {
    return PacketBuilder()
        .eth()
        .ip4("10.1.0.2", net::to_string(net::Address::from_v4(0x64000001 + (n << 8))))
        .udp(static_cast<std::uint16_t>(1024 + n % 60000), 53)
        .payload(20)
        .bytes();
}
unsigned member_of(const Bytes& frame) { return frame[5]; }

}  // namespace

TEST_CASE("withdrawals: under traffic nothing takes a way that has gone, and a group is whole again", "[handoff]") {
    HandoffRig rig(2);
    rig.start();
    control::RouteFeed feed(rig.builder(), rig.publisher());
    const std::uint16_t red = *rig.builder().registry().tenants.find("red");
    const std::uint16_t wan = *rig.builder().registry().interfaces.find("wan");
    std::uint64_t now_ms = 1000;
    const auto publish = [&] {
        while (feed.stats().pending != 0) {
            feed.flush(now_ms += 50);
            rig.wait_grace();
        }
    };
    std::vector<FedVia> group;
    for (unsigned m = 0; m < kMembers; ++m) {
        group.push_back({wan, member_address(m), 1});
        feed.set_neighbor(red, wan, member_address(m), {member_mac(m), false});
    }
    feed.set_route(RouteSource::kernel, red, {test::address("198.51.100.0"), 24, net::Family::ip4}, group);
    for (unsigned n = 0; n < kFedRoutes; ++n)
        feed.set_route(RouteSource::kernel, red, fed_prefix(n), {group[n % kMembers]});
    publish();

    std::vector<Bytes> to_all;
    for (unsigned i = 0; i < kGroupFlows; ++i) to_all.push_back(to_group(i));
    std::uint64_t sent = 0, refused = 0;
    for (unsigned round = 0; round < kWithdrawRounds; ++round) {
        const unsigned lost = round % kMembers, first = round * kARound;
        INFO("round " << round);
        for (unsigned i = 0; i < kFedFlows; ++i) rig.send(rig.west, to_group(i));  // on their way meanwhile
        feed.set_neighbor(red, wan, member_address(lost), {std::nullopt, true});
        for (unsigned n = first; n < first + kARound; ++n) feed.withdraw(RouteSource::kernel, red, fed_prefix(n));
        publish();
        // What was on its way went by whichever member; from now on nothing goes by the lost one, nor to what has gone.
        std::vector<Bytes> out;
        const auto begin = std::chrono::steady_clock::now();
        while (out.size() < kFedFlows && std::chrono::steady_clock::now() - begin < std::chrono::seconds(10))
            HandoffRig::collect(rig.east, out);
        REQUIRE(out.size() == kFedFlows);
        for (unsigned i = 0; i < kFedFlows; ++i) rig.send(rig.west, to_fed(first + i * 7));
        refused += kFedFlows;
        out = rig.exchange(rig.west, rig.east, to_all);
        REQUIRE(out.size() == kGroupFlows);
        std::set<unsigned> used;
        for (const Bytes& frame : out) used.insert(member_of(frame));
        CHECK_FALSE(used.contains(lost));
        CHECK(used.size() == kMembers - 1);
        sent += kFedFlows + kGroupFlows;
        feed.set_neighbor(red, wan, member_address(lost), {member_mac(lost), false});
        publish();
        if (first + kARound < kFedRoutes) {  // what stays is served
            std::vector<Bytes> others;
            for (unsigned i = 0; i < kFedFlows; ++i) others.push_back(to_fed(first + kARound + i));
            sent += others.size();
            REQUIRE(rig.exchange(rig.west, rig.east, others).size() == others.size());
        }
        rig.drop_punted();
    }
    // Sessions keep the member they have had, so new ones show that the group is whole.
    std::vector<Bytes> fresh;
    for (unsigned i = 0; i < kGroupFlows; ++i) fresh.push_back(to_group(100 + i));
    std::set<unsigned> used;
    for (const Bytes& frame : rig.exchange(rig.west, rig.east, fresh)) used.insert(member_of(frame));
    CHECK(used == std::set<unsigned>{0, 1, 2, 3});
    sent += kGroupFlows;
    rig.stop();
    rig.drop_punted();
    const auto ledger = rig.ledger();
    CHECK(ledger.tx == sent);
    CHECK(rig.drops(pipeline::DropReason::no_route) == refused);
    CHECK(control::unaccounted(ledger) == 0);
    CHECK(rig.mbufs_out() == 0);
}

}  // namespace cachewire
