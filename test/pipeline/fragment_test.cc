// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/fragment.h"

#include <algorithm>
#include <array>
#include <map>

#include "net/checksum.h"
#include "net/headers.h"
#include "pipeline/stage_rig.h"
#include "support/catch.h"
#include "support/mbuf.h"
#include "support/packet_builder.h"
#include "support/random.h"

namespace cachewire::pipeline {

namespace {

using test::Bytes;
using test::PacketBuilder;

struct PiecesRig : test::StageRig {
    PiecesRig() : before(test::mbufs_in_use()) {
        snapshot.ports.resize(1);
        snapshot.next_hops.resize(2);
        route::NextHop& hop = snapshot.next_hops[1];
        hop.kind = route::NextHopKind::forward;
        for (std::uint8_t i = 0; i < 12; ++i) hop.l2_header[i] = i;
    }
    ~PiecesRig() {
        worker->tx[0].discard();
        CHECK(test::mbufs_in_use() == before);
    }

    // nullopt: sent. The parent is freed either way.
    std::optional<DropReason> send(const Bytes& frame, std::uint16_t mtu, std::vector<std::size_t> cuts = {}) {
        snapshot.next_hops[1].mtu = mtu;
        Lane lane{};
        lane.mbuf = test::make_mbuf(frame, cuts).release();
        lane.next_hop = 1;
        lane.traffic_class = traffic_class;
        lane.l3_offset = 14;
        lane.l3_length = static_cast<std::uint16_t>(frame[16] << 8 | frame[17]);
        const auto refused = send_in_pieces(*worker, snapshot, lane);
        if (refused) rte_pktmbuf_free(lane.mbuf);
        return refused;
    }
    std::vector<Bytes> sent() {
        std::vector<Bytes> frames;
        std::uint64_t bytes = 0;
        worker->tx[0].flush_with(
            [&](rte_mbuf** mbufs, std::uint16_t n) {
                for (std::uint16_t i = 0; i < n; ++i) {
                    frames.push_back(test::bytes_of(mbufs[i]));
                    rte_pktmbuf_free(mbufs[i]);
                }
                return n;
            },
            bytes);
        return frames;
    }
    unsigned before;
    std::uint8_t traffic_class = 0;
};

// What a receiver puts together, with every check of the pieces that can be made.
Bytes reassemble(const std::vector<Bytes>& frames, unsigned l2, unsigned mtu, bool more_after = false,
                 unsigned begin = 0) {
    std::map<unsigned, Bytes> parts;
    for (const Bytes& frame : frames) {
        const std::uint8_t* ip = frame.data() + l2;
        const unsigned header = (ip[0] & 15u) * 4, total = net::load16_be(ip + 2), field = net::load16_be(ip + 6);
        CHECK(frame.size() == l2 + total);
        CHECK(total <= mtu);
        CHECK(net::checksum({ip, header}) == 0);
        CHECK(ip[8] == 63);
        CHECK((field & 0x4000) == 0);
        const bool last = &frame == &frames.back();
        CHECK(((field & 0x2000) != 0) == (!last || more_after));
        if (!last) CHECK((total - header) % 8 == 0);
        parts[(field & 0x1fff) * 8] = Bytes(ip + header, ip + total);
    }
    Bytes whole;
    for (const auto& [offset, bytes] : parts) {
        CHECK(offset == begin + whole.size());
        whole.insert(whole.end(), bytes.begin(), bytes.end());
    }
    return whole;
}

}  // namespace

TEST_CASE("pieces: any datagram at any MTU is put together again as it was", "[pipeline]") {
    INFO("seed " << test::seed());
    auto random = test::random_engine();
    PiecesRig rig;
    for (int round = 0; round < 400; ++round) {
        const auto mtu = static_cast<std::uint16_t>(68 + random() % 1400);
        test::Ip4Fields fields;
        if (random() % 3 == 0) fields.options = {7, 7, 4, 0, 0, 0, 0, 0x94, 4, 0, 0, 0};  // record route, router alert
        const std::size_t size = mtu + random() % (mtu * 9u > 7000 ? 1500 : mtu * 5u);
        const Bytes frame =
            PacketBuilder().eth().ip4("10.0.0.9", "192.0.2.9", fields).udp(1000, 53).payload(size).pad_to(60).bytes();
        std::vector<std::size_t> cuts;  // a buffer holds 2048
        for (std::size_t at = 300 + random() % 900; at + 40 < frame.size(); at += 200 + random() % 1500)
            cuts.push_back(at);
        const LedgerLine before = rig.worker->ledger;
        REQUIRE_FALSE(rig.send(frame, mtu, cuts));
        const auto out = rig.sent();
        CHECK(out.size() >= 2);
        CHECK(rig.worker->ledger.consumed == before.consumed + 1);
        CHECK(rig.worker->ledger.originated == before.originated + out.size());
        CHECK(rig.worker->ledger.held == before.held + out.size());
        const unsigned header = (frame[14] & 15u) * 4;
        CHECK(reassemble(out, 14, mtu) == Bytes(frame.begin() + 14 + header, frame.end()));
        for (const Bytes& piece : out) {
            CHECK(std::equal(piece.begin(), piece.begin() + 12, rig.snapshot.next_hops[1].l2_header.begin()));
            CHECK(Bytes(piece.begin() + 12, piece.begin() + 14) == Bytes{8, 0});
        }
    }
}

TEST_CASE("pieces: options with the copied bit go into each, the others only into the first", "[pipeline]") {
    PiecesRig rig;
    test::Ip4Fields fields;
    fields.options = {7, 7, 4, 1, 2, 3, 4, 0x94, 4, 0, 0};
    REQUIRE_FALSE(
        rig.send(PacketBuilder().eth().ip4("10.0.0.9", "192.0.2.9", fields).udp(1, 2).payload(300).bytes(), 200));
    const auto out = rig.sent();
    REQUIRE(out.size() == 2);
    CHECK((out[0][14] & 15) == 8);
    CHECK((out[1][14] & 15) == 6);
    CHECK(Bytes(out[1].begin() + 34, out[1].begin() + 38) == Bytes{0x94, 4, 0, 0});
}

TEST_CASE("pieces: of a piece keep its place and that more follow", "[pipeline]") {
    PiecesRig rig;
    test::Ip4Fields fields;
    fields.fragment = 0x2000 | 100;
    const Bytes frame = PacketBuilder().eth().ip4("10.0.0.9", "192.0.2.9", fields).payload(1000).bytes();
    REQUIRE_FALSE(rig.send(frame, 500));
    CHECK(reassemble(rig.sent(), 14, 500, true, 800) == Bytes(frame.begin() + 34, frame.end()));
}

TEST_CASE("pieces: leave by a VLAN with the priority of the datagram's class", "[pipeline]") {
    PiecesRig rig;
    const std::array<std::uint8_t, 8> tags = {0x88, 0xa8, 0, 7, 0x81, 0, 0x0f, 0xfe};
    std::copy(tags.begin(), tags.end(), rig.snapshot.next_hops[1].l2_header.begin() + 12);
    rig.snapshot.next_hops[1].l2_length = 22;
    rig.snapshot.traffic_classes[2].pcp = 5;
    const Bytes frame = PacketBuilder().eth().ip4("10.0.0.9", "192.0.2.9").udp(1, 2).payload(1000).bytes();
    for (const std::uint8_t traffic_class : {0, 2}) {
        rig.traffic_class = traffic_class;
        REQUIRE_FALSE(rig.send(frame, 500));
        const std::uint8_t pcp = traffic_class == 0 ? 0 : 5 << 5;
        for (const Bytes& piece : rig.sent())
            CHECK(Bytes(piece.begin() + 12, piece.begin() + 20) ==
                  Bytes{0x88, 0xa8, pcp, 7, 0x81, 0, static_cast<std::uint8_t>(pcp | 0x0f), 0xfe});
    }
}

TEST_CASE("pieces: all or none", "[pipeline]") {
    PiecesRig rig;
    const Bytes frame = PacketBuilder().eth().ip4("10.0.0.9", "192.0.2.9").udp(1, 2).payload(1400).bytes();
    SECTION("the TX buffer has no room for all of them") {
        for (unsigned i = 0; i < port::kTxBufferSize - 2; ++i) rig.worker->tx[0].push(test::make_mbuf(frame).release());
        CHECK(rig.send(frame, 500) == DropReason::tx_full);
        CHECK(rig.worker->tx[0].size() == port::kTxBufferSize - 2);
        CHECK_FALSE(rig.send(frame, 1000));
    }
    SECTION("the pool has no buffers for all of them") {
        std::vector<test::MbufPtr> hoard;
        while (test::mbufs_in_use() + 3 < test::kTestMbufs) hoard.push_back(test::make_mbuf(frame));
        CHECK(rig.send(frame, 500) == DropReason::no_mbuf);
        CHECK(rig.worker->tx[0].size() == 0);
    }
    SECTION("the port is down") {
        rig.snapshot.ports[0].admin_up = rig.snapshot.ports[0].sends = false;
        CHECK(rig.send(frame, 500) == DropReason::port_down);
    }
    CHECK(rig.worker->ledger.originated == rig.worker->tx[0].size() % (port::kTxBufferSize - 2));
}

}  // namespace cachewire::pipeline
