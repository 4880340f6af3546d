// SPDX-License-Identifier: BSD-3-Clause
// What the slow path says of packets, and where it is silent.
#include "control/slow_path_rig.h"
#include "net/checksum.h"

namespace cachewire::control {
namespace {

TEST_CASE("slow path: nobody answers, so the packets are dropped and their sender hears of it", "[slow_path]") {
    SlowPathRig rig;
    for (std::uint16_t n = 0; n < 10; ++n)
        rig.punt(PuntReason::no_neighbor, PacketBuilder().eth().ip4("10.0.0.9", "192.0.2.7").udp(n, 2).bytes(), "lan",
                 34, rig.hop_to("192.0.2.7"));
    unsigned drops = 0, asked = 0, told = 0;
    const auto look = [&] {
        for (const Sent& sent : rig.out()) {
            drops += sent.kind == ReturnKind::drop && sent.drop == pipeline::DropReason::no_neighbor;
            if (sent.kind != ReturnKind::transmit) continue;
            const bool unreachable = sent.port == rig.port("west") && sent.bytes[23] == 1;
            told += unreachable && sent.bytes[34] == 3 && sent.bytes[35] == 1;
            asked += sent.bytes[16] == 8 && sent.bytes[17] == 6 && sent.bytes[18 + 27] == 7;
        }
    };
    look();
    CHECK(drops == 2);  // eight wait
    CHECK(asked == 1);
    rig.pass(4000);
    look();
    CHECK(asked == 3);
    CHECK(drops == 10);
    CHECK(told == 8);
    CHECK(rig.slow_path->waiting() == 0);
    CHECK(rig.hop_to("192.0.2.7") == rig.hop_to("192.0.2.99"));  // the network's
}

TEST_CASE("slow path: errors speak from the side that the packet came in by", "[slow_path]") {
    struct Case {
        const char* what;
        PuntReason reason;
        Bytes frame;
        const char* from;
        std::uint8_t type, code;
    };
    SlowPathRig rig;
    const auto v4 = [](const char* src, const char* dst) {
        return PacketBuilder().eth().ip4(src, dst).udp(1, 2).payload(9).bytes();
    };
    const auto v6 = [](const char* src, const char* dst) {
        return PacketBuilder().eth().ip6(src, dst).udp(1, 2).payload(9).bytes();
    };
    for (const Case& c : {
             Case{"TTL", PuntReason::ttl_exceeded, v4("10.0.0.9", "192.0.2.7"), "10.0.0.1", 11, 0},
             {"TTL, of the sender's own network", PuntReason::ttl_exceeded, v4("10.0.5.9", "192.0.2.7"), "10.0.5.1", 11,
              0},
             {"TTL, from far away", PuntReason::ttl_exceeded, v4("203.0.113.9", "192.0.2.7"), "10.0.0.1", 11, 0},
             {"no route", PuntReason::no_route, v4("10.0.0.9", "8.8.8.8"), "10.0.0.1", 3, 0},
             {"a port of ours", PuntReason::local, v4("10.0.0.9", "192.0.2.1"), "10.0.0.1", 3, 3},
             {"rejected", PuntReason::reject, v4("10.0.0.9", "192.0.2.7"), "10.0.0.1", 3, 13},
             {"hop limit", PuntReason::ttl_exceeded, v6("2001:db8:1::9", "2001:db8:2::7"), "2001:db8:1::1", 3, 0},
             {"no route, IPv6", PuntReason::no_route, v6("2001:db8:1::9", "2001:db8:9::7"), "2001:db8:1::1", 1, 0},
             {"a port of ours, IPv6", PuntReason::local, v6("2001:db8:1::9", "2001:db8:2::1"), "2001:db8:1::1", 1, 4},
         }) {
        INFO(c.what);
        const bool ip6 = c.frame[14] >> 4 == 6;
        if (c.from == std::string("10.0.5.1"))  // its own MAC address is learned first
            rig.punt(PuntReason::arp, arp_frame(net::ArpOp::request, kClientMac, "10.0.5.9", "10.0.5.1"));
        rig.out();
        rig.punt(c.reason, c.frame, "lan", ip6 ? 54 : 34);
        const auto out = rig.out();
        REQUIRE(out.size() == 1);
        CHECK(out[0].kind == ReturnKind::transmit);
        CHECK(out[0].port == rig.port("west"));
        const std::uint8_t* ip = out[0].bytes.data() + 14;
        net::Address from = ip6 ? net::Address{} : net::Address::from_v4(__builtin_bswap32(net::load32(ip + 12)));
        if (ip6) std::copy_n(ip + 8, 16, from.bytes.begin());
        CHECK(net::to_string(from) == c.from);
        CHECK(ip[ip6 ? 40 : 20] == c.type);
        CHECK(ip[ip6 ? 41 : 21] == c.code);
    }
}

TEST_CASE("slow path: the MTU of the next hop stands in packet too big", "[slow_path]") {
    SlowPathRig rig;
    test::Ip4Fields df;
    df.fragment = 0x4000;
    rig.punt(PuntReason::mtu_exceeded,
             PacketBuilder().eth().ip4("10.0.0.9", "198.51.100.9", df).udp(1, 2).payload(1400).bytes(), "lan", 34,
             rig.hop_to("198.51.100.9"));
    auto out = rig.out();
    REQUIRE(out.size() == 1);
    CHECK(out[0].bytes.size() == 14 + 576);
    CHECK(net::load16_be(out[0].bytes.data() + 40) == 1280);
    rig.punt(PuntReason::mtu_exceeded,
             PacketBuilder().eth().ip6("2001:db8:1::9", "2001:db8:2::9").udp(1, 2).payload(1400).bytes(), "lan", 54,
             rig.hop_to("2001:db8:2::9"));
    out = rig.out();
    REQUIRE(out.size() == 1);
    CHECK(out[0].bytes.size() == 14 + 1280);
}

TEST_CASE("slow path: nothing is said where RFC 1812 4.3.2.7 forbids it", "[slow_path]") {
    SlowPathRig rig;
    const auto from = [](const char* src) { return PacketBuilder().eth().ip4(src, "8.8.8.8").udp(1, 2).bytes(); };
    for (const char* source :
         {"10.0.0.255", "10.0.0.0", "10.0.0.1", "192.0.2.1", "9.9.9.9"}) {  // the last: no way back
        INFO(source);
        rig.punt(PuntReason::ttl_exceeded, from(source), "lan", 34);
        CHECK(rig.out().empty());
    }
    rig.punt(PuntReason::local, PacketBuilder().eth().ip4("10.0.0.9", "10.0.0.1").icmp(0, 0).payload(9).bytes(), "lan",
             34);
    CHECK(rig.out().empty());  // a reply
    test::TcpFields reset;
    reset.flags = 4;
    rig.punt(PuntReason::local, PacketBuilder().eth().ip4("10.0.0.9", "10.0.0.1").tcp(1, 2, reset).bytes(), "lan", 34);
    CHECK(rig.out().empty());
    reset.flags = 2;
    rig.punt(PuntReason::local, PacketBuilder().eth().ip4("10.0.0.9", "10.0.0.1").tcp(1, 2, reset).bytes(), "lan", 34);
    const auto out = rig.out();
    REQUIRE(out.size() == 1);
    CHECK(out[0].bytes[14 + 33] == 0x14);
}

TEST_CASE("slow path: an echo request comes back whole, without its padding", "[slow_path]") {
    SlowPathRig rig;
    Bytes frame = PacketBuilder().eth().ip4("10.0.0.9", "192.0.2.1").icmp(8, 0, 7, 9).payload(5).bytes();
    const std::size_t size = frame.size();
    frame.resize(60, 0xa5);
    PuntRecord record;
    record.mbuf = test::make_mbuf(frame).release();
    record.reason = PuntReason::echo;
    record.tenant = rig.tenant();
    record.interface = rig.interface("lan");
    record.l3_offset = 14;
    record.l3_length = static_cast<std::uint16_t>(size - 14);
    record.l4_offset = 34;
    REQUIRE(rig.to->push(record));
    rig.to->publish();
    rig.turn();
    const auto out = rig.out();
    REQUIRE(out.size() == 1);
    CHECK(out[0].bytes == PacketBuilder()
                              .eth(kClientMac, test::kRouterMac)
                              .ip4("192.0.2.1", "10.0.0.9")
                              .icmp(0, 0, 7, 9)
                              .payload(5)
                              .bytes());
}

}  // namespace
}  // namespace cachewire::control
