// SPDX-License-Identifier: BSD-3-Clause
// RFC 1812 5.2.2 and 5.3.7, options and fragments of IPv4.
#include "pipeline/parse_rig.h"

using namespace cachewire;
using pipeline::DropReason;
using test::Bytes;
using test::PacketBuilder;

namespace {

Bytes udp4(const test::Ip4Fields& fields = {}, std::size_t payload = 18, const char* src = "10.0.0.1",
           const char* dst = "10.0.1.1") {
    return PacketBuilder().eth().ip4(src, dst, fields).udp(1000, 53).payload(payload).bytes();
}

test::Ip4Fields with_length(std::size_t total) {
    test::Ip4Fields fields;
    fields.total_length = static_cast<std::uint16_t>(total);
    return fields;
}

test::Ip4Fields with_options(const Bytes& options) {
    test::Ip4Fields fields;
    fields.options = options;
    return fields;
}

test::Ip4Fields with_fragment(std::uint16_t word) {
    test::Ip4Fields fields;
    fields.fragment = word;
    return fields;
}

constexpr std::uint16_t kMore = 0x2000;

}  // namespace

TEST_CASE("parse: an ordinary IPv4 packet fills lane and key", "[parse]") {
    test::Ip4Fields fields;
    fields.tos = 0xb9;  // EF and an ECN bit
    fields.ttl = 17;
    const auto result = test::parse(udp4(fields));
    REQUIRE_FALSE(result.drop);
    CHECK(result.parsed.l3_offset == 14);
    CHECK(result.parsed.l3_length == 46);
    CHECK(result.parsed.l4_offset == 34);
    CHECK(result.parsed.ttl == 17);
    CHECK(result.parsed.flags == 0);
    CHECK(result.parsed.tenant == 1);
    CHECK(result.parsed.in_interface == 10);
    CHECK(result.key.src == net::Address::from_v4(0x0a000001));
    CHECK(result.key.dst == net::Address::from_v4(0x0a000101));
    CHECK(result.key.is_v4());
    CHECK(result.key.src_port_be == __builtin_bswap16(1000));
    CHECK(result.key.dst_port_be == __builtin_bswap16(53));
    CHECK(result.key.tenant == 1);
    CHECK(result.key.proto == 17);
    CHECK(result.key.reserved == 0);
    CHECK(result.key.dscp == 46);
    CHECK(result.key.match_flags == net::kL4Known);
    CHECK(result.parsed.hash == net::flow_hash(result.key, net::HashSeed{}));
}

TEST_CASE("parse: both directions of a flow have one hash, and another seed gives another", "[parse]") {
    const auto there = test::parse(PacketBuilder().eth().ip4("10.0.0.1", "10.0.1.1").tcp(1000, 80).bytes());
    const auto back = test::parse(PacketBuilder().eth().ip4("10.0.1.1", "10.0.0.1").tcp(80, 1000).bytes());
    CHECK(there.parsed.hash == back.parsed.hash);
    const Bytes bytes = udp4();
    const pipeline::Frame frame{bytes.data(), static_cast<std::uint32_t>(bytes.size())};
    test::ParseResult seeded;
    seeded.drop = pipeline::parse_packet(frame, test::parse_port(), {1, 2, 3}, seeded.parsed, seeded.key);
    CHECK(seeded.parsed.hash != test::parse(bytes).parsed.hash);
}

TEST_CASE("parse: broken IPv4 headers are dropped, each by its reason", "[parse]") {
    test::Ip4Fields version5, ihl3, ihl15, options_version5;
    version5.version = 5;
    ihl3.header_words = 3;
    ihl15.header_words = 15;
    options_version5.options = {1, 1, 1, 1};
    options_version5.version = 5;
    std::vector<test::DropCase> cases = {
        {"version 5", udp4(version5), DropReason::ip4_version},
        {"version 5 and options", udp4(options_version5), DropReason::ip4_version},
        {"header length 12", udp4(ihl3), DropReason::ip4_header_length},
        {"header length over the packet", test::cut(udp4(ihl15), 14 + 59), DropReason::ip4_header_length},
    };
    for (unsigned version = 0; version < 16; ++version) {
        if (version == 4) continue;
        test::Ip4Fields fields;
        fields.version = static_cast<std::uint8_t>(version);
        cases.push_back({"version " + std::to_string(version), udp4(fields), DropReason::ip4_version});
    }
    for (unsigned words = 0; words < 5; ++words) {
        test::Ip4Fields fields;
        fields.header_words = static_cast<std::uint8_t>(words);
        cases.push_back({"header words " + std::to_string(words), udp4(fields), DropReason::ip4_header_length});
    }
    for (std::size_t bytes = 0; bytes < 20; ++bytes)
        cases.push_back({"only " + std::to_string(bytes) + " bytes of it", test::cut(udp4(), 14 + bytes),
                         DropReason::ip4_truncated});
    test::check_drops(cases);
}

TEST_CASE("parse: the IPv4 total length lies between the header and the frame", "[parse]") {
    test::Ip4Fields long_header = with_options({1, 1, 1, 1});
    long_header.total_length = 23;
    test::check_drops({
        {"exactly the frame", udp4(with_length(46)), std::nullopt},
        {"one byte over the frame", udp4(with_length(47)), DropReason::ip4_total_length},
        {"65535", udp4(with_length(65535)), DropReason::ip4_total_length},
        {"one byte under the frame", udp4(with_length(45)), DropReason::udp_length},  // UDP says more
        {"0, as segmentation offload leaves it", udp4(with_length(0)), DropReason::ip4_total_length},
        {"19", udp4(with_length(19)), DropReason::ip4_total_length},
        {"header only", udp4(with_length(20)), DropReason::l4_truncated},
        {"under a header with options", udp4(long_header), DropReason::ip4_total_length},
    });
}

TEST_CASE("parse: the IPv4 checksum is verified unless the device said what it found", "[parse]") {
    const Bytes good = udp4();
    const Bytes good_options = udp4(with_options({148, 4, 0, 0}));
    for (const Bytes& packet : {good, good_options}) {
        const std::size_t header = std::size_t{4} * (packet[14] & 15u);
        for (std::size_t bit = 0; bit < 8 * header; ++bit) {
            Bytes broken = packet;
            broken[14 + bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
            INFO("bit " << bit);
            CHECK(test::parse(broken).drop);
        }
        Bytes wrong = packet;
        wrong[14 + 10] ^= 1;
        struct Case {
            const Bytes& bytes;
            pipeline::IpChecksum::Value device;
            std::optional<DropReason> expected;
        };
        for (const Case& c :
             std::initializer_list<Case>{{packet, pipeline::IpChecksum::unknown, std::nullopt},
                                         {wrong, pipeline::IpChecksum::unknown, DropReason::ip4_checksum},
                                         {wrong, pipeline::IpChecksum::good, std::nullopt},
                                         {packet, pipeline::IpChecksum::bad, DropReason::ip4_checksum},
                                         {wrong, pipeline::IpChecksum::bad, DropReason::ip4_checksum}}) {
            pipeline::Frame frame{c.bytes.data(), static_cast<std::uint32_t>(c.bytes.size()), c.device};
            test::ParseResult result;
            result.drop = pipeline::parse_packet(frame, test::parse_port(), {}, result.parsed, result.key);
            INFO("device says " << static_cast<unsigned>(c.device));
            CHECK(test::name_of(result.drop) == test::name_of(c.expected));
        }
    }
}

TEST_CASE("parse: Ethernet padding changes nothing that is known of a packet", "[parse]") {
    const auto bare = test::parse(udp4({}, 0));
    REQUIRE_FALSE(bare.drop);
    CHECK(bare.parsed.l3_length == 28);
    for (const std::size_t size : {43u, 60u, 64u, 1514u}) {
        INFO("padded to " << size);
        for (const std::uint8_t with : {0x00, 0xff, 0xa5}) {
            const auto padded =
                test::parse(PacketBuilder().eth().ip4("10.0.0.1", "10.0.1.1").udp(1000, 53).pad_to(size, with).bytes());
            REQUIRE_FALSE(padded.drop);
            CHECK(padded.parsed.l3_length == 28);
            CHECK(padded.parsed.hash == bare.parsed.hash);
            CHECK(std::memcmp(&padded.key, &bare.key, sizeof bare.key) == 0);
        }
    }
    // What the IP length leaves out is not there for L4 either.
    test::check_drops({
        {"TCP header that only the padding completes",
         PacketBuilder().eth().ip4("10.0.0.1", "10.0.1.1", with_length(39)).tcp(1, 2).pad_to(60).bytes(),
         DropReason::l4_truncated},
        {"UDP length that reaches into the padding",
         PacketBuilder().eth().ip4("10.0.0.1", "10.0.1.1").udp(1, 2, {9, {}}).pad_to(60).bytes(),
         DropReason::udp_length},
        {"fragment whose padding would make it a multiple of 8",
         PacketBuilder().eth().ip4("10.0.0.1", "10.0.1.1", with_fragment(kMore | 100)).payload(9).pad_to(60).bytes(),
         DropReason::fragment_length},
    });
}

TEST_CASE("parse: IPv4 options are walked and marked, source routes are refused", "[parse]") {
    struct Case {
        std::string what;
        Bytes options;
        bool passes;
    };
    const std::vector<Case> cases = {
        {"no-operations", {1, 1, 1, 1}, true},
        {"end of list, rubbish behind", {0, 131, 1, 0xff}, true},
        {"router alert", {148, 4, 0, 0}, true},
        {"record route", {7, 7, 4, 0, 0, 0, 0}, true},
        {"timestamp", {68, 8, 5, 0, 0, 0, 0, 0}, true},
        {"unknown option of 2 bytes", {200, 2, 0, 0}, true},
        {"option that ends with the header", {200, 4, 9, 9}, true},
        {"40 bytes", Bytes(40, 1), true},
        {"option one byte past the header", {200, 5, 9, 9}, false},
        {"length 255", {200, 255, 9, 9}, false},
        {"length 1", {200, 1, 9, 9}, false},
        {"length 0", {200, 0, 9, 9}, false},
        {"type without its length", {1, 1, 1, 200}, false},
        {"record route without a pointer", {7, 2, 1, 1}, false},
        {"timestamp without flags", {68, 3, 5, 1}, false},
        {"loose source route", {131, 7, 4, 10, 0, 0, 9}, false},
        {"strict source route", {137, 7, 4, 10, 0, 0, 9}, false},
        {"source route behind other options", {1, 148, 4, 0, 0, 131, 3, 4}, false},
    };
    for (const auto& c : cases) {
        INFO(c.what);
        const auto result = test::parse(udp4(with_options(c.options)));
        CHECK(test::name_of(result.drop) ==
              test::name_of(c.passes ? std::nullopt : std::optional(DropReason::ip4_options)));
        if (result.drop) continue;
        CHECK(result.key.match_flags == (net::kL4Known | net::kHasOptions));
        CHECK(result.parsed.l4_offset == 34 + (c.options.size() + 3) / 4 * 4);
        CHECK(result.key.dst_port_be == __builtin_bswap16(53));
    }
}

TEST_CASE("parse: IPv4 martians are dropped at the edges of each block", "[parse]") {
    struct Case {
        const char* address;
        std::optional<DropReason> as_source, as_destination;
    };
    const auto ms = DropReason::martian_source;
    const auto md = DropReason::martian_destination;
    const std::vector<Case> cases = {
        {"0.0.0.0", ms, md},
        {"0.255.255.255", ms, md},
        {"1.0.0.0", {}, {}},
        {"10.0.0.255", {}, {}},
        {"126.255.255.255", {}, {}},
        {"127.0.0.0", ms, md},
        {"127.255.255.255", ms, md},
        {"128.0.0.0", {}, {}},
        {"169.253.255.255", {}, {}},
        {"169.254.0.0", ms, md},
        {"169.254.255.255", ms, md},
        {"169.255.0.0", {}, {}},
        {"223.255.255.255", {}, {}},
        {"224.0.0.0", ms, DropReason::multicast},
        {"239.255.255.255", ms, DropReason::multicast},
        {"240.0.0.0", ms, md},
        {"255.255.255.254", ms, md},
        {"255.255.255.255", ms, DropReason::broadcast},
    };
    for (const auto& c : cases) {
        INFO(c.address);
        CHECK(test::name_of(test::parse(udp4({}, 18, c.address, "10.0.1.1")).drop) == test::name_of(c.as_source));
        CHECK(test::name_of(test::parse(udp4({}, 18, "10.0.0.1", c.address)).drop) == test::name_of(c.as_destination));
    }
}

TEST_CASE("parse: IPv4 fragments are told apart, and only the first has ports", "[parse]") {
    const auto fragment = [](std::uint16_t word, std::size_t payload) {
        return PacketBuilder()
            .eth()
            .ip4("10.0.0.1", "10.0.1.1", with_fragment(word))
            .udp(1000, 53, {2000, {}})
            .payload(payload)
            .bytes();
    };
    const auto whole = test::parse(udp4(with_fragment(0x4000)));
    REQUIRE_FALSE(whole.drop);
    CHECK(whole.key.match_flags == net::kL4Known);

    const auto first = test::parse(fragment(kMore, 16));
    REQUIRE_FALSE(first.drop);
    CHECK(first.key.match_flags == (net::kL4Known | net::kFragment | net::kFirstFragment));
    CHECK(first.key.dst_port_be == __builtin_bswap16(53));
    CHECK(first.parsed.l4_offset == 34);

    for (const std::uint16_t word : {kMore | 3, 3}) {
        const auto later = test::parse(fragment(word, 16));
        REQUIRE_FALSE(later.drop);
        CHECK(later.key.match_flags == (net::kFragment | net::kLaterFragment));
        CHECK(later.key.src_port_be == 0);
        CHECK(later.key.dst_port_be == 0);
        CHECK(later.key.proto == 17);
        CHECK(later.parsed.l4_offset == 0);
        CHECK(later.parsed.hash == first.parsed.hash);
    }
}

TEST_CASE("parse: IPv4 fragments that can't be pieces of a datagram are dropped", "[parse]") {
    const auto piece = [](std::uint16_t word, std::size_t payload, std::uint8_t proto = 17) {
        test::Ip4Fields fields = with_fragment(word);
        fields.proto = proto;
        return PacketBuilder().eth().ip4("10.0.0.1", "10.0.1.1", fields).payload(payload).bytes();
    };
    test::check_drops({
        {"ends at 65535", piece(8186, 27), std::nullopt},  // 65488 + 20 + 27
        {"ends at 65536", piece(8186, 28), DropReason::fragment_length},
        {"largest offset", piece(8191, 1), DropReason::fragment_length},
        {"more to come, multiple of 8", piece(kMore | 1, 24), std::nullopt},
        {"more to come, 25 bytes", piece(kMore | 1, 25), DropReason::fragment_length},
        {"last, 25 bytes", piece(1, 25), std::nullopt},
        {"first that ends inside TCP", piece(kMore, 16, 6), DropReason::l4_truncated},
        {"TCP at offset 8, over the flags", piece(1, 24, 6), DropReason::fragment_offset},
        {"TCP at offset 16", piece(2, 24, 6), std::nullopt},
        {"UDP at offset 8", piece(1, 24, 17), std::nullopt},
        {"reserved flag alone is no fragment", udp4(with_fragment(0x8000)), std::nullopt},
    });
}
