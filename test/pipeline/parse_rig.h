#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What the parser's tests share: a port with every kind of attachment, and one call that parses a frame and holds the
// answer against the slow parser. The frame stands alone on the heap, so that ASan sees any byte read past it.
#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "pipeline/parse_oracle.h"
#include "pipeline/parser.h"
#include "support/catch.h"
#include "support/packet_builder.h"

namespace cachewire::test {

inline std::string name_of(const std::optional<pipeline::DropReason>& reason) {
    return reason ? std::string(pipeline::kDropReasonTexts[static_cast<unsigned>(*reason)].name) : "passes";
}

inline pipeline::Port parse_port() {
    pipeline::Port port;
    port.mac = kRouterMac;
    port.untagged = {1, 10};
    port.tagged = {{100, 0, {2, 20}}, {100, 7, {3, 30}}, {101, 0, {4, pipeline::kNoInterface}}};
    port.wildcards = {{100, 0, {5, 50}}, {200, 0, {6, 60}}};
    port.by_vlan = pipeline::attachments_by_vlan(port);
    return port;
}

struct ParseResult {
    std::optional<pipeline::DropReason> drop;
    pipeline::Parsed parsed;
    net::FlowKey key;
};

inline ParseResult parse_bytes(const Bytes& bytes, const pipeline::Port& port) {
    const auto alone = std::make_unique<std::uint8_t[]>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), alone.get());
    ParseResult result;
    const pipeline::Frame frame{alone.get(), static_cast<std::uint32_t>(bytes.size())};
    result.drop = pipeline::parse_packet(frame, port, net::HashSeed{}, result.parsed, result.key);
    return result;
}

// True when both parsers say the same of everything that a stage could see.
inline bool same_answer(const ParseResult& fast, const OracleResult& slow) {
    if (fast.drop != slow.drop || fast.parsed.tenant != slow.tenant) return false;
    if (fast.drop == pipeline::DropReason::multicast || fast.drop == pipeline::DropReason::martian_destination)
        return fast.parsed.in_interface == slow.in_interface && fast.parsed.l3_offset == slow.l3_offset;
    if (fast.drop) return true;
    net::FlowKey hashed = slow.key;
    if ((hashed.match_flags & (net::kFirstFragment | net::kLaterFragment)) != 0)
        hashed.src_port_be = hashed.dst_port_be = 0;
    const unsigned flags = (slow.ipv6 ? pipeline::kLaneIpv6 : 0) | (slow.icmp_error ? pipeline::kLaneIcmpError : 0);
    return fast.parsed.in_interface == slow.in_interface && fast.parsed.l3_offset == slow.l3_offset &&
           fast.parsed.l3_length == slow.l3_length && fast.parsed.l4_offset == slow.l4_offset &&
           fast.parsed.ttl == slow.ttl && fast.parsed.flags == flags &&
           fast.parsed.hash == net::flow_hash(hashed, net::HashSeed{}) &&
           std::memcmp(&fast.key, &slow.key, sizeof(net::FlowKey)) == 0;
}

inline std::string hex(const Bytes& bytes) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (const std::uint8_t b : bytes) {
        text += kDigits[b >> 4];
        text += kDigits[b & 15];
    }
    return text;
}

// Parses, compares with the slow parser, and returns the answer for further checks.
inline ParseResult parse(const Bytes& bytes, const pipeline::Port& port = parse_port()) {
    const ParseResult fast = parse_bytes(bytes, port);
    const OracleResult slow = parse_slowly(bytes, port);
    INFO("frame " << hex(bytes) << ": " << name_of(fast.drop) << ", slowly: " << name_of(slow.drop));
    CHECK(same_answer(fast, slow));
    return fast;
}

struct DropCase {
    std::string what;
    Bytes packet;
    std::optional<pipeline::DropReason> expected;
};

inline void check_drops(const std::vector<DropCase>& cases, const pipeline::Port& port = parse_port()) {
    for (const auto& c : cases) {
        INFO(c.what);
        CHECK(name_of(parse(c.packet, port).drop) == name_of(c.expected));
    }
}

inline Bytes cut(Bytes bytes, std::size_t size) {
    bytes.resize(size);
    return bytes;
}

}  // namespace cachewire::test
