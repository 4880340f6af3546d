// SPDX-License-Identifier: BSD-3-Clause
// Transparent pairs through the whole path of one worker: what leaves is what came in, by the other port, and lists and
// sessions hold as they do for what is routed.
#include "control/memo_rig.h"
#include "support/catch.h"

namespace cachewire {
namespace {

using test::Bytes;

const char* const kHead = R"(version: 1
ports: [{name: a, device: net_null0}, {name: b, device: net_null1}, {name: c, device: net_null2}, {name: d, device: net_null3}]
)";
const char* const kPairs = R"(
tenants: [{name: line, id: 1, match: [{port: a}, {port: b}, {port: c}, {port: d}], acl: list}]
cross_connects: [{name: first, ports: [a, b]}, {name: second, ports: [c, d], non_ip: drop}]
acl:
  - {name: list, default: deny, stateful: true, rules: [
      {action: deny, proto: udp, dst_ports: 53, out: b}, {action: permit, in: a}, {action: permit, in: c}]}
)";

struct PairRig {
    PairRig() : builder(infos()) {}
    static std::map<std::string, control::PortInfo> infos() {
        std::map<std::string, control::PortInfo> ports;
        for (std::uint16_t i = 0; i < 4; ++i)
            ports[std::string(1, static_cast<char>('a' + i))] = {
                i, 1, net::Mac{{2, 0, 0, 0, 0, static_cast<std::uint8_t>(i)}}};
        return ports;
    }
    std::string to(const char* port, const Bytes& frame) {
        std::string text = fmt::format("to {}:", builder.port(port));
        for (const std::uint8_t byte : frame) text += fmt::format(" {:02x}", byte);
        return text;
    }
    std::string send(const pipeline::Snapshot& snapshot, const char* port, const Bytes& frame) {
        return runner.run_one(snapshot, {builder.port(port), frame});
    }

    test::Builder builder;
    test::Runner runner;
};

Bytes udp(const char* src, const char* dst, std::uint16_t from, std::uint16_t to, std::uint8_t ttl = 64) {
    test::PacketBuilder packet;
    packet.eth(test::kHostMac, net::Mac{{2, 9, 9, 9, 9, 9}});
    if (std::string_view(src).find(':') == std::string_view::npos) {
        packet.ip4(src, dst, {.ttl = ttl});
    } else {
        packet.ip6(src, dst, {.hop_limit = ttl});
    }
    return packet.udp(from, to).payload(20).bytes();
}

TEST_CASE_METHOD(PairRig, "pair: frames leave by the other port as they came, with and without a memo", "[control]") {
    const auto snapshot = builder.build(std::string(kHead) + kPairs);
    for (const auto& [src, dst] : {std::pair("10.0.0.1", "10.0.0.2"), std::pair("2001:db8::1", "2001:db8::2")}) {
        const Bytes out = udp(src, dst, 1000, 2000, 1), back = udp(dst, src, 2000, 1000, 1);
        CHECK(send(*snapshot, "b", back) == "acl_default");
        for (int i = 0; i < 3; ++i) {
            CHECK(send(*snapshot, "a", out) == to("b", out));
            CHECK(send(*snapshot, "b", back) == to("a", back));
        }
    }
    CHECK(runner.worker->memo.hits.read() == 10);  // all but each session's first packet
    CHECK(runner.worker->memo.misses.read() == 4);
    CHECK(send(*snapshot, "a", udp("10.0.0.1", "10.0.0.2", 1000, 53)) == "acl_deny");
    // Two pairs of one tenant share its sessions, as two links of one path may; each keeps to its ports.
    const Bytes again = udp("10.0.0.1", "10.0.0.2", 1000, 2000, 1);
    CHECK(send(*snapshot, "c", again) == to("d", again));
    CHECK(send(*snapshot, "a", again) == to("b", again));
    CHECK(send(*snapshot, "c", udp("10.0.0.1", "10.0.0.2", 1001, 53)) ==
          to("d", udp("10.0.0.1", "10.0.0.2", 1001, 53)));
}

TEST_CASE_METHOD(PairRig, "pair: what is no IP passes or is dropped as the pair says", "[control]") {
    const auto snapshot = builder.build(std::string(kHead) + kPairs);
    Bytes frame(64, 0xab);
    frame[12] = 0x08, frame[13] = 0x06;
    CHECK(send(*snapshot, "a", frame) == to("b", frame));
    CHECK(send(*snapshot, "b", frame) == to("a", frame));
    CHECK(send(*snapshot, "c", frame) == "pair_non_ip");
    frame[12] = 0x00, frame[13] = 0x32;  // 802.3 with a length
    CHECK(send(*snapshot, "a", frame) == to("b", frame));
    CHECK(send(*snapshot, "a", Bytes(13, 1)) == "frame_short");
}

TEST_CASE_METHOD(PairRig, "pair: a class marks DSCP and nothing else, and nothing in what is no IP", "[control]") {
    const auto snapshot = builder.build(std::string(kHead) + kPairs +
                                        "qos: {classes: [{name: gold, dscp: ef, pcp: 5}, {name: low, dscp: cs1}]}\n");
    const auto frame = [](std::uint8_t tos, std::uint8_t pcp, bool ip6) {
        test::PacketBuilder packet;
        packet.eth(test::kHostMac, net::Mac{{2, 9, 9, 9, 9, 9}}).vlan(7, 0x8100, pcp);
        if (ip6) {
            packet.ip6("2001:db8::1", "2001:db8::2", {.traffic_class = tos, .hop_limit = 1});
        } else {
            packet.ip4("10.0.0.1", "10.0.0.2", {.tos = tos, .ttl = 1});
        }
        return packet.udp(1000, 2000).payload(20).bytes();
    };
    for (const bool ip6 : {false, true})
        for (int i = 0; i < 3; ++i) {
            INFO("packet " << i << ", IPv6: " << ip6);
            CHECK(send(*snapshot, "a", frame(3, 5, ip6)) == to("b", frame(46 << 2 | 3, 5, ip6)));
            CHECK(send(*snapshot, "a", frame(46 << 2 | 1, 2, ip6)) == to("b", frame(46 << 2 | 1, 2, ip6)));
            CHECK(send(*snapshot, "a", frame(1, 3, ip6)) == to("b", frame(1, 3, ip6)));
        }
    CHECK(send(*snapshot, "a", frame(3, 5, false)) == to("b", frame(46 << 2 | 3, 5, false)));  // in the same lane
    Bytes other(64, 0xab);
    other[12] = 0x81, other[13] = 0x00, other[14] = 0xa0, other[15] = 7;  // priority 5
    other[16] = 0x08, other[17] = 0x06;
    CHECK(send(*snapshot, "a", other) == to("b", other));
    other[12] = 0x88, other[13] = 0xcc;
    CHECK(send(*snapshot, "a", other) == to("b", other));
}

TEST_CASE_METHOD(PairRig, "pair: a reload that makes a router of it leaves no packet on the old way", "[control]") {
    const auto pair = builder.build(std::string(kHead) + R"(
tenants: [{name: line, id: 1, match: [{port: a}, {port: b}], sessions: track}]
cross_connects: [{name: first, ports: [a, b]}]
)");
    const Bytes out = udp("10.0.0.9", "10.0.1.9", 1000, 2000);
    CHECK(send(*pair, "a", out) == to("b", out));
    const auto router = builder.build(std::string(kHead) + R"(
tenants: [{name: line, id: 1, match: [{port: a}, {port: b}], sessions: track}]
interfaces: [{name: ia, port: a, addresses: [10.0.0.1/24]}, {name: ib, port: b, addresses: [10.0.1.1/24]}]
neighbors: [{tenant: line, address: 10.0.1.9, mac: "02:00:00:00:01:09"}]
)");
    CHECK(send(*router, "a", out) == "foreign_mac");
    Bytes ours = out;
    std::copy_n(PairRig::infos()["a"].mac.bytes.begin(), 6, ours.begin());
    const std::string routed = send(*router, "a", ours);
    CHECK(routed.starts_with(fmt::format("to {}: 02 00 00 00 01 09", builder.port("b"))));
    const auto again = builder.build(std::string(kHead) + R"(
tenants: [{name: line, id: 1, match: [{port: a}, {port: b}], sessions: track}]
cross_connects: [{name: first, ports: [a, b]}]
)");
    CHECK(send(*again, "a", ours) == to("b", ours));
}

}  // namespace
}  // namespace cachewire
