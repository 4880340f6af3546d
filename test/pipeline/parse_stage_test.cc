// SPDX-License-Identifier: BSD-3-Clause
// RX and parse on real mbufs: segments, what the device reports, counting, and that no mbuf stays behind.
#include <memory>
#include <numeric>

#include "pipeline/parse_rig.h"
#include "pipeline/stages/1_rx.h"
#include "pipeline/stages/2_parse.h"
#include "support/mbuf.h"
#include "support/random.h"
#include "support/ring_port.h"

using namespace cachewire;
using pipeline::DropReason;
using test::Bytes;
using test::MbufPtr;
using test::PacketBuilder;

namespace {

// What stands before the parse stage when frames don't come from a device.
struct FromTest {
    static constexpr pipeline::FieldSet kWrites = pipeline::stages::Rx::kWrites;
};
using Tested = pipeline::PipelineAfter<FromTest::kWrites, pipeline::stages::Parse>;

struct ParseRig {
    ParseRig() {
        test::test_pool();
        worker->tenants = std::vector<pipeline::TenantCounters>(16);
        snapshot.ports = {test::parse_port()};
    }

    void begin(std::vector<MbufPtr> mbufs) {
        worker->burst.begin(static_cast<unsigned>(mbufs.size()));
        for (std::size_t i = 0; i < mbufs.size(); ++i) {
            auto& lane = worker->burst.lane(static_cast<pipeline::Burst::LaneIndex>(i));
            pipeline::stages::Rx::begin_lane(lane, pipeline::stages::Rx::fresh_lane(0), mbufs[i].release());
        }
    }
    void parse() { pipeline::stages::Parse::process(*worker, snapshot, worker->burst); }

    // Frees what is live; drops free their own.
    void end() {
        for (const auto i : worker->burst.live()) rte_pktmbuf_free(worker->burst.lane(i).mbuf);
        pipeline::stages::Drop::process(*worker, worker->burst);
        worker->burst.begin(0);
    }
    [[nodiscard]] std::uint64_t drops(std::uint16_t tenant, DropReason reason) const {
        return worker->tenants[tenant].drops[static_cast<unsigned>(reason)].read();
    }

    std::unique_ptr<pipeline::WorkerState> worker = std::make_unique<pipeline::WorkerState>();
    pipeline::Snapshot snapshot;
};

// One packet through the stage; what came of it, in words, and the packet's bytes afterwards.
struct Outcome {
    std::string text;
    Bytes bytes;
};

Outcome run_one(ParseRig& rig, MbufPtr mbuf) {
    std::vector<MbufPtr> one;
    one.push_back(std::move(mbuf));
    rig.begin(std::move(one));
    rig.parse();
    auto& lane = rig.worker->burst.lane(0);
    const auto& key = rig.worker->burst.key(0);
    Outcome outcome{"", test::bytes_of(lane.mbuf)};
    if (rig.worker->burst.size() == 1) {
        const auto* raw = reinterpret_cast<const std::uint8_t*>(&key);
        outcome.text = "passes " + test::hex(Bytes(raw, raw + sizeof key)) + " " + std::to_string(lane.hash) + " " +
                       std::to_string(lane.l3_offset) + "+" + std::to_string(lane.l3_length) + " " +
                       std::to_string(lane.l4_offset) + " " + std::to_string(lane.flags);
    } else {
        outcome.text = test::name_of(rig.worker->burst.dropped()[0].reason) + " " + std::to_string(lane.tenant);
    }
    rig.end();
    return outcome;
}

std::vector<Bytes> frames_to_cut() {
    const auto ip6 = [] { return PacketBuilder().eth().ip6("2001:db8::1", "2001:db8:1::1"); };
    test::Ip4Fields options;
    options.options = Bytes(40, 1);
    test::Ip4Fields source_route;
    source_route.options = {131, 3, 4};
    return {
        PacketBuilder().eth().ip4("10.0.0.1", "10.0.1.1").udp(1000, 53).payload(18).bytes(),
        PacketBuilder().eth().vlan(100).vlan(7).ip4("10.0.0.1", "10.0.1.1", options).tcp(1, 2).payload(9).bytes(),
        PacketBuilder().eth().ip4("10.0.0.1", "10.0.1.1", source_route).tcp(1, 2).bytes(),
        PacketBuilder().eth().ip4("10.0.0.1", "10.0.1.1").icmp(8, 0, 9).pad_to(60).bytes(),
        ip6().tcp(1000, 443).payload(30).bytes(),
        ip6()
            .hop_by_hop(Bytes(62))
            .routing(4, 1, Bytes(36))
            .fragment(0, true)
            .authentication()
            .udp(1, 2, {900, {}})
            .payload(16)
            .bytes(),
        ip6().destination_options(Bytes(254)).tcp(1, 2).payload(100).bytes(),
        ip6().destination_options(Bytes(254)).destination_options().tcp(1, 2).bytes(),
        ip6().extension(0, Bytes(22), 255).payload(8).bytes(),
        test::cut(PacketBuilder().eth().vlan(100).vlan(7).bytes(), 20),
        test::cut(PacketBuilder().eth().bytes(), 13),
    };
}

}  // namespace

TEST_CASE("parse: a packet cut anywhere gets the verdict of the whole one", "[parse]") {
    ParseRig rig;
    for (const Bytes& frame : frames_to_cut()) {
        const Outcome whole = run_one(rig, test::make_mbuf(frame));
        INFO("frame " << test::hex(frame));
        for (std::size_t cut = 0; cut <= frame.size(); ++cut) {
            const std::array<std::size_t, 1> cuts = {cut};
            const Outcome pieces = run_one(rig, test::make_mbuf(frame, cuts));
            if (pieces.text == whole.text && pieces.bytes == frame) continue;
            INFO("cut at " << cut);
            CHECK(pieces.text == whole.text);
            CHECK(pieces.bytes == frame);
        }
    }
    CHECK(test::mbufs_in_use() == 0);
}

TEST_CASE("parse: a packet in many pieces, empty ones among them, gets the verdict of the whole one", "[parse]") {
    ParseRig rig;
    auto random = test::random_engine();
    for (const Bytes& frame : frames_to_cut()) {
        const Outcome whole = run_one(rig, test::make_mbuf(frame));
        INFO("frame " << test::hex(frame));
        for (unsigned round = 0; round < 200; ++round) {
            std::vector<std::size_t> cuts(1 + random() % 12);
            for (auto& c : cuts) c = random() % (frame.size() + 1);
            std::sort(cuts.begin(), cuts.end());
            const Outcome pieces = run_one(rig, test::make_mbuf(frame, cuts));
            REQUIRE(pieces.text == whole.text);
            REQUIRE(pieces.bytes == frame);
        }
        std::vector<std::size_t> every_byte(std::min<std::size_t>(frame.size(), 250));
        std::iota(every_byte.begin(), every_byte.end(), 0);
        CHECK(run_one(rig, test::make_mbuf(frame, every_byte)).text == whole.text);
    }
    CHECK(test::mbufs_in_use() == 0);
}

TEST_CASE("parse: payload segments stay as they are", "[parse]") {
    ParseRig rig;
    const Bytes frame = PacketBuilder().eth().ip4("10.0.0.1", "10.0.1.1").udp(1, 2).payload(1400).bytes();
    const std::array<std::size_t, 2> cuts = {500, 900};
    MbufPtr mbuf = test::make_mbuf(frame, cuts);
    rte_mbuf* const raw = mbuf.get();
    std::vector<MbufPtr> one;
    one.push_back(std::move(mbuf));
    rig.begin(std::move(one));
    rig.parse();
    REQUIRE(rig.worker->burst.size() == 1);
    CHECK(raw->nb_segs == 3);
    CHECK(raw->data_len == 500);
    rig.end();
    CHECK(test::mbufs_in_use() == 0);
}

TEST_CASE("parse: headers that can't be pulled together are dropped by that name", "[parse]") {
    ParseRig rig;
    const Bytes frame = PacketBuilder().eth().ip4("10.0.0.1", "10.0.1.1").udp(1, 2).payload(40).bytes();
    const std::array<std::size_t, 1> cuts = {20};
    {
        INFO("no room behind the first piece");
        MbufPtr mbuf = test::make_mbuf(frame, cuts);
        const std::uint16_t full = mbuf->buf_len;
        mbuf->buf_len = static_cast<std::uint16_t>(mbuf->data_off + mbuf->data_len);
        rte_mbuf* const raw = mbuf.get();
        CHECK(run_one(rig, std::move(mbuf)).text == "headers_chained 0");
        raw->buf_len = full;
    }
    {
        INFO("the first piece has another owner");
        MbufPtr mbuf = test::make_mbuf(frame, cuts);
        rte_mbuf_refcnt_update(mbuf.get(), 1);
        rte_mbuf* const raw = mbuf.get();
        CHECK(run_one(rig, std::move(mbuf)).text == "headers_chained 0");
        rte_pktmbuf_free(raw);
    }
    {
        INFO("fewer bytes than the packet's length says");
        MbufPtr mbuf = test::make_mbuf(frame);
        mbuf->pkt_len += 10;
        CHECK(run_one(rig, std::move(mbuf)).text == "headers_chained 0");
    }
    CHECK(rig.drops(pipeline::kNoTenant, DropReason::headers_chained) == 3);
}

TEST_CASE("parse: what the device reports in the mbuf is used", "[parse]") {
    ParseRig rig;
    const Bytes frame = PacketBuilder().eth().ip4("10.0.0.1", "10.0.1.1").udp(1, 2).payload(18).bytes();
    Bytes wrong = frame;
    wrong[24] ^= 1;
    const auto flagged = [&rig](const Bytes& bytes, std::uint64_t flags, std::uint16_t tci = 0,
                                std::uint16_t outer = 0) {
        MbufPtr mbuf = test::make_mbuf(bytes);
        mbuf->ol_flags |= flags;
        mbuf->vlan_tci = tci;
        mbuf->vlan_tci_outer = outer;
        const std::string text = run_one(rig, std::move(mbuf)).text;
        return text.starts_with("passes") ? "passes " + std::to_string(rig.worker->burst.lane(0).tenant) : text;
    };
    CHECK(flagged(frame, 0) == "passes 1");
    CHECK(flagged(wrong, 0) == "ip4_checksum 1");
    CHECK(flagged(wrong, RTE_MBUF_F_RX_IP_CKSUM_GOOD) == "passes 1");
    CHECK(flagged(frame, RTE_MBUF_F_RX_IP_CKSUM_BAD) == "ip4_checksum 1");
    CHECK(flagged(wrong, RTE_MBUF_F_RX_IP_CKSUM_NONE) == "ip4_checksum 1");
    CHECK(flagged(frame, RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED, 100) == "passes 2");
    CHECK(flagged(frame, RTE_MBUF_F_RX_VLAN, 100) == "passes 1");  // reported, but not taken off
    CHECK(flagged(frame, RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED, 7, 100) == "passes 3");
    const Bytes inner = PacketBuilder().eth().vlan(7).ip4("10.0.0.1", "10.0.1.1").udp(1, 2).payload(18).bytes();
    CHECK(flagged(inner, RTE_MBUF_F_RX_QINQ_STRIPPED, 7, 100) == "passes 3");
}

TEST_CASE("parse: a mixed burst keeps its order and counts each drop under its tenant", "[parse]") {
    ParseRig rig;
    const Bytes good = PacketBuilder().eth().ip4("10.0.0.1", "10.0.1.1").udp(1, 2).payload(18).bytes();
    const Bytes foreign = PacketBuilder().eth({{2, 9, 9, 9, 9, 9}}).ip4("10.0.0.1", "10.0.1.1").udp(1, 2).bytes();
    const Bytes martian = PacketBuilder().eth().vlan(100).ip4("127.0.0.1", "10.0.1.1").udp(1, 2).bytes();
    std::vector<MbufPtr> burst;
    for (unsigned i = 0; i < pipeline::kMaxLanes; ++i)
        burst.push_back(test::make_mbuf(i % 3 == 0 ? good : i % 3 == 1 ? foreign : martian));
    rig.begin(std::move(burst));
    Tested::run(*rig.worker, rig.snapshot, rig.worker->burst);
    REQUIRE(rig.worker->burst.size() == 22);
    unsigned expected = 0;
    for (const auto i : rig.worker->burst.live()) {
        CHECK(i == expected);
        expected += 3;
    }
    CHECK(rig.drops(pipeline::kNoTenant, DropReason::foreign_mac) == 21);
    CHECK(rig.drops(2, DropReason::martian_source) == 21);
    CHECK(rig.worker->ledger.dropped == 42);
    rig.end();
    CHECK(test::mbufs_in_use() == 0);
}

TEST_CASE("parse stage: padding behind the datagram is not counted", "[parse]") {
    ParseRig rig;
    const auto udp = PacketBuilder().eth().ip4("10.0.0.1", "10.0.1.1").udp(1, 2).payload(4);
    const std::array<std::size_t, 1> cuts = {50};
    for (const std::size_t size : {46u, 60u, 1514u}) {
        INFO("padded to " << size);
        const Bytes frame = PacketBuilder(udp).pad_to(size).bytes();
        std::vector<MbufPtr> mbufs;
        mbufs.push_back(test::make_mbuf(frame));
        if (size > cuts[0]) mbufs.push_back(test::make_mbuf(frame, cuts));
        rig.begin(std::move(mbufs));
        rig.worker->burst.lane(0).mbuf->ol_flags |= RTE_MBUF_F_RX_VLAN_STRIPPED;
        rig.worker->burst.lane(0).mbuf->vlan_tci = 0;
        rig.worker->burst.lane(0).frame_length += 4;  // as RX counts a stripped tag
        rig.parse();
        for (const auto i : rig.worker->burst.live()) {
            INFO("lane " << i);
            CHECK(rig.worker->burst.lane(i).frame_length == (i == 0 ? 50 : 46));
        }
        CHECK(rig.worker->burst.size() == (size > cuts[0] ? 2 : 1));
        rig.end();
    }
}

TEST_CASE("rx: a burst becomes fresh lanes and is counted once", "[rx]") {
    ParseRig rig;
    static test::RingPort device("rx_stage_test", 256, test::test_pool());
    rig.snapshot.burst = 32;
    rig.worker->rx_queue = {0, device.id(), 0};
    const Bytes frame = PacketBuilder().eth().ip4("10.0.0.1", "10.0.1.1").udp(1, 2).payload(100).bytes();
    const std::array<std::size_t, 1> cuts = {60};
    std::vector<rte_mbuf*> offered;
    for (unsigned i = 0; i < 40; ++i)
        offered.push_back((i % 2 == 0 ? test::make_mbuf(frame) : test::make_mbuf(frame, cuts)).release());
    offered[0]->ol_flags |= RTE_MBUF_F_RX_VLAN_STRIPPED;
    offered[1]->ol_flags |= RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED;
    REQUIRE(device.offer(offered) == 40);

    unsigned received = 0;
    for (const unsigned expected : {32u, 8u, 0u}) {
        auto& burst = rig.worker->burst;
        for (auto& flags : {pipeline::kLaneStale}) burst.lane(0).flags = flags;  // what an earlier burst left behind
        pipeline::stages::Rx::process(*rig.worker, rig.snapshot, burst);
        REQUIRE(burst.size() == expected);
        for (const auto i : burst.live()) {
            auto& lane = burst.lane(i);
            CHECK(lane.mbuf == offered[received]);
            CHECK(lane.frame_length == frame.size() + (received == 0 ? 4 : received == 1 ? 8 : 0));
            CHECK(lane.flags == 0);
            CHECK(lane.tenant == pipeline::kNoTenant);
            CHECK(lane.session == pipeline::kNoSession);
            CHECK(lane.next_hop == pipeline::kNoNextHop);
            ++received;
        }
        rig.end();
    }
    CHECK(rig.worker->ledger.rx == 40);
    CHECK(rig.worker->ports[0].rx_packets.read() == 40);
    CHECK(rig.worker->ports[0].rx_bytes.read() == 40 * frame.size() + 12);
    CHECK(test::mbufs_in_use() == 0);
}

TEST_CASE("rx: a port that is down is emptied, and frames over a port's length are dropped", "[rx]") {
    ParseRig rig;
    static test::RingPort device("rx_stage_unwanted", 256, test::test_pool());
    rig.worker->rx_queue = {0, device.id(), 0};
    const Bytes frame = PacketBuilder().eth().ip4("10.0.0.1", "10.0.1.1").udp(1, 2).payload(100).bytes();
    const auto receive_four = [&] {
        std::vector<rte_mbuf*> offered;
        for (unsigned i = 0; i < 4; ++i) offered.push_back(test::make_mbuf(frame).release());
        REQUIRE(rte_pktmbuf_append(offered[2], 1) != nullptr);
        REQUIRE(device.offer(offered) == 4);
        pipeline::stages::Rx::process(*rig.worker, rig.snapshot, rig.worker->burst);
        const unsigned live = rig.worker->burst.size();
        rig.end();
        return live;
    };
    rig.snapshot.ports[0].max_frame_bytes = static_cast<std::uint32_t>(frame.size());
    CHECK(receive_four() == 3);
    CHECK(rig.drops(pipeline::kNoTenant, DropReason::frame_oversize) == 1);
    CHECK(rig.worker->ports[0].rx_oversize.read() == 1);
    rig.snapshot.ports[0].admin_up = false;
    CHECK(receive_four() == 0);
    CHECK(rig.drops(pipeline::kNoTenant, DropReason::port_down) == 4);
    CHECK(rig.worker->ports[0].rx_oversize.read() == 1);
    rig.snapshot.ports[0].admin_up = true;
    rig.snapshot.ports[0].max_frame_bytes = UINT32_MAX;
    CHECK(receive_four() == 4);
    CHECK(rig.worker->ledger.rx == 12);
    CHECK(test::mbufs_in_use() == 0);
}

TEST_CASE("rx: a burst over the lanes is taken in parts", "[rx]") {
    ParseRig rig;
    static test::RingPort device("rx_stage_test_256", 512, test::test_pool());
    rig.snapshot.burst = 256;
    rig.worker->rx_queue = {0, device.id(), 0};
    const Bytes frame = PacketBuilder().eth().ip4("10.0.0.1", "10.0.1.1").udp(1, 2).payload(18).bytes();
    std::vector<rte_mbuf*> offered;
    for (unsigned i = 0; i < 100; ++i) offered.push_back(test::make_mbuf(frame).release());
    REQUIRE(device.offer(offered) == 100);
    for (const unsigned expected : {64u, 36u, 0u}) {
        pipeline::stages::Rx::process(*rig.worker, rig.snapshot, rig.worker->burst);
        CHECK(rig.worker->burst.size() == expected);
        rig.parse();
        CHECK(rig.worker->burst.size() == expected);
        rig.end();
    }
    CHECK(test::mbufs_in_use() == 0);
}
