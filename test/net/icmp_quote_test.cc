// SPDX-License-Identifier: BSD-3-Clause
#include "net/icmp_quote.h"

#include <algorithm>
#include <vector>

#include "net/fragment.h"
#include "support/catch.h"
#include "support/packet_builder.h"
#include "support/random.h"

using namespace cachewire;
using test::Bytes;
using test::PacketBuilder;

namespace {

// Exactly as many bytes as `length` says, so that a sanitizer sees the first one past them.
net::Quote read(net::Family family, const Bytes& bytes, std::size_t length, net::FlowKey& key) {
    const std::vector<std::uint8_t> exact(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    return net::read_icmp_quote(family, exact.data(), exact.size(), key);
}

Bytes without_ethernet(const PacketBuilder& packet) {
    const Bytes frame = packet.bytes();
    return {frame.begin() + 14, frame.end()};
}

}  // namespace

TEST_CASE("icmp quote: names the flow as the parser would", "[net]") {
    struct Case {
        const char* what;
        net::Family family;
        Bytes quote;
        std::uint8_t proto;
        std::uint16_t src_port, dst_port;
    };
    const auto v4 = [] { return PacketBuilder().eth().ip4("10.0.0.9", "198.18.0.1"); };
    const auto v6 = [] { return PacketBuilder().eth().ip6("2001:db8::9", "2001:db8:1::1"); };
    const Case cases[] = {
        {"TCP", net::Family::ip4, without_ethernet(v4().tcp(1000, 80)), 6, 1000, 80},
        {"UDP", net::Family::ip4, without_ethernet(v4().udp(1000, 53)), 17, 1000, 53},
        {"SCTP", net::Family::ip4, without_ethernet(v4().sctp(1000, 36412)), 132, 1000, 36412},
        {"echo", net::Family::ip4, without_ethernet(v4().icmp(8, 0, 77)), 1, 77, 77},
        {"echo reply", net::Family::ip4, without_ethernet(v4().icmp(0, 0, 77)), 1, 77, 77},
        {"timestamp", net::Family::ip4, without_ethernet(v4().icmp(13, 0, 77)), 1, 0, 0},
        {"TCP over IPv6", net::Family::ip6, without_ethernet(v6().tcp(1000, 80)), 6, 1000, 80},
        {"behind extension headers", net::Family::ip6,
         without_ethernet(v6().hop_by_hop().destination_options().udp(1000, 53)), 17, 1000, 53},
        {"a first piece", net::Family::ip6, without_ethernet(v6().fragment(0, true).udp(1000, 53).payload(8)), 17, 1000,
         53},
        {"echo over IPv6", net::Family::ip6, without_ethernet(v6().icmp6(128, 0, 77)), 58, 77, 77},
    };
    for (const Case& c : cases) {
        INFO(c.what);
        net::FlowKey key;
        REQUIRE(read(c.family, c.quote, c.quote.size(), key) == net::Quote::flow);
        CHECK(key.proto == c.proto);
        CHECK(key.src_port_be == __builtin_bswap16(c.src_port));
        CHECK(key.dst_port_be == __builtin_bswap16(c.dst_port));
        CHECK(key.src == test::address(c.family == net::Family::ip4 ? "10.0.0.9" : "2001:db8::9"));
        CHECK(key.dst == test::address(c.family == net::Family::ip4 ? "198.18.0.1" : "2001:db8:1::1"));
    }
}

TEST_CASE("icmp quote: reads nothing past its end, whatever stands in it", "[net]") {
    auto engine = test::random_engine();
    const auto below = [&engine](unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(engine); };
    unsigned flows = 0;
    for (unsigned step = 0; step < 100000; ++step) {
        const bool v6 = below(2) != 0;
        PacketBuilder packet;
        packet.eth();
        if (v6) {
            packet.ip6("2001:db8::9", "2001:db8:1::1");
            if (below(2) != 0) packet.destination_options();
            if (below(4) == 0) packet.fragment(static_cast<std::uint16_t>(below(2)), below(2) != 0);
        } else {
            packet.ip4("10.0.0.9", "198.18.0.1", {.options = Bytes(std::size_t{4} * below(11), 1)});
        }
        Bytes quote = without_ethernet(packet.udp(1000, 53).payload(below(8)));
        for (unsigned n = below(4); n > 0; --n)
            quote[below(static_cast<unsigned>(quote.size()))] = static_cast<std::uint8_t>(below(256));
        net::FlowKey key;
        const std::size_t length = below(static_cast<unsigned>(quote.size()) + 1);
        const auto family = below(20) != 0 ? (v6 ? net::Family::ip6 : net::Family::ip4) : net::Family::ip4;
        flows += read(family, quote, length, key) == net::Quote::flow;
    }
    CHECK(flows > 1000);
}

TEST_CASE("fragment field: id, offset and where the data begins, behind any headers", "[net]") {
    test::Ip4Fields fields{.id = 0x1234, .options = Bytes(8, 1)};
    fields.fragment = 0x2003;
    const Bytes v4 = without_ethernet(PacketBuilder().eth().ip4("10.0.0.9", "198.18.0.1", fields).payload(16));
    const net::FragmentField in4 = net::read_fragment_ip4(v4.data());
    CHECK(in4.id == 0x1234);
    CHECK(in4.offset == 24);
    CHECK(in4.data_offset == 28);

    const auto v6 = [] { return PacketBuilder().eth().ip6("2001:db8::9", "2001:db8:1::1"); };
    struct Case {
        Bytes packet;
        std::uint16_t data_offset;
    };
    const Case cases[] = {
        {without_ethernet(v6().fragment(5, true, 0x89abcdef).payload(16)), 48},
        {without_ethernet(v6().hop_by_hop().fragment(5, false, 0x89abcdef).payload(16)), 56},
        {without_ethernet(v6().authentication().fragment(5, true, 0x89abcdef).payload(16)), 72},
    };
    for (const Case& c : cases) {
        INFO("data at " << c.data_offset);
        const net::FragmentField in6 = net::read_fragment_ip6(c.packet.data(), c.packet.size());
        CHECK(in6.id == 0x89abcdef);
        CHECK(in6.offset == 40);
        CHECK(in6.data_offset == c.data_offset);
    }
    const Bytes whole = without_ethernet(v6().udp(1, 2));
    CHECK(net::read_fragment_ip6(whole.data(), whole.size()).data_offset == 0);
}
