// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/stages/7_tx.h"

#include <array>
#include <vector>

#include "pipeline/stage_rig.h"
#include "pipeline/tx_flush.h"
#include "support/catch.h"
#include "support/mbuf.h"
#include "support/packet_builder.h"
#include "support/ring_port.h"

namespace cachewire::pipeline {

namespace {

using test::Bytes;
using test::PacketBuilder;

constexpr std::array<std::uint8_t, 12> kMacs = {2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1};

struct TxRig : test::StageRig {
    TxRig() {
        worker->tenants = std::vector<TenantCounters>(kMaxTenants);
        snapshot.ports.resize(2);
        snapshot.next_hops.resize(4);
        // 1: untagged, 2: one tag, 3: two tags
        for (std::uint16_t n = 1; n < 4; ++n) {
            route::NextHop& next_hop = snapshot.next_hops[n];
            next_hop.kind = route::NextHopKind::forward;
            std::copy(kMacs.begin(), kMacs.end(), next_hop.l2_header.begin());
            next_hop.l2_length = static_cast<std::uint8_t>(10 + 4 * n);
        }
        const std::array<std::uint8_t, 8> tags = {0x88, 0xa8, 0, 7, 0x81, 0, 0, 42};
        std::copy(tags.begin() + 4, tags.end(), snapshot.next_hops[2].l2_header.begin() + 12);
        std::copy(tags.begin(), tags.end(), snapshot.next_hops[3].l2_header.begin() + 12);
    }
    ~TxRig() {
        for (auto& buffer : worker->tx) buffer.discard();
    }

    Lane& lane(unsigned i) { return worker->burst.lane(static_cast<Burst::LaneIndex>(i)); }

    void begin_lane(rte_mbuf* mbuf, std::uint16_t l3_offset, std::uint16_t l3_length, bool ip6,
                    std::uint16_t next_hop) {
        begin({net::FlowKey{}});
        lane(0).mbuf = mbuf;
        lane(0).l3_offset = l3_offset;
        lane(0).l3_length = l3_length;
        lane(0).flags = ip6 ? kLaneIpv6 : 0;
        lane(0).next_hop = next_hop;
    }

    rte_mbuf* sent(unsigned port = 0) {
        REQUIRE(worker->tx[port].size() == 1);
        std::uint64_t bytes = 0;
        rte_mbuf* out = nullptr;
        worker->tx[port].flush_with(
            [&](rte_mbuf** mbufs, std::uint16_t) {
                out = mbufs[0];
                return 1u;
            },
            bytes);
        return out;
    }
};

struct Shape {
    const char* what;
    unsigned tags;
    bool ip6;
};
constexpr Shape kShapes[] = {{"IPv4", 0, false},          {"IPv4, one tag", 1, false}, {"IPv4, two tags", 2, false},
                             {"IPv6, untagged", 0, true}, {"IPv6, one tag", 1, true},  {"IPv6, two tags", 2, true}};

PacketBuilder l2(const Shape& shape) {
    PacketBuilder b;
    b.eth();
    if (shape.tags == 2) b.vlan(300, 0x88a8);
    if (shape.tags >= 1) b.vlan(301);
    return b;
}

PacketBuilder packet(const Shape& shape, std::uint8_t ttl) {
    PacketBuilder b = l2(shape);
    if (shape.ip6) {
        test::Ip6Fields fields;
        fields.hop_limit = ttl;
        b.ip6("2001:db8::1", "2001:db8::2", fields);
    } else {
        test::Ip4Fields fields;
        fields.ttl = ttl;
        b.ip4("10.0.0.1", "10.0.1.1", fields);
    }
    b.udp(1000, 53).payload(5);
    return b;
}

}  // namespace

// The expected packet is built from nothing with a TTL one less, so the checksum is computed anew and not updated.
TEST_CASE("tx stage: from every Ethernet header to every other, TTL one less, padding gone", "[pipeline]") {
    const unsigned before = (test::test_pool(), test::mbufs_in_use());
    for (const Shape& shape : kShapes) {
        for (std::uint16_t next_hop = 1; next_hop < 4; ++next_hop) {
            for (const unsigned ttl : {2u, 64u, 128u, 255u}) {
                for (const bool chained : {false, true}) {
                    INFO(shape.what << " to next hop " << next_hop << ", TTL " << ttl << ", chained " << chained);
                    TxRig rig;
                    const auto l3_offset = static_cast<std::uint16_t>(14 + 4 * shape.tags);
                    const Bytes bare = packet(shape, static_cast<std::uint8_t>(ttl)).bytes();
                    const Bytes in = packet(shape, static_cast<std::uint8_t>(ttl)).pad_to(120).bytes();
                    const Bytes want_l3 = packet(shape, static_cast<std::uint8_t>(ttl - 1)).bytes();
                    // Cuts in the payload and in the padding.
                    const std::array<std::size_t, 3> cuts = {bare.size() - 3, bare.size() + 2, 110};
                    rte_mbuf* mbuf = chained ? test::make_mbuf(in, cuts).release() : test::make_mbuf(in).release();
                    mbuf->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_IP_CKSUM_GOOD;
                    mbuf->packet_type = 0x11;
                    rig.begin_lane(mbuf, l3_offset, static_cast<std::uint16_t>(bare.size() - l3_offset), shape.ip6,
                                   next_hop);
                    rig.run<stages::Tx>();

                    CHECK(rig.worker->burst.size() == 0);
                    CHECK(rig.worker->burst.dropped().empty());
                    CHECK(rig.worker->ledger.held == 1);
                    const auto& nh = rig.snapshot.next_hops[next_hop];
                    Bytes want(nh.l2_header.begin(), nh.l2_header.begin() + nh.l2_length - 2);
                    want.push_back(shape.ip6 ? 0x86 : 0x08);
                    want.push_back(shape.ip6 ? 0xdd : 0x00);
                    want.insert(want.end(), want_l3.begin() + l3_offset, want_l3.end());
                    const test::MbufPtr out(rig.sent());
                    CHECK(test::bytes_of(out.get()) == want);
                    CHECK(out->pkt_len == want.size());
                    CHECK(out->ol_flags == 0);
                    CHECK(out->packet_type == 0);
                    CHECK(out->nb_segs == (chained ? 2 : 1));
                }
            }
        }
    }
    CHECK(test::mbufs_in_use() == before);
}

TEST_CASE("tx stage: no headroom for a longer header is a named drop", "[pipeline]") {
    TxRig rig;
    const Bytes in = packet(kShapes[0], 64).bytes();
    test::MbufPtr mbuf = test::make_mbuf(in);
    rte_pktmbuf_prepend(mbuf.get(), static_cast<std::uint16_t>(rte_pktmbuf_headroom(mbuf.get()) - 3));
    std::copy(in.begin(), in.end(), rte_pktmbuf_mtod(mbuf.get(), std::uint8_t*));
    rig.begin_lane(mbuf.get(), 14, static_cast<std::uint16_t>(in.size() - 14), false, 2);
    rig.run<stages::Tx>();
    CHECK(rig.fate(0) == "headers_chained");
    CHECK(rig.worker->ledger.held == 0);
    CHECK(rig.worker->tx[0].size() == 0);
}

TEST_CASE("tx stage: a port without a link takes nothing, and keeps nothing that waits", "[pipeline]") {
    TxRig rig;
    const Bytes in = packet(kShapes[0], 64).bytes();
    test::MbufPtr mbuf = test::make_mbuf(in);
    rig.snapshot.ports[0].sends = false;
    rig.begin_lane(mbuf.get(), 14, static_cast<std::uint16_t>(in.size() - 14), false, 1);
    rig.run<stages::Tx>();
    CHECK(rig.fate(0) == "link_down");
    CHECK(rig.worker->tx[0].size() == 0);

    rig.worker->tx[0].push(test::make_mbuf(in).release());
    rig.worker->ledger.held = 1;
    CHECK(flush_tx(*rig.worker, rig.snapshot) == 0);
    CHECK(rig.worker->ledger.held == 0);
    CHECK(rig.worker->tenants[kNoTenant].drops[static_cast<unsigned>(DropReason::link_down)].read() == 1);
    CHECK(rig.worker->ports[0].tx_dropped.read() == 1);
}

TEST_CASE("tx stage: a port that is down and a buffer that is full are named drops", "[pipeline]") {
    const unsigned before = (test::test_pool(), test::mbufs_in_use());
    {
        TxRig rig;
        const Bytes in = packet(kShapes[0], 64).bytes();
        rig.snapshot.ports[0].admin_up = rig.snapshot.ports[0].sends = false;
        test::MbufPtr mbuf = test::make_mbuf(in);
        rig.begin_lane(mbuf.get(), 14, static_cast<std::uint16_t>(in.size() - 14), false, 1);
        rig.run<stages::Tx>();
        CHECK(rig.fate(0) == "port_down");

        rig.snapshot.ports[0].admin_up = rig.snapshot.ports[0].sends = true;
        while (rig.worker->tx[0].size() < port::kTxBufferSize) rig.worker->tx[0].push(test::make_mbuf(in).release());
        rig.begin_lane(mbuf.get(), 14, static_cast<std::uint16_t>(in.size() - 14), false, 1);
        rig.lane(0).traffic_class = 3;
        rig.run<stages::Tx>();
        CHECK(rig.fate(0) == "tx_full");
        CHECK(rig.worker->ports[0].tx_dropped.read() == 1);
        CHECK(rig.worker->class_tx_dropped[0][3].read() == 1);
        CHECK(rig.worker->class_tx_dropped[0][0].read() == 0);
        CHECK(rig.worker->ledger.held == 0);
    }
    CHECK(test::mbufs_in_use() == before);
}

TEST_CASE("tx stage: a chain goes in one piece to a device that takes no chains, or is a named drop", "[pipeline]") {
    const unsigned before = (test::test_pool(), test::mbufs_in_use());
    {
        TxRig rig;
        rig.snapshot.ports[0].sends_chains = false;
        const Bytes in = packet(kShapes[0], 64).bytes();
        const std::array<std::size_t, 1> cuts = {in.size() - 3};
        rig.begin_lane(test::make_mbuf(in, cuts).release(), 14, static_cast<std::uint16_t>(in.size() - 14), false, 1);
        rig.run<stages::Tx>();
        rte_mbuf* const out = rig.sent();
        CHECK(out->nb_segs == 1);
        const Bytes want = packet(kShapes[0], 63).bytes();
        const Bytes got = test::bytes_of(out);
        CHECK(Bytes(got.begin() + 14, got.end()) == Bytes(want.begin() + 14, want.end()));
        rte_pktmbuf_free(out);

        const Bytes more(2000, 7);
        const Bytes longer = PacketBuilder().eth().ip4("10.0.0.1", "10.0.1.1").udp(1, 2).payload(more).bytes();
        const std::array<std::size_t, 1> middle = {1500};
        test::MbufPtr mbuf = test::make_mbuf(longer, middle);
        rte_pktmbuf_append(mbuf.get(), 100);  // over one buffer together
        rig.begin_lane(mbuf.get(), 14, static_cast<std::uint16_t>(longer.size() + 100 - 14), false, 1);
        rig.run<stages::Tx>();
        CHECK(rig.fate(0) == "tx_chained");
        CHECK(rig.worker->ledger.held == 1);  // the first
    }
    CHECK(test::mbufs_in_use() == before);
}

TEST_CASE("tx flush: held becomes sent, counted by port, and what the device left stays held", "[pipeline]") {
    const unsigned before = (test::test_pool(), test::mbufs_in_use());
    {
        TxRig rig;
        test::RingPort device("txflush", 4, test::test_pool());  // 3 fit
        rig.snapshot.ports[0].ethdev = device.id();
        rig.worker->index = 7;  // of 1 queue: 0
        const Bytes in = packet(kShapes[0], 64).bytes();
        for (int i = 0; i < 5; ++i) {
            rig.begin_lane(test::make_mbuf(in).release(), 14, static_cast<std::uint16_t>(in.size() - 14), false, 1);
            rig.run<stages::Tx>();
        }
        CHECK(rig.worker->ledger.held == 5);
        CHECK(flush_tx(*rig.worker, rig.snapshot) == 3);
        CHECK(rig.worker->ledger.held == 2);
        CHECK(rig.worker->ledger.tx == 3);
        CHECK(rig.worker->ports[0].tx_packets.read() == 3);
        CHECK(rig.worker->ports[0].tx_bytes.read() == 3 * in.size());
        CHECK(flush_tx(*rig.worker, rig.snapshot) == 0);
        CHECK(rig.worker->ledger.held == 2);

        rig.snapshot.ports[0].admin_up = rig.snapshot.ports[0].sends = false;
        CHECK(flush_tx(*rig.worker, rig.snapshot) == 0);
        CHECK(rig.worker->ledger.held == 0);
        CHECK(rig.worker->ledger.dropped == 2);
        CHECK(rig.worker->tenants[kNoTenant].drops[static_cast<unsigned>(DropReason::port_down)].read() == 2);
        CHECK(rig.worker->ports[0].tx_dropped.read() == 2);

        std::array<rte_mbuf*, 4> out;
        const unsigned n = device.collect(out);
        CHECK(n == 3);
        rte_pktmbuf_free_bulk(out.data(), n);
    }
    CHECK(test::mbufs_in_use() == before);
}

}  // namespace cachewire::pipeline
