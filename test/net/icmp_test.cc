// SPDX-License-Identifier: BSD-3-Clause
#include "net/icmp.h"

#include "net/checksum.h"
#include "support/catch.h"
#include "support/packet_builder.h"

namespace cachewire::net {
namespace {

using test::address;
using test::Bytes;
using test::PacketBuilder;

Bytes error(Family family, IcmpError what, std::uint32_t value, const char* src, const Bytes& quote) {
    Bytes out(kMaxIcmp6ErrorBytes);
    out.resize(write_icmp_error(family, what, value, address(src), quote, out.data()));
    return out;
}

TEST_CASE("icmp: fragmentation needed has the MTU, 576 bytes at most and right checksums", "[icmp]") {
    test::Ip4Fields df;
    df.fragment = 0x4000;
    const Bytes packet = PacketBuilder().ip4("10.0.0.9", "192.0.2.9", df).udp(1, 2).payload(1372).bytes();
    const Bytes out = error(Family::ip4, IcmpError::packet_too_big, 1280, "10.0.0.1", packet);
    REQUIRE(out.size() == 576);
    CHECK(out[9] == 1);
    CHECK(checksum({out.data(), 20}) == 0);
    CHECK(checksum({out.data() + 20, out.size() - 20}) == 0);
    CHECK(out[20] == 3);
    CHECK(out[21] == 4);
    CHECK(Bytes(out.begin() + 24, out.begin() + 28) == Bytes{0, 0, 1280 >> 8, 1280 & 0xff});
    CHECK(Bytes(out.begin() + 12, out.begin() + 20) == Bytes{10, 0, 0, 1, 10, 0, 0, 9});
    CHECK(std::equal(out.begin() + 28, out.end(), packet.begin()));
    const Bytes small = PacketBuilder().ip4("10.0.0.9", "192.0.2.9").udp(1, 2).payload(20).bytes();
    CHECK(error(Family::ip4, IcmpError::time_exceeded, 0, "10.0.0.1", small).size() == 28 + small.size());
}

TEST_CASE("icmp: packet too big has the MTU, 1280 bytes at most and a right checksum", "[icmp]") {
    const Bytes packet = PacketBuilder().ip6("2001:db8:1::9", "2001:db8:2::9").udp(1, 2).payload(1400).bytes();
    const Bytes out = error(Family::ip6, IcmpError::packet_too_big, 1300, "2001:db8:1::1", packet);
    REQUIRE(out.size() == 1280);
    CHECK(out[40] == 2);
    CHECK(out[41] == 0);
    CHECK(Bytes(out.begin() + 44, out.begin() + 48) == Bytes{0, 0, 1300 >> 8, 1300 & 0xff});
    CHECK(l4_checksum(address("2001:db8:1::1"), address("2001:db8:1::9"), 58, std::span(out).subspan(40)) == 0);
    CHECK(std::equal(out.begin() + 48, out.end(), packet.begin()));
}

TEST_CASE("icmp: each error has its family's type and code", "[icmp]") {
    struct Case {
        IcmpError error;
        int type4, code4, type6, code6;
    };
    const Bytes v4 = PacketBuilder().ip4("10.0.0.9", "192.0.2.9").udp(1, 2).bytes();
    const Bytes v6 = PacketBuilder().ip6("2001:db8::9", "2001:db8:2::9").udp(1, 2).bytes();
    for (const Case& c : {Case{IcmpError::net_unreachable, 3, 0, 1, 0},
                          {IcmpError::host_unreachable, 3, 1, 1, 3},
                          {IcmpError::port_unreachable, 3, 3, 1, 4},
                          {IcmpError::admin_prohibited, 3, 13, 1, 1},
                          {IcmpError::time_exceeded, 11, 0, 3, 0}}) {
        const Bytes out4 = error(Family::ip4, c.error, 0, "10.0.0.1", v4);
        CHECK(out4[20] == c.type4);
        CHECK(out4[21] == c.code4);
        const Bytes out6 = error(Family::ip6, c.error, 0, "2001:db8::1", v6);
        CHECK(out6[40] == c.type6);
        CHECK(out6[41] == c.code6);
    }
}

TEST_CASE("icmp: an echo request is turned around with right checksums", "[icmp]") {
    for (const std::size_t size : {0u, 1u, 56u, 1400u}) {
        Bytes v4 = PacketBuilder().ip4("10.0.0.9", "10.0.0.1").icmp(8, 0, 7, 3).payload(size).bytes();
        REQUIRE(turn_echo_request(Family::ip4, v4, 20));
        test::Ip4Fields fields;
        CHECK(v4 == PacketBuilder().ip4("10.0.0.1", "10.0.0.9", fields).icmp(0, 0, 7, 3).payload(size).bytes());
        Bytes v6 = PacketBuilder().ip6("2001:db8::9", "2001:db8::1").icmp6(128, 0, 7, 3).payload(size).bytes();
        REQUIRE(turn_echo_request(Family::ip6, v6, 40));
        CHECK(v6 == PacketBuilder().ip6("2001:db8::1", "2001:db8::9").icmp6(129, 0, 7, 3).payload(size).bytes());
    }
    Bytes broken = PacketBuilder().ip4("10.0.0.9", "10.0.0.1").icmp(8, 0, 7, 3).payload(9).bytes();
    broken.back() ^= 1;
    CHECK_FALSE(turn_echo_request(Family::ip4, broken, 20));
}

TEST_CASE("icmp: a reset answers a SYN and a segment in the middle as RFC 9293 3.10.7.1 says", "[icmp]") {
    const auto reset = [](Family family, const Bytes& segment, unsigned l4) {
        Bytes out(kTcpResetBytes);
        out.resize(write_tcp_reset(family, segment, l4, static_cast<unsigned>(segment.size()), out.data()));
        return out;
    };
    const auto put = [](Bytes& b, std::size_t at, std::uint32_t v) {
        for (int i = 0; i < 4; ++i) b[at + static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(v >> (24 - 8 * i));
    };
    test::TcpFields syn;
    syn.flags = 2;
    syn.sequence = 0xfffffff0;
    Bytes expected(4);
    const Bytes out =
        reset(Family::ip4, PacketBuilder().ip4("10.0.0.9", "10.0.0.1").tcp(1000, 22, syn).payload(32).bytes(), 20);
    REQUIRE(out.size() == 40);
    CHECK(out[33] == 0x14);
    put(expected, 0, 0xfffffff0u + 33);
    CHECK(Bytes(out.begin() + 28, out.begin() + 32) == expected);
    CHECK(l4_checksum(address("10.0.0.1"), address("10.0.0.9"), 6, std::span(out).subspan(20)) == 0);
    CHECK(checksum({out.data(), 20}) == 0);

    test::TcpFields ack;
    ack.flags = 0x10;
    ack.acknowledgment = 0x12345678;
    const Bytes mid =
        reset(Family::ip6, PacketBuilder().ip6("2001:db8::9", "2001:db8::1").tcp(1000, 22, ack).bytes(), 40);
    REQUIRE(mid.size() == 60);
    CHECK(mid[53] == 4);
    CHECK(Bytes(mid.begin() + 44, mid.begin() + 48) == Bytes{0x12, 0x34, 0x56, 0x78});
    CHECK(Bytes(mid.begin() + 40, mid.begin() + 44) == Bytes{0, 22, 1000 >> 8, 1000 & 0xff});
    CHECK(l4_checksum(address("2001:db8::1"), address("2001:db8::9"), 6, std::span(mid).subspan(40)) == 0);

    test::TcpFields rst;
    rst.flags = 0x14;
    CHECK(reset(Family::ip4, PacketBuilder().ip4("10.0.0.9", "10.0.0.1").tcp(1, 2, rst).bytes(), 20).empty());
}

}  // namespace
}  // namespace cachewire::net
