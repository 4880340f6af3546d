// SPDX-License-Identifier: BSD-3-Clause
// Ethernet, tags, and which tenant and interface they lead to.
#include "pipeline/parse_rig.h"

using namespace cachewire;
using pipeline::DropReason;
using test::Bytes;
using test::PacketBuilder;

namespace {

Bytes udp_after(PacketBuilder builder) { return builder.ip4("10.0.0.1", "10.0.1.1").udp(1000, 53).payload(18).bytes(); }
Bytes untagged() { return udp_after(PacketBuilder().eth()); }

constexpr net::Mac kForeign{{0x02, 0, 0, 0, 0, 0x02}};
constexpr net::Mac kIp4Group{{0x01, 0x00, 0x5e, 0, 0, 1}};
constexpr net::Mac kIp6Group{{0x33, 0x33, 0, 0, 0, 1}};

}  // namespace

TEST_CASE("parse: a frame shorter than its Ethernet header or tags is dropped", "[parse]") {
    const Bytes one_tag = udp_after(PacketBuilder().eth().vlan(100));
    const Bytes two_tags = udp_after(PacketBuilder().eth().vlan(100).vlan(7));
    std::vector<test::DropCase> cases;
    for (std::size_t size = 0; size < 14; ++size)
        cases.push_back(
            {"untagged, cut to " + std::to_string(size), test::cut(untagged(), size), DropReason::frame_short});
    for (std::size_t size = 14; size < 18; ++size)
        cases.push_back(
            {"one tag, cut to " + std::to_string(size), test::cut(one_tag, size), DropReason::vlan_truncated});
    for (std::size_t size = 18; size < 22; ++size)
        cases.push_back(
            {"two tags, cut to " + std::to_string(size), test::cut(two_tags, size), DropReason::vlan_truncated});
    cases.push_back({"a header and nothing else", test::cut(untagged(), 14), DropReason::ip4_truncated});
    cases.push_back({"one tag and nothing else", test::cut(one_tag, 18), DropReason::ip4_truncated});
    cases.push_back({"two tags and nothing else", test::cut(two_tags, 22), DropReason::ip4_truncated});
    test::check_drops(cases);
}

TEST_CASE("parse: unicast for another station is dropped, tagged or not, in a whole burst of equals", "[parse]") {
    const Bytes plain = udp_after(PacketBuilder().eth(kForeign));
    const Bytes tagged = udp_after(PacketBuilder().eth(kForeign).vlan(100));
    for (unsigned i = 0; i < 32; ++i) {
        CHECK(test::parse(plain).drop == DropReason::foreign_mac);
        CHECK(test::parse(tagged).drop == DropReason::foreign_mac);
    }
    for (unsigned byte = 0; byte < 6; ++byte) {  // every byte of the address counts
        net::Mac near = test::kRouterMac;
        near.bytes[byte] ^= 0x80;
        CHECK(test::parse(udp_after(PacketBuilder().eth(near))).drop == DropReason::foreign_mac);
    }
    CHECK_FALSE(test::parse(untagged()).drop);
    CHECK(test::parse(plain).parsed.tenant == pipeline::kNoTenant);
}

TEST_CASE("parse: only IPv4 and IPv6 go on, every other type has its reason", "[parse]") {
    const auto typed = [](std::uint16_t type) { return PacketBuilder().eth().ether_type(type).payload(46).bytes(); };
    test::check_drops({
        {"ARP", typed(0x0806), DropReason::arp},
        {"ARP in a broadcast", PacketBuilder().eth(test::kBroadcastMac).ether_type(0x0806).payload(46).bytes(),
         DropReason::arp},
        {"802.3 length", typed(46), DropReason::not_ip},
        {"type 0", typed(0), DropReason::not_ip},
        {"LLDP", typed(0x88cc), DropReason::not_ip},
        {"MPLS", typed(0x8847), DropReason::not_ip},
        {"old QinQ type 0x9100", typed(0x9100), DropReason::not_ip},
        {"ARP behind a tag", PacketBuilder().eth().vlan(100).ether_type(0x0806).payload(46).bytes(), DropReason::arp},
        {"types byte-swapped", typed(0x0008), DropReason::not_ip},
    });
}

TEST_CASE("parse: tags lead to the most specific attachment", "[parse]") {
    struct Case {
        std::string what;
        std::vector<std::uint16_t> vlans;
        std::optional<DropReason> drop;
        std::uint16_t tenant, interface;
    };
    const std::uint16_t none = pipeline::kNoInterface;
    const std::vector<Case> cases = {
        {"untagged", {}, std::nullopt, 1, 10},
        {"priority tag", {0}, std::nullopt, 1, 10},
        {"two priority tags", {0, 0}, std::nullopt, 1, 10},
        {"one tag", {100}, std::nullopt, 2, 20},
        {"two tags", {100, 7}, std::nullopt, 3, 30},
        {"priority tag around a tag", {0, 100}, std::nullopt, 2, 20},
        {"priority tag inside a tag", {100, 0}, std::nullopt, 2, 20},
        {"outer known, inner left to the wildcard", {100, 8}, std::nullopt, 5, 50},
        {"wildcard, one tag", {200}, std::nullopt, 6, 60},
        {"wildcard, two tags", {200, 4094}, std::nullopt, 6, 60},
        {"tenant without an interface", {101}, DropReason::no_interface, 4, none},
        {"nobody's tag", {102}, DropReason::no_tenant, 0, none},
        {"inner tag of somebody in nobody's", {102, 100}, DropReason::no_tenant, 0, none},
        {"reserved ID", {4095}, DropReason::no_tenant, 0, none},
        {"reserved ID inside", {200, 4095}, DropReason::no_tenant, 0, none},
        {"three tags", {100, 7, 7}, DropReason::vlan_depth, 0, none},
        {"three priority tags", {0, 0, 0}, DropReason::vlan_depth, 0, none},
    };
    for (const auto& c : cases) {
        for (const std::uint16_t tpid : {0x8100, 0x88a8}) {
            INFO(c.what << ", outer type " << tpid);
            PacketBuilder builder;
            builder.eth();
            for (std::size_t i = 0; i < c.vlans.size(); ++i) builder.vlan(c.vlans[i], i == 0 ? tpid : 0x8100);
            const auto result = test::parse(udp_after(builder));
            CHECK(test::name_of(result.drop) == test::name_of(c.drop));
            CHECK(result.parsed.tenant == c.tenant);
            if (result.drop) continue;
            CHECK(result.parsed.in_interface == c.interface);
            CHECK(result.key.in_interface_be == __builtin_bswap16(c.interface));
            CHECK(result.parsed.l3_offset == 14 + 4 * c.vlans.size());
        }
    }
}

TEST_CASE("parse: a port that belongs to nobody passes nothing, whatever the type", "[parse]") {
    pipeline::Port port = test::parse_port();
    port.untagged = {};
    port.by_vlan = pipeline::attachments_by_vlan(port);
    test::check_drops({{"untagged", untagged(), DropReason::no_tenant},
                       {"priority tag", udp_after(PacketBuilder().eth().vlan(0)), DropReason::no_tenant},
                       {"ARP", PacketBuilder().eth().ether_type(0x0806).payload(46).bytes(), DropReason::no_tenant},
                       {"tagged", udp_after(PacketBuilder().eth().vlan(100)), std::nullopt}},
                      port);
    port.untagged = {1, pipeline::kNoInterface};
    test::check_drops({{"untagged", untagged(), DropReason::no_interface}}, port);
    port.wildcards = {{pipeline::kAnyVlan, 0, {9, 90}}};
    port.by_vlan = pipeline::attachments_by_vlan(port);
    CHECK(test::parse(udp_after(PacketBuilder().eth().vlan(3000)), port).parsed.tenant == 9);
    CHECK(test::parse(udp_after(PacketBuilder().eth().vlan(100).vlan(9)), port).parsed.tenant == 9);
}

TEST_CASE("parse: the outermost tag's priority becomes the key's", "[parse]") {
    for (std::uint8_t pcp = 0; pcp < 8; ++pcp) {
        const auto inner = static_cast<std::uint8_t>(7 - pcp);
        CHECK(test::parse(udp_after(PacketBuilder().eth().vlan(0, 0x8100, pcp))).key.pcp == pcp);
        CHECK(test::parse(udp_after(PacketBuilder().eth().vlan(100, 0x88a8, pcp).vlan(7, 0x8100, inner))).key.pcp ==
              pcp);
    }
    CHECK(test::parse(udp_after(PacketBuilder().eth().vlan(0x1000 | 100))).key.pcp == 0);  // the DEI bit is no priority
}

TEST_CASE("parse: tags that the device took off count like those in the frame", "[parse]") {
    struct Case {
        std::string what;
        std::vector<std::uint16_t> stripped;
        Bytes frame;
        std::optional<DropReason> drop;
        std::uint16_t tenant;
        std::uint8_t pcp;
    };
    const std::vector<Case> cases = {
        {"one stripped", {0xa000 | 100}, untagged(), std::nullopt, 2, 5},
        {"both stripped", {0x6000 | 100, 0xa000 | 7}, untagged(), std::nullopt, 3, 3},
        {"outer stripped, inner in the frame", {100}, udp_after(PacketBuilder().eth().vlan(7)), std::nullopt, 3, 0},
        {"priority tag stripped", {0xe000}, untagged(), std::nullopt, 1, 7},
        {"two stripped and one in the frame",
         {100, 7},
         udp_after(PacketBuilder().eth().vlan(7)),
         DropReason::vlan_depth,
         0,
         0},
        {"one stripped and two in the frame",
         {100},
         udp_after(PacketBuilder().eth().vlan(7).vlan(8)),
         DropReason::vlan_depth,
         0,
         0},
        {"nobody's", {102}, untagged(), DropReason::no_tenant, 0, 0},
    };
    for (const auto& c : cases) {
        INFO(c.what);
        pipeline::Frame frame{c.frame.data(), static_cast<std::uint32_t>(c.frame.size())};
        for (const std::uint16_t tci : c.stripped) frame.stripped_tci[frame.stripped_tags++] = tci;
        test::ParseResult result;
        result.drop = pipeline::parse_packet(frame, test::parse_port(), {}, result.parsed, result.key);
        CHECK(test::name_of(result.drop) == test::name_of(c.drop));
        CHECK(result.parsed.tenant == c.tenant);
        if (!result.drop) CHECK(result.key.pcp == c.pcp);
    }
}

TEST_CASE("parse: broadcasts and multicasts are dropped by name and crash nothing", "[parse]") {
    const auto ip4 = [](const net::Mac& mac, const char* src, const char* dst) {
        return PacketBuilder().eth(mac).ip4(src, dst).udp(68, 67).payload(240).bytes();
    };
    const auto ip6 = [](const net::Mac& mac, const char* src, const char* dst) {
        return PacketBuilder().eth(mac).ip6(src, dst).icmp6(135, 0).payload(16).bytes();
    };
    test::check_drops({
        {"DHCP discover", ip4(test::kBroadcastMac, "0.0.0.0", "255.255.255.255"), DropReason::broadcast},
        {"limited broadcast in a unicast frame", ip4(test::kRouterMac, "10.0.0.1", "255.255.255.255"),
         DropReason::broadcast},
        {"all hosts", ip4(kIp4Group, "10.0.0.1", "224.0.0.1"), DropReason::multicast},
        {"multicast in a unicast frame", ip4(test::kRouterMac, "10.0.0.1", "239.1.2.3"), DropReason::multicast},
        {"subnet broadcast in a broadcast", ip4(test::kBroadcastMac, "10.0.0.1", "10.0.0.255"), DropReason::broadcast},
        {"unicast address in a broadcast", ip4(test::kBroadcastMac, "10.0.0.1", "10.0.1.1"), DropReason::broadcast},
        {"unicast address in a multicast", ip4(kIp4Group, "10.0.0.1", "10.0.1.1"), DropReason::multicast},
        {"unicast IPv6 in a broadcast", ip6(test::kBroadcastMac, "2001:db8::1", "2001:db8:1::1"),
         DropReason::broadcast},
        {"unicast IPv6 in a multicast", ip6(kIp6Group, "2001:db8::1", "2001:db8:1::1"), DropReason::multicast},
        {"neighbour solicitation", ip6(kIp6Group, "fe80::1", "ff02::1:ff00:1"), DropReason::multicast},
        {"duplicate address detection", ip6(kIp6Group, "::", "ff02::1:ff00:1"), DropReason::multicast},
        // The header's own fault comes first: it is the more telling one.
        {"broken header in a broadcast", test::cut(ip4(test::kBroadcastMac, "0.0.0.0", "255.255.255.255"), 30),
         DropReason::ip4_truncated},
    });
}
