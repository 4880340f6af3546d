// SPDX-License-Identifier: BSD-3-Clause
// IPv6: fixed header, extension headers, fragments, addresses.
#include "pipeline/parse_rig.h"

using namespace cachewire;
using pipeline::DropReason;
using test::Bytes;
using test::PacketBuilder;

namespace {

PacketBuilder ip6(const test::Ip6Fields& fields = {}, const char* src = "2001:db8::1",
                  const char* dst = "2001:db8:1::1") {
    PacketBuilder builder;
    builder.eth().ip6(src, dst, fields);
    return builder;
}

Bytes with_udp(PacketBuilder builder) { return builder.udp(1000, 53).payload(10).bytes(); }

// n destination-options headers of 8 bytes.
PacketBuilder chain(unsigned n) {
    PacketBuilder builder = ip6();
    for (unsigned i = 0; i < n; ++i) builder.destination_options();
    return builder;
}

}  // namespace

TEST_CASE("parse: an ordinary IPv6 packet fills lane and key", "[parse]") {
    test::Ip6Fields fields;
    fields.traffic_class = 0xb9;
    fields.flow_label = 0xfffff;
    fields.hop_limit = 3;
    const auto result = test::parse(ip6(fields).tcp(1000, 443, {0x12, 0, 0, {}, {}, {}}).payload(5).bytes());
    REQUIRE_FALSE(result.drop);
    CHECK(result.parsed.l3_offset == 14);
    CHECK(result.parsed.l3_length == 65);
    CHECK(result.parsed.l4_offset == 54);
    CHECK(result.parsed.ttl == 3);
    CHECK(result.parsed.flags == pipeline::kLaneIpv6);
    CHECK(result.key.src == test::address("2001:db8::1"));
    CHECK(result.key.dst == test::address("2001:db8:1::1"));
    CHECK(result.key.src_port_be == __builtin_bswap16(1000));
    CHECK(result.key.dst_port_be == __builtin_bswap16(443));
    CHECK(result.key.proto == 6);
    CHECK(result.key.dscp == 46);
    CHECK(result.key.tcp_flags == 0x12);
    CHECK(result.key.match_flags == net::kL4Known);
}

TEST_CASE("parse: broken IPv6 headers are dropped, each by its reason", "[parse]") {
    const auto length = [](std::uint16_t payload) {
        test::Ip6Fields fields;
        fields.payload_length = payload;
        return with_udp(ip6(fields));  // 18 bytes of payload
    };
    test::Ip6Fields jumbo;
    jumbo.payload_length = 0;
    std::vector<test::DropCase> cases = {
        {"payload exactly the frame", length(18), std::nullopt},
        {"payload one byte over the frame", length(19), DropReason::ip6_payload_length},
        {"payload 65535", length(65535), DropReason::ip6_payload_length},
        {"payload 0", length(0), DropReason::l4_truncated},
        {"jumbogram", with_udp(ip6(jumbo).hop_by_hop({0xc2, 4, 0, 1, 0, 0})), DropReason::ip6_payload_length},
        {"jumbo option beside a length", with_udp(ip6().hop_by_hop({0xc2, 4, 0, 1, 0, 0})),
         DropReason::ip6_payload_length},
        {"no next header", ip6().bytes(), std::nullopt},
        {"no next header, bytes behind", ip6().payload(20).bytes(), std::nullopt},
    };
    for (unsigned version = 0; version < 16; ++version) {
        if (version == 6) continue;
        test::Ip6Fields fields;
        fields.version = static_cast<std::uint8_t>(version);
        cases.push_back({"version " + std::to_string(version), with_udp(ip6(fields)), DropReason::ip6_version});
    }
    for (std::size_t bytes = 0; bytes < 40; ++bytes)
        cases.push_back({"only " + std::to_string(bytes) + " bytes of it", test::cut(with_udp(ip6()), 14 + bytes),
                         DropReason::ip6_truncated});
    test::check_drops(cases);
    CHECK(test::parse(ip6().bytes()).parsed.l4_offset == 0);
    CHECK(test::parse(ip6().bytes()).key.match_flags == 0);
}

TEST_CASE("parse: IPv6 padding on the link is not payload", "[parse]") {
    const auto bare = test::parse(ip6().udp(1000, 53).bytes());
    const auto padded = test::parse(ip6().udp(1000, 53).pad_to(1514).bytes());
    REQUIRE_FALSE(bare.drop);
    REQUIRE_FALSE(padded.drop);
    CHECK(padded.parsed.l3_length == 48);
    CHECK(std::memcmp(&padded.key, &bare.key, sizeof bare.key) == 0);
}

TEST_CASE("parse: a datagram over 65535 bytes passes no link", "[parse]") {
    test::check_drops({
        {"65535 bytes", ip6().udp(1, 2, {8, {}}).payload(65535 - 48).bytes(), std::nullopt},
        {"65536 bytes", ip6().udp(1, 2, {8, {}}).payload(65536 - 48).bytes(), DropReason::ip6_payload_length},
    });
}

TEST_CASE("parse: upper layers are found behind every order of extension headers", "[parse]") {
    struct Case {
        std::string what;
        PacketBuilder builder;
        std::uint16_t l4_offset;
        std::uint8_t match_flags;
    };
    const std::uint8_t options = net::kL4Known | net::kHasOptions;
    const std::vector<Case> cases = {
        {"hop-by-hop", ip6().hop_by_hop(), 62, options},
        {"hop-by-hop with router alert and PadN", ip6().hop_by_hop({5, 2, 0, 0, 1, 0}), 62, options},
        {"hop-by-hop of 264 bytes less 8", ip6().hop_by_hop(Bytes(246)), 54 + 248, options},
        {"destination options", ip6().destination_options(), 62, options},
        {"routing type 4", ip6().routing(4, 0, Bytes(20)), 78, options},
        {"routing type 2 with segments left", ip6().routing(2, 1, Bytes(20)), 78, options},
        {"authentication", ip6().authentication(), 78, options},
        {"all of them",
         ip6()
             .hop_by_hop()
             .destination_options()
             .routing(3, 1, Bytes(4))
             .fragment(0, false)
             .authentication()
             .destination_options(),
         54 + 8 + 8 + 8 + 8 + 24 + 8, options},
        {"atomic fragment", ip6().fragment(0, false), 62, net::kL4Known},
    };
    for (const auto& c : cases) {
        INFO(c.what);
        const auto result = test::parse(with_udp(c.builder));
        CHECK(test::name_of(result.drop) == "passes");
        CHECK(result.parsed.l4_offset == c.l4_offset);
        CHECK(result.key.match_flags == c.match_flags);
        CHECK(result.key.proto == 17);
        CHECK(result.key.dst_port_be == __builtin_bswap16(53));
    }
}

TEST_CASE("parse: an extension header longer than its packet is dropped without a look past the end", "[parse]") {
    const auto hbh = [](std::uint8_t length_field, const Bytes& options) {
        return ip6().extension(0, options, length_field).udp(1, 2).bytes();
    };
    test::check_drops({
        {"hop-by-hop of 2048 bytes in a packet of 72", ip6().extension(0, Bytes(22), 255).payload(8).bytes(),
         DropReason::ip6_extension_truncated},
        {"hop-by-hop exactly to the end", ip6().extension(0, Bytes(14)).bytes(), std::nullopt},
        {"hop-by-hop 8 bytes past the end", ip6().extension(0, Bytes(14), 2).bytes(),
         DropReason::ip6_extension_truncated},
        {"option that ends with the header", hbh(0, {5, 4, 0, 0, 0, 0}), std::nullopt},
        {"option one byte past the header", hbh(0, {5, 5, 0, 0, 0, 0}), DropReason::ip6_extension_truncated},
        {"option of 255 bytes", hbh(0, {5, 255, 0, 0, 0, 0}), DropReason::ip6_extension_truncated},
        {"option type as the last byte", hbh(0, {0, 0, 0, 0, 0, 5}), DropReason::ip6_extension_truncated},
        {"PadN over the end", hbh(0, {1, 9, 0, 0, 0, 0}), DropReason::ip6_extension_truncated},
        {"the same in destination options", ip6().extension(60, {5, 5, 0, 0, 0, 0}).udp(1, 2).bytes(),
         DropReason::ip6_extension_truncated},
        {"authentication of 8 bytes", ip6().extension(51, Bytes(6), 0).udp(1, 2).bytes(),
         DropReason::ip6_extension_truncated},
        {"authentication past the end", ip6().extension(51, Bytes(14), 9).bytes(), DropReason::ip6_extension_truncated},
        {"7 bytes of a fragment header", ip6({{}, {}, 64, {}, 44, {}}).payload(7).bytes(),
         DropReason::ip6_extension_truncated},
        {"1 byte of destination options", ip6({{}, {}, 64, {}, 60, {}}).payload(1).bytes(),
         DropReason::ip6_extension_truncated},
        {"routing header and no byte", ip6({{}, {}, 64, {}, 43, {}}).bytes(), DropReason::ip6_extension_truncated},
    });
}

TEST_CASE("parse: eight extension headers and 256 bytes of them are the limit", "[parse]") {
    for (unsigned n = 1; n <= 40; ++n) {
        INFO(n << " destination options");
        const auto result = test::parse(with_udp(chain(n)));
        CHECK(test::name_of(result.drop) == (n <= 8 ? "passes" : "ip6_extension_limit"));
    }
    test::check_drops({
        {"256 bytes", with_udp(ip6().destination_options(Bytes(254))), std::nullopt},
        {"264 bytes", with_udp(ip6().destination_options(Bytes(262))), DropReason::ip6_extension_limit},
        {"8 + 248 bytes", with_udp(ip6().hop_by_hop().destination_options(Bytes(246))), std::nullopt},
        {"8 + 256 bytes", with_udp(ip6().hop_by_hop().destination_options(Bytes(254))),
         DropReason::ip6_extension_limit},
        {"256 bytes and one more header", with_udp(ip6().hop_by_hop(Bytes(254)).fragment(0, false)),
         DropReason::ip6_extension_limit},
        {"headers that end with the packet", ip6().destination_options(Bytes(254)).bytes(), std::nullopt},
        {"ninth header cut short", chain(8).payload(0).bytes(), std::nullopt},
    });
}

TEST_CASE("parse: hop-by-hop stands first, routing type 0 and a second fragment header nowhere", "[parse]") {
    test::check_drops({
        {"hop-by-hop after destination options", with_udp(ip6().destination_options().hop_by_hop()),
         DropReason::ip6_extension_order},
        {"two hop-by-hop headers", with_udp(ip6().hop_by_hop().hop_by_hop()), DropReason::ip6_extension_order},
        {"hop-by-hop in an atomic fragment", with_udp(ip6().fragment(0, false).hop_by_hop()),
         DropReason::ip6_extension_order},
        {"two fragment headers", with_udp(ip6().fragment(0, false).fragment(0, false)),
         DropReason::ip6_extension_order},
        {"second fragment header with an offset", ip6().fragment(0, true).fragment(9, false).payload(16).bytes(),
         DropReason::ip6_extension_order},
        {"routing type 0", with_udp(ip6().routing(0, 1, Bytes(20))), DropReason::ip6_routing_header},
        {"routing type 0, no segments left", with_udp(ip6().routing(0, 0, Bytes(20))), DropReason::ip6_routing_header},
        {"routing type 0 behind others", with_udp(ip6().hop_by_hop().destination_options().routing(0, 1, Bytes(20))),
         DropReason::ip6_routing_header},
    });
}

TEST_CASE("parse: IPv6 fragments are told apart, and an atomic one is a whole packet", "[parse]") {
    const auto piece = [](std::uint16_t units, bool more, std::size_t payload) {
        return test::parse(ip6().fragment(units, more).udp(1000, 53, {4000, {}}).payload(payload).bytes());
    };
    const auto first = piece(0, true, 16);
    REQUIRE_FALSE(first.drop);
    CHECK(first.key.match_flags == (net::kL4Known | net::kFragment | net::kFirstFragment));
    CHECK(first.key.dst_port_be == __builtin_bswap16(53));
    const auto later = piece(3, true, 16);
    REQUIRE_FALSE(later.drop);
    CHECK(later.key.match_flags == (net::kFragment | net::kLaterFragment));
    CHECK(later.key.proto == 17);
    CHECK(later.key.src_port_be == 0);
    CHECK(later.parsed.l4_offset == 0);
    CHECK(later.parsed.hash == first.parsed.hash);
    const auto atomic = test::parse(ip6().fragment(0, false).udp(1000, 53).payload(3).bytes());
    const auto plain = test::parse(ip6().udp(1000, 53).payload(3).bytes());
    REQUIRE_FALSE(atomic.drop);
    CHECK(atomic.key.match_flags == plain.key.match_flags);
    CHECK(atomic.parsed.hash == plain.parsed.hash);
    // Behind an offset nothing is read as a header, whatever it is called.
    const auto opaque = test::parse(ip6().fragment(2, false).extension(0, {5, 255, 0, 0, 0, 0}).bytes());
    REQUIRE_FALSE(opaque.drop);
    CHECK(opaque.key.proto == 0);
    CHECK(opaque.key.match_flags == (net::kFragment | net::kLaterFragment));
}

TEST_CASE("parse: IPv6 fragments that can't be pieces of a datagram are dropped", "[parse]") {
    const auto piece = [](std::uint16_t units, bool more, std::size_t payload) {
        return ip6().fragment(units, more).payload(payload).bytes();
    };
    test::check_drops({
        {"more to come, multiple of 8", piece(1, true, 24), std::nullopt},
        {"more to come, 25 bytes", piece(1, true, 25), DropReason::fragment_length},
        {"first, 25 bytes", piece(0, true, 25), DropReason::fragment_length},
        {"last, 25 bytes", piece(1, false, 25), std::nullopt},
        {"payload ends at 65535", piece(8190, false, 15), std::nullopt},
        {"payload ends at 65536", piece(8190, false, 16), DropReason::fragment_length},
        {"with 8 bytes before each piece", ip6().hop_by_hop().fragment(8190, false).payload(8).bytes(),
         DropReason::fragment_length},
        {"7 with 8 bytes before each piece", ip6().hop_by_hop().fragment(8190, false).payload(7).bytes(), std::nullopt},
        {"first without its upper header", ip6().fragment(0, true).destination_options().bytes(), std::nullopt},
        {"TCP over the flags", ip6().fragment(1, false).tcp(1, 2).bytes(), DropReason::fragment_offset},
        {"first that ends inside TCP", ip6({{}, {}, 64, {}, {}, {}}).fragment(0, true).tcp(1, 2).payload(4).bytes(),
         std::nullopt},
        {"first that ends inside a header", ip6().fragment(0, true).extension(60, {}, 3).bytes(),
         DropReason::ip6_extension_truncated},
    });
}

TEST_CASE("parse: IPv6 martians are dropped at the edges of each block", "[parse]") {
    struct Case {
        const char* address;
        std::optional<DropReason> as_source, as_destination;
    };
    const auto ms = DropReason::martian_source;
    const auto md = DropReason::martian_destination;
    const std::vector<Case> cases = {
        {"::", ms, md},
        {"::1", ms, md},
        {"::2", {}, {}},
        {"::ffff:10.0.0.1", ms, md},
        {"::fffe:10.0.0.1", {}, {}},
        {"::1:ffff:a00:1", {}, {}},
        {"64:ff9b::a00:1", {}, {}},
        {"2001:db8::", {}, {}},
        {"fc00::1", {}, {}},
        {"fdff:ffff::1", {}, {}},
        {"fe7f:ffff::1", {}, {}},
        {"fe80::1", ms, md},
        {"febf:ffff::1", ms, md},
        {"fec0::1", {}, {}},
        {"feff:ffff::1", {}, {}},
        {"ff00::", ms, DropReason::multicast},
        {"ff02::1", ms, DropReason::multicast},
        {"ff0e::1", ms, DropReason::multicast},
        {"ffff:ffff::ffff", ms, DropReason::multicast},
    };
    for (const auto& c : cases) {
        INFO(c.address);
        CHECK(test::name_of(test::parse(with_udp(ip6({}, c.address, "2001:db8:1::1"))).drop) ==
              test::name_of(c.as_source));
        CHECK(test::name_of(test::parse(with_udp(ip6({}, "2001:db8::1", c.address))).drop) ==
              test::name_of(c.as_destination));
    }
}
