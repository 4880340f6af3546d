// SPDX-License-Identifier: BSD-3-Clause
// The builder is what other tests stand on: its frames are held against bytes written by hand.
#include "support/packet_builder.h"

#include "net/checksum.h"
#include "support/catch.h"

using namespace cachewire;
using test::Bytes;
using test::PacketBuilder;

TEST_CASE("packet builder: an IPv4 UDP frame is what it is on the wire", "[net]") {
    const Bytes frame = PacketBuilder().eth().ip4("10.0.0.1", "10.0.1.1").udp(0x1234, 53).payload(3).pad_to(60).bytes();
    const Bytes expected = {
        0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, 0x99, 0x08, 0x00,  // Ethernet
        0x45, 0x00, 0x00, 0x1f, 0x00, 0x00, 0x00, 0x00, 0x40, 0x11,                          // IPv4
        0x65, 0xcd,                                      // 4500 + 1f + 4011 + a00 + 1 + a00 + 101 = 9a32
        0x0a, 0x00, 0x00, 0x01, 0x0a, 0x00, 0x01, 0x01,  //
        0x12, 0x34, 0x00, 0x35, 0x00, 0x0b,              // UDP
        0xd6, 0x6c,        // a00 + 1 + a00 + 101 + 11 + b + 1234 + 35 + b + 1 + 200 = 2993
        0x00, 0x01, 0x02,  //
    };
    REQUIRE(frame.size() == 60);
    CHECK(Bytes(frame.begin(), frame.begin() + 45) == expected);
    CHECK(Bytes(frame.begin() + 45, frame.end()) == Bytes(15, 0xa5));
    CHECK(net::l4_checksum(test::address("10.0.0.1"), test::address("10.0.1.1"), 17,
                           std::span(frame).subspan(34, 11)) == 0);
}

TEST_CASE("packet builder: tags, extension headers and types chain", "[net]") {
    const Bytes frame = PacketBuilder()
                            .eth()
                            .vlan(100, 0x88a8, 5)
                            .vlan(200)
                            .ip6("2001:db8::1", "2001:db8::2")
                            .hop_by_hop()
                            .fragment(0, false)
                            .authentication()
                            .destination_options()
                            .tcp(1, 2)
                            .bytes();
    CHECK(Bytes(frame.begin() + 12, frame.begin() + 22) ==
          Bytes{0x88, 0xa8, 0xa0, 100, 0x81, 0x00, 0, 200, 0x86, 0xdd});
    CHECK(frame[22 + 6] == 0);    // hop-by-hop
    CHECK(frame[22 + 40] == 44);  // fragment
    CHECK(frame[22 + 48] == 51);  // authentication
    CHECK(frame[22 + 56] == 60);  // destination options
    CHECK(frame[22 + 57] == 4);   // 24 bytes of authentication
    CHECK(frame[22 + 80] == 6);   // TCP
    CHECK(frame.size() == 22 + 88 + 20);
    CHECK((frame[26] << 8 | frame[27]) == 48 + 20);  // payload length
    CHECK(net::l4_checksum(test::address("2001:db8::1"), test::address("2001:db8::2"), 6,
                           std::span(frame).subspan(22 + 88)) == 0);
}

TEST_CASE("packet builder: a field that is given goes out as given", "[net]") {
    test::Ip4Fields ip;
    ip.version = 5;
    ip.header_words = 3;
    ip.total_length = 9;
    ip.checksum = 0xbeef;
    ip.proto = 200;
    const Bytes frame =
        PacketBuilder().eth().ether_type(0x1234).ip4("1.2.3.4", "5.6.7.8", ip).udp(1, 2, {7, 0xabcd}).bytes();
    CHECK(Bytes(frame.begin() + 12, frame.begin() + 18) == Bytes{0x12, 0x34, 0x53, 0, 0, 9});
    CHECK(frame[14 + 9] == 200);
    CHECK(Bytes(frame.begin() + 24, frame.begin() + 26) == Bytes{0xbe, 0xef});
    CHECK(Bytes(frame.begin() + 38, frame.end()) == Bytes{0, 7, 0xab, 0xcd});
}
