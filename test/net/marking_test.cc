// SPDX-License-Identifier: BSD-3-Clause
#include "net/marking.h"

#include "support/catch.h"
#include "support/packet_builder.h"
#include "support/random.h"

namespace cachewire::net {

TEST_CASE("net: another DSCP leaves ECN and all else alone, and the IPv4 checksum right", "[net]") {
    auto engine = test::random_engine();
    const auto below = [&engine](unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(engine); };
    for (unsigned before = 0; before < 256; ++before)
        for (unsigned dscp = 0; dscp < 64; ++dscp) {
            const auto tos = static_cast<std::uint8_t>(before);
            const auto after = static_cast<std::uint8_t>(dscp << 2 | (before & 3));
            const auto id = static_cast<std::uint16_t>(below(65536));
            const auto label = below(1u << 20);
            const auto v4 = [&](std::uint8_t t) {
                return test::PacketBuilder().ip4("10.0.0.1", "10.0.1.1", {.tos = t, .id = id}).udp(1, 2).bytes();
            };
            const auto v6 = [&](std::uint8_t t) {
                return test::PacketBuilder()
                    .ip6("2001:db8::1", "2001:db8::2", {.traffic_class = t, .flow_label = label})
                    .udp(1, 2)
                    .bytes();
            };
            test::Bytes packet = v4(tos);
            set_dscp(packet.data(), false, static_cast<std::uint8_t>(dscp));
            REQUIRE(packet == v4(after));
            packet = v6(tos);
            set_dscp(packet.data(), true, static_cast<std::uint8_t>(dscp));
            REQUIRE(packet == v6(after));
        }
}

TEST_CASE("net: a priority goes into every tag and nowhere else", "[net]") {
    for (const unsigned tags : {0u, 1u, 2u})
        for (unsigned pcp = 0; pcp < 8; ++pcp) {
            const auto frame = [&](std::uint8_t priority) {
                test::PacketBuilder b;
                b.eth();
                if (tags == 2) b.vlan(300, 0x88a8, priority);
                if (tags != 0) b.vlan(4094, 0x8100, priority);
                return b.ip4("10.0.0.1", "10.0.1.1").udp(1, 2).bytes();
            };
            test::Bytes bytes = frame(0);
            set_pcp(bytes.data(), 14 + 4 * tags, pcp);
            CHECK(bytes == frame(static_cast<std::uint8_t>(pcp)));
        }
}

TEST_CASE("net: the twelve AF code points have a drop precedence, no other has", "[net]") {
    unsigned with[4] = {};
    for (std::uint8_t dscp = 0; dscp < 64; ++dscp) ++with[drop_precedence(dscp)];
    CHECK(with[0] == 52);
    for (std::uint8_t af_class = 1; af_class <= 4; ++af_class)
        for (std::uint8_t precedence = 1; precedence <= 3; ++precedence)
            CHECK(drop_precedence(static_cast<std::uint8_t>(8 * af_class + 2 * precedence)) == precedence);
}

}  // namespace cachewire::net
