// SPDX-License-Identifier: BSD-3-Clause
// Upper layers, over both families where both carry them.
#include "pipeline/parse_rig.h"

using namespace cachewire;
using pipeline::DropReason;
using test::Bytes;
using test::PacketBuilder;

namespace {

PacketBuilder ip(bool v6) {
    PacketBuilder builder;
    builder.eth();
    if (v6) return builder.ip6("2001:db8::1", "2001:db8:1::1");
    return builder.ip4("10.0.0.1", "10.0.1.1");
}

PacketBuilder raw(bool v6, std::uint8_t proto) {
    PacketBuilder builder;
    builder.eth();
    if (v6) {
        test::Ip6Fields fields;
        fields.next_header = proto;
        return builder.ip6("2001:db8::1", "2001:db8:1::1", fields);
    }
    test::Ip4Fields fields;
    fields.proto = proto;
    return builder.ip4("10.0.0.1", "10.0.1.1", fields);
}

constexpr std::uint8_t kSyn = 0x02;

}  // namespace

TEST_CASE("parse: a TCP data offset under 20 bytes or past the segment is malformed", "[parse]") {
    for (const bool v6 : {false, true}) {
        const auto tcp = [v6](std::uint8_t words, std::size_t payload) {
            test::TcpFields fields;
            fields.flags = kSyn;
            fields.data_offset = words;
            return ip(v6).tcp(1000, 80, fields).payload(payload).bytes();
        };
        std::vector<test::DropCase> cases;
        for (unsigned words = 0; words < 16; ++words) {
            for (const std::size_t payload : {0u, 3u, 4u, 40u}) {
                const bool right = words >= 5 && std::size_t{4} * words <= 20 + payload;
                cases.push_back({"offset " + std::to_string(words) + ", payload " + std::to_string(payload),
                                 tcp(static_cast<std::uint8_t>(words), payload),
                                 right ? std::nullopt : std::optional(DropReason::tcp_data_offset)});
            }
        }
        test::check_drops(cases);
    }
}

TEST_CASE("parse: all eight TCP flags reach the key", "[parse]") {
    for (unsigned flags = 0; flags < 256; ++flags) {
        test::TcpFields fields;
        fields.flags = static_cast<std::uint8_t>(flags);
        const auto result = test::parse(ip((flags & 1) != 0).tcp(1000, 80, fields).bytes());
        CHECK(result.key.tcp_flags == flags);
        CHECK(result.key.match_flags == net::kL4Known);
    }
}

TEST_CASE("parse: a UDP length may be short of the IP payload, never over it or under 8", "[parse]") {
    for (const bool v6 : {false, true}) {
        const auto udp = [v6](std::uint16_t length, std::size_t payload) {
            return ip(v6).udp(1000, 53, {length, {}}).payload(payload).bytes();
        };
        std::vector<test::DropCase> cases = {
            {"8, no payload", udp(8, 0), std::nullopt},        {"8, IP has more", udp(8, 20), std::nullopt},
            {"27 of 28", udp(27, 20), std::nullopt},           {"28 of 28", udp(28, 20), std::nullopt},
            {"29 of 28", udp(29, 20), DropReason::udp_length}, {"65535", udp(65535, 20), DropReason::udp_length},
        };
        for (std::uint16_t length = 0; length < 8; ++length)
            cases.push_back({"length " + std::to_string(length), udp(length, 20), DropReason::udp_length});
        test::check_drops(cases);
    }
}

TEST_CASE("parse: a packet that ends inside its upper header is dropped", "[parse]") {
    struct Header {
        std::uint8_t proto4, proto6;
        std::size_t bytes4, bytes6;
        Bytes begin;  // such that the header is right once it is whole
    };
    const Bytes tcp = {0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0};
    const std::vector<Header> headers = {
        {6, 6, 20, 20, tcp},
        {17, 17, 8, 8, {0, 1, 0, 2, 0, 8, 0, 0}},
        {132, 132, 12, 12, Bytes(12, 1)},
        {1, 58, 8, 8, {8, 0, 0, 0, 0, 0, 0, 0}},  // echo; as ICMPv6 type 8 below
        {1, 58, 8, 4, {1, 0, 0, 0, 0, 0, 0, 0}},
    };
    for (const auto& h : headers) {
        for (const bool v6 : {false, true}) {
            const std::uint8_t proto = v6 ? h.proto6 : h.proto4;
            Bytes begin = h.begin;
            if (v6 && begin[0] == 8) begin[0] = 128;
            for (std::size_t size = 0; size <= begin.size(); ++size) {
                INFO((v6 ? "IPv6, " : "IPv4, ") << "protocol " << unsigned{proto} << ", " << size << " bytes");
                const auto result = test::parse(raw(v6, proto).payload(test::cut(begin, size)).bytes());
                CHECK(test::name_of(result.drop) == (size < (v6 ? h.bytes6 : h.bytes4) ? "l4_truncated" : "passes"));
            }
        }
    }
}

TEST_CASE("parse: ICMP echo carries its identifier in both ports, other types none", "[parse]") {
    struct Case {
        bool v6;
        std::uint8_t type;
        bool echo, error;
    };
    const std::vector<Case> cases = {
        {false, 8, true, false},   {false, 0, true, false},    {false, 3, false, true},   {false, 4, false, true},
        {false, 5, false, true},   {false, 11, false, true},   {false, 12, false, true},  {false, 13, false, false},
        {false, 17, false, false}, {false, 128, false, false}, {true, 128, true, false},  {true, 129, true, false},
        {true, 1, false, true},    {true, 2, false, true},     {true, 3, false, true},    {true, 4, false, true},
        {true, 127, false, true},  {true, 130, false, false},  {true, 135, false, false}, {true, 255, false, false},
    };
    for (const auto& c : cases) {
        INFO((c.v6 ? "ICMPv6 type " : "ICMP type ") << unsigned{c.type});
        auto builder = ip(c.v6);
        if (c.v6) {
            builder.icmp6(c.type, 9, 0x1234, 7);
        } else {
            builder.icmp(c.type, 9, 0x1234, 7);
        }
        const auto result = test::parse(builder.payload(32).bytes());
        REQUIRE_FALSE(result.drop);
        CHECK(result.key.src_port_be == (c.echo ? 0x3412 : 0));
        CHECK(result.key.dst_port_be == (c.echo ? 0x3412 : 0));
        CHECK(result.key.icmp_type == c.type);
        CHECK(result.key.icmp_code == 9);
        CHECK(result.key.match_flags == net::kL4Known);
        CHECK(((result.parsed.flags & pipeline::kLaneIcmpError) != 0) == c.error);
    }
}

TEST_CASE("parse: the other family's ICMP is just another protocol", "[parse]") {
    const auto icmp_in_6 = test::parse(ip(true).icmp(8, 0, 0x1234).bytes());
    const auto icmp6_in_4 = test::parse(ip(false).icmp6(128, 0, 0x1234).bytes());
    for (const auto& result : {icmp_in_6, icmp6_in_4}) {
        CHECK_FALSE(result.drop);
        CHECK(result.key.match_flags == 0);
        CHECK(result.key.src_port_be == 0);
        CHECK(result.key.icmp_type == 0);
    }
}

TEST_CASE("parse: SCTP has ports", "[parse]") {
    for (const bool v6 : {false, true}) {
        const auto result = test::parse(ip(v6).sctp(1000, 3868).payload(20).bytes());
        REQUIRE_FALSE(result.drop);
        CHECK(result.key.src_port_be == __builtin_bswap16(1000));
        CHECK(result.key.dst_port_be == __builtin_bswap16(3868));
        CHECK(result.key.match_flags == net::kL4Known);
    }
}

TEST_CASE("parse: a protocol without known fields passes with none, even empty", "[parse]") {
    for (unsigned proto = 0; proto < 256; ++proto) {
        for (const bool v6 : {false, true}) {
            if (proto == 6 || proto == 17 || proto == 132 || proto == (v6 ? 58 : 1)) continue;
            if (v6 && net::is_ip6_extension(static_cast<std::uint8_t>(proto))) continue;
            for (const std::size_t payload : {0u, 40u}) {
                INFO((v6 ? "IPv6, " : "IPv4, ") << "protocol " << proto << ", " << payload << " bytes");
                const auto result = test::parse(raw(v6, static_cast<std::uint8_t>(proto)).payload(payload).bytes());
                CHECK_FALSE(result.drop);
                CHECK(result.key.proto == proto);
                CHECK(result.key.match_flags == 0);
                CHECK(result.key.src_port_be == 0);
                CHECK(result.key.dst_port_be == 0);
            }
        }
    }
}

TEST_CASE("parse: deep nesting costs no more than its outermost layer", "[parse]") {
    PacketBuilder ip_in_ip;
    ip_in_ip.eth();
    for (unsigned i = 0; i < 20; ++i) ip_in_ip.ip4("10.0.0.1", "10.0.1.1");
    const auto result = test::parse(ip_in_ip.udp(1, 2).bytes());
    CHECK_FALSE(result.drop);
    CHECK(result.key.proto == 4);
    CHECK(result.parsed.l4_offset == 34);

    Bytes gre_in_gre;
    for (unsigned i = 0; i < 10; ++i) {
        gre_in_gre.insert(gre_in_gre.begin(), {0, 0, 0x08, 0x00});
        test::Ip4Fields fields;
        fields.proto = 47;
        const Bytes next = PacketBuilder().ip4("10.0.0.1", "10.0.1.1", fields).payload(gre_in_gre).bytes();
        gre_in_gre = next;
    }
    const auto gre = test::parse(PacketBuilder().eth().ether_type(0x0800).payload(gre_in_gre).bytes());
    CHECK_FALSE(gre.drop);
    CHECK(gre.key.proto == 47);

    Bytes labels;
    for (unsigned i = 0; i < 50; ++i) labels.insert(labels.end(), {0, 1, 0, 64});
    CHECK(test::parse(PacketBuilder().eth().ether_type(0x8847).payload(labels).bytes()).drop == DropReason::not_ip);
    PacketBuilder tags;
    tags.eth();
    for (unsigned i = 0; i < 50; ++i) tags.vlan(100);
    CHECK(test::parse(tags.ip4("10.0.0.1", "10.0.1.1").udp(1, 2).bytes()).drop == DropReason::vlan_depth);
}
