// SPDX-License-Identifier: BSD-3-Clause
// Valid frames with a few bytes changed, cut or stretched, against the slow parser. Mutations aim at the headers,
// because a wrong byte there decides something; checksums are put right half the time, or nearly all IPv4 frames would
// end there.
#include <cstring>

#include "net/checksum.h"
#include "pipeline/parse_rig.h"
#include "support/random.h"

using namespace cachewire;
using test::Bytes;
using test::PacketBuilder;

namespace {

std::vector<Bytes> valid_frames() {
    const auto ip4 = [](std::uint16_t vlan, const test::Ip4Fields& fields) {
        PacketBuilder builder;
        builder.eth();
        if (vlan != 0) builder.vlan(vlan);
        return builder.ip4("10.0.0.1", "10.0.1.1", fields);
    };
    const auto ip6 = [] { return PacketBuilder().eth().ip6("2001:db8::1", "2001:db8:1::1"); };
    test::Ip4Fields options, more, last;
    options.options = {148, 4, 0, 0, 7, 7, 4, 0, 0, 0, 0, 1};
    more.fragment = 0x2000;
    last.fragment = 100;
    return {
        ip4(0, {}).udp(1000, 53).payload(18).bytes(),
        ip4(0, {}).tcp(1000, 80).payload(6).bytes(),
        ip4(100, {}).tcp(1000, 80).pad_to(68).bytes(),
        ip4(200, {}).icmp(8, 0, 77).payload(32).bytes(),
        ip4(0, {}).icmp(3, 1).payload(28).bytes(),
        ip4(0, options).sctp(1, 2).payload(8).bytes(),
        ip4(0, more).udp(1000, 53).payload(24).bytes(),
        ip4(0, last).payload(32).bytes(),
        ip6().tcp(1000, 443).payload(9).bytes(),
        ip6().udp(1000, 53).pad_to(80).bytes(),
        ip6().icmp6(128, 0, 3).payload(8).bytes(),
        ip6().icmp6(1, 0).payload(48).bytes(),
        ip6()
            .hop_by_hop({5, 2, 0, 0, 1, 0})
            .routing(4, 1, Bytes(20))
            .fragment(0, true)
            .authentication()
            .tcp(1, 2)
            .payload(4)
            .bytes(),
        ip6().destination_options(Bytes(38)).fragment(5, false).payload(40).bytes(),
        PacketBuilder()
            .eth()
            .vlan(100, 0x88a8)
            .vlan(7)
            .ip6("2001:db8::1", "2001:db8:1::1")
            .destination_options()
            .udp(1, 2)
            .bytes(),
        PacketBuilder().eth().ip6("fe80::1", "fe80::2", {.hop_limit = 255}).icmp6(135, 0).payload(16).bytes(),
        // Two that are at a limit and one step over it.
        PacketBuilder().eth().vlan(0).vlan(100).vlan(7).ip4("10.0.0.1", "10.0.1.1").udp(1, 2).bytes(),
        ip6().destination_options().destination_options(Bytes(246)).destination_options().udp(1, 2).bytes(),
        ip4(101, {}).udp(1, 2).payload(18).bytes(),
        ip6().fragment(1, false).tcp(1, 2).bytes(),
        PacketBuilder().eth(test::kBroadcastMac).ip4("10.0.0.1", "10.0.0.255").udp(1, 2).bytes(),
    };
}

void mutate(Bytes& frame, std::mt19937_64& random) {
    // Values that are edges somewhere: lengths, types, versions, protocols.
    static constexpr std::uint8_t kEdges[] = {0,   1,    2,    4,    5,    6,    7,    8,    17,   20,
                                              40,  43,   44,   51,   58,   59,   60,   64,   127,  128,
                                              132, 0x45, 0x46, 0x81, 0x86, 0x88, 0xa8, 0xdd, 0xfe, 0xff};
    for (unsigned n = random() % 4; n-- > 0 && !frame.empty();) {
        const std::size_t at = random() % std::min<std::size_t>(frame.size(), 130);
        frame[at] = static_cast<std::uint8_t>(random() % 2 != 0 ? kEdges[random() % std::size(kEdges)] : random());
    }
    if (random() % 4 == 0) frame.resize(random() % (frame.size() + 10));
}

void put_checksum_right(Bytes& frame, std::size_t ip) {
    if (frame.size() < ip + 20) return;
    const std::size_t header = std::min<std::size_t>(std::size_t{4} * (frame[ip] & 15u), frame.size() - ip);
    if (header < 20) return;
    frame[ip + 10] = frame[ip + 11] = 0;
    const std::uint16_t sum = net::checksum(std::span(frame).subspan(ip, header));
    std::memcpy(&frame[ip + 10], &sum, 2);
}

}  // namespace

TEST_CASE("parse: mutated frames get the slow parser's answer and no byte past them is read", "[parse]") {
    auto random = test::random_engine();
    const auto port = test::parse_port();
    const auto frames = valid_frames();
    std::vector<unsigned> seen(pipeline::kDropReasons + 1, 0);
    for (unsigned round = 0; round < 300000; ++round) {
        Bytes frame = frames[random() % frames.size()];
        mutate(frame, random);
        if (random() % 2 == 0) put_checksum_right(frame, 14);
        if (random() % 8 == 0) put_checksum_right(frame, 18);
        const auto fast = test::parse_bytes(frame, port);
        const auto slow = test::parse_slowly(frame, port);
        ++seen[fast.drop ? static_cast<unsigned>(*fast.drop) : pipeline::kDropReasons];
        if (test::same_answer(fast, slow)) continue;
        INFO("frame " << test::hex(frame) << ": " << test::name_of(fast.drop)
                      << ", slowly: " << test::name_of(slow.drop));
        REQUIRE(test::same_answer(fast, slow));
    }
    // The mutations reach what they are for: every reason of the parser turns up, and so do packets that pass.
    CHECK(seen[pipeline::kDropReasons] > 1000);
    for (unsigned reason = 0; reason <= static_cast<unsigned>(pipeline::DropReason::udp_length); ++reason) {
        // The stage's.
        if (reason == static_cast<unsigned>(pipeline::DropReason::headers_chained) ||
            reason == static_cast<unsigned>(pipeline::DropReason::pair_non_ip))
            continue;
        INFO(pipeline::kDropReasonTexts[reason].name);
        CHECK(seen[reason] != 0);
    }
}

TEST_CASE("parse: random bytes behind a right address get the slow parser's answer", "[parse]") {
    auto random = test::random_engine();
    const auto port = test::parse_port();
    for (unsigned round = 0; round < 100000; ++round) {
        Bytes frame(random() % 120);
        for (auto& b : frame) b = static_cast<std::uint8_t>(random());
        std::copy_n(test::kRouterMac.bytes.begin(), std::min<std::size_t>(6, frame.size()), frame.begin());
        if (frame.size() > 14) {
            frame[12] = random() % 2 != 0 ? 0x08 : 0x86;
            frame[13] = frame[12] == 0x08 ? 0x00 : 0xdd;
            frame[14] = static_cast<std::uint8_t>(frame[12] == 0x08 ? 0x45 : 0x60);
        }
        const auto fast = test::parse_bytes(frame, port);
        const auto slow = test::parse_slowly(frame, port);
        if (test::same_answer(fast, slow)) continue;
        INFO("frame " << test::hex(frame) << ": " << test::name_of(fast.drop)
                      << ", slowly: " << test::name_of(slow.drop));
        REQUIRE(test::same_answer(fast, slow));
    }
}
