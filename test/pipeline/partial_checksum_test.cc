// SPDX-License-Identifier: BSD-3-Clause
// The expected packet is built whole; the packet under test is the same with the folded pseudo-header sum in its field,
// as Linux leaves it.
#include "pipeline/partial_checksum.h"

#include <cstring>
#include <vector>

#include "net/checksum.h"
#include "pipeline/stage_rig.h"
#include "pipeline/stages/7_tx.h"
#include "support/catch.h"
#include "support/mbuf.h"
#include "support/packet_builder.h"
#include "support/random.h"

namespace cachewire::pipeline {

namespace {

using test::Bytes;
using test::PacketBuilder;

struct Packet {
    Bytes whole, partial;
    net::FlowKey key;
    unsigned l4_offset, l4_length;
};

net::Address address(bool ip6, unsigned n) {
    if (!ip6) return net::Address::from_v4(0x0a000000 + n);
    net::Address a;
    a.bytes = {0x20, 0x01, 0x0d, 0xb8};
    a.bytes[15] = static_cast<std::uint8_t>(n);
    return a;
}

Packet make_packet(bool ip6, bool tcp, std::size_t payload) {
    PacketBuilder b;
    b.eth();
    if (ip6)
        b.ip6("2001:db8::1", "2001:db8::2");
    else
        b.ip4("10.0.0.1", "10.0.0.2");
    if (tcp)
        b.tcp(1000, 80);
    else
        b.udp(1000, 53);
    b.payload(payload);
    Packet p;
    p.whole = p.partial = b.bytes();
    p.key.src = address(ip6, 1);
    p.key.dst = address(ip6, 2);
    p.key.proto = tcp ? 6 : 17;
    p.l4_offset = ip6 ? 54 : 34;
    p.l4_length = static_cast<unsigned>(p.whole.size()) - p.l4_offset;
    const std::size_t field = p.l4_offset + (tcp ? 16 : 6);
    // RFC 9293 3.1 and RFC 8200 8.1, byte by byte.
    std::uint32_t sum = p.key.proto + p.l4_length;
    for (std::size_t i = ip6 ? 0 : 12; i < 16; i += 2)
        sum += 256u * p.key.src.bytes[i] + p.key.src.bytes[i + 1] + 256u * p.key.dst.bytes[i] + p.key.dst.bytes[i + 1];
    while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
    p.partial[field] = static_cast<std::uint8_t>(sum >> 8);
    p.partial[field + 1] = static_cast<std::uint8_t>(sum);
    return p;
}

}  // namespace

TEST_CASE("partial checksum: finished for TCP and UDP in both families, whole and in chains", "[pipeline]") {
    for (const bool ip6 : {false, true})
        for (const bool tcp : {false, true})
            for (const std::size_t payload : {0, 1, 7, 64, 1399}) {
                const Packet p = make_packet(ip6, tcp, payload);
                for (const bool chained : {false, true}) {
                    INFO("IPv6 " << ip6 << ", TCP " << tcp << ", payload " << payload << ", chained " << chained);
                    std::vector<std::size_t> cuts;
                    if (chained) cuts = {p.l4_offset + (tcp ? 20u : 8u)};
                    if (chained && payload > 8) cuts.push_back(p.whole.size() - 3);  // an odd place
                    if (chained && payload == 0) continue;
                    auto mbuf = test::make_mbuf(p.partial, cuts);
                    CHECK(complete_checksum(mbuf.get(), p.l4_offset, p.l4_length, p.key));
                    CHECK(test::bytes_of(mbuf.get()) == p.whole);
                    // Finished is finished.
                    CHECK_FALSE(complete_checksum(mbuf.get(), p.l4_offset, p.l4_length, p.key));
                    CHECK(test::bytes_of(mbuf.get()) == p.whole);
                }
            }
}

TEST_CASE("partial checksum: every other value stays, right or wrong", "[pipeline]") {
    auto random = test::random_engine();
    for (unsigned round = 0; round < 2000; ++round) {
        Packet p = make_packet(random() % 2, random() % 2, random() % 100);
        const std::size_t field = p.l4_offset + (p.key.proto == 6 ? 16 : 6);
        const Bytes partial = p.partial;
        p.partial[field] = static_cast<std::uint8_t>(random());
        p.partial[field + 1] = static_cast<std::uint8_t>(random());
        if (p.partial == partial) continue;
        auto mbuf = test::make_mbuf(p.partial);
        CHECK_FALSE(complete_checksum(mbuf.get(), p.l4_offset, p.l4_length, p.key));
        CHECK(test::bytes_of(mbuf.get()) == p.partial);
    }
}

TEST_CASE("partial checksum: fragments and other protocols are left alone", "[pipeline]") {
    Packet p = make_packet(false, true, 64);
    auto mbuf = test::make_mbuf(p.partial);
    net::FlowKey key = p.key;
    key.match_flags = net::kFragment | net::kFirstFragment;
    CHECK_FALSE(complete_checksum(mbuf.get(), p.l4_offset, p.l4_length, key));
    key = p.key;
    key.proto = 132;
    CHECK_FALSE(complete_checksum(mbuf.get(), p.l4_offset, p.l4_length, key));
    CHECK_FALSE(complete_checksum(mbuf.get(), p.l4_offset, 17, p.key));
    CHECK(test::bytes_of(mbuf.get()) == p.partial);
}

TEST_CASE("partial checksum: only where the ingress port's peers leave them", "[pipeline]") {
    const bool leaves = GENERATE(false, true);
    INFO("port leaves checksums partial: " << leaves);
    test::StageRig rig;
    rig.worker->tenants = std::vector<TenantCounters>(kMaxTenants);
    rig.snapshot.ports.resize(2);
    rig.snapshot.ports[1].partial_checksums = true;
    rig.snapshot.partial_checksums = true;
    rig.snapshot.next_hops.resize(2);
    rig.snapshot.next_hops[1].l2_length = 14;
    const Packet p = make_packet(false, true, 20);
    rig.begin({p.key});
    Lane& lane = rig.worker->burst.lane(0);
    lane.mbuf = test::make_mbuf(p.partial).release();
    lane.in_port = leaves ? 1 : 0;
    lane.l3_offset = 14;
    lane.l4_offset = static_cast<std::uint16_t>(p.l4_offset);
    lane.l3_length = static_cast<std::uint16_t>(p.whole.size() - 14);
    lane.next_hop = 1;
    rig.run<stages::Tx>();
    REQUIRE(rig.worker->tx[0].size() == 1);
    const Bytes sent = test::bytes_of(lane.mbuf);
    const Bytes& want = leaves ? p.whole : p.partial;
    CHECK(Bytes(sent.begin() + p.l4_offset, sent.end()) == Bytes(want.begin() + p.l4_offset, want.end()));
    rig.worker->tx[0].discard();
}

}  // namespace cachewire::pipeline
