// SPDX-License-Identifier: BSD-3-Clause
// The slow path between its two queues: what workers would punt goes in, what they would send comes out. Snapshots and
// route changes are real.
#include "control/slow_path/slow_path.h"

#include <memory>

#include "config/load.h"
#include "control/publisher.h"
#include "control/route_feed.h"
#include "control/snapshot_builder.h"
#include "net/arp.h"
#include "net/checksum.h"
#include "net/headers.h"
#include "net/nd.h"
#include "support/catch.h"
#include "support/mbuf.h"
#include "support/packet_builder.h"

namespace cachewire::control {
namespace {

using pipeline::PuntReason;
using pipeline::PuntRecord;
using pipeline::Return;
using pipeline::ReturnKind;
using test::address;
using test::Bytes;
using test::PacketBuilder;

const char* const kConfig = R"(version: 1
ports:
  - {name: west, device: "net_ring_w"}
  - {name: east, device: "net_ring_e"}
tenants:
  - {name: red, id: 1, match: [{port: west}, {port: east}]}
interfaces:
  - {name: lan, port: west, addresses: ["10.0.0.1/24", "10.0.5.1/24", "2001:db8:1::1/64"]}
  - {name: wan, port: east, vlan: 7, mtu: 1280, addresses: ["192.0.2.1/24", "2001:db8:2::1/64"]}
neighbors:
  - {tenant: red, address: 10.0.0.9, mac: "02:00:00:00:00:88"}
  - {tenant: red, address: "2001:db8:1::9", mac: "02:00:00:00:00:88"}
routes:
  - {tenant: red, prefix: 198.51.100.0/24, via: 192.0.2.254}
  - {tenant: red, prefix: 203.0.113.0/24, via: 10.0.0.9}
)";

constexpr net::Mac kEastMac{{2, 0, 0, 0, 0, 0xee}}, kClientMac{{2, 0, 0, 0, 0, 0x88}}, kPeerMac{{2, 0, 0, 0, 0, 0x77}};

struct Sent {
    ReturnKind kind;
    pipeline::DropReason drop;
    std::uint16_t port;
    Bytes bytes;
};

struct Rig {
    Rig()
        : before(test::mbufs_in_use()),
          builder({{"west", {0, 1, test::kRouterMac}}, {"east", {1, 1, kEastMac}}}, {}, -1),
          publisher(1),
          feed(builder, publisher) {
        auto loaded = config::load_text(kConfig, "test.yaml");
        for (const auto& d : loaded.diagnostics) UNSCOPED_INFO(config::to_string(d));
        REQUIRE(loaded.config);
        config = *loaded.config;
        auto pass = builder.begin(config, 1);
        builder.complete(*pass);
        publisher.publish(builder.commit(std::move(pass)), [this] { builder.grace_period_over(); });
        SlowPath::Hooks hooks;
        hooks.snapshot = [this]() -> const pipeline::Snapshot& { return *publisher.current(); };
        hooks.change = [this](const NeighborChange& c) {
            feed.set_neighbor(c.key.tenant, c.key.interface, c.key.address, {c.mac, c.failed});
        };
        hooks.forwards = [this](const NeighborKey& key) {
            const auto hop =
                builder.registry().next_hops.find({key.tenant, key.interface, NextHopUse::neighbor, key.address});
            return hop && publisher.current()->next_hops[*hop].kind == route::NextHopKind::forward;
        };
        slow_path = std::make_unique<SlowPath>(std::vector<SlowPath::Worker>{{to.get(), from.get()}}, test::test_pool(),
                                               std::move(hooks));
        slow_path->configure(config, builder.registry(), std::vector<bool>(pipeline::kMaxPorts, false), now);
        turn();
        out();  // the gateway is asked for
    }
    ~Rig() {
        slow_path.reset();
        while (from->ready() != 0) rte_pktmbuf_free(from->take().mbuf);
        CHECK(test::mbufs_in_use() == before);
    }

    std::uint16_t interface(const char* name) const { return *builder.registry().interfaces.find(name); }
    std::uint16_t port(const char* name) const { return *builder.registry().ports.find(name); }
    std::uint16_t tenant() const { return *builder.registry().tenants.find("red"); }

    void set_link(const char* port, bool link) {
        builder.set_port(port, {1, 1, kEastMac, {}, true, link});
        auto pass = builder.begin(config, 1);
        builder.complete(*pass);
        publisher.publish(builder.commit(std::move(pass)), [this] { builder.grace_period_over(); });
        publisher.reap();
        slow_path->configure(config, builder.registry(), std::vector<bool>(pipeline::kMaxPorts, false), now);
    }
    void turn() {
        slow_path->poll(now);
        publisher.reap();
        feed.flush(now);
        publisher.reap();
        slow_path->poll(now);
    }
    void pass(std::uint64_t ms) {
        for (const std::uint64_t end = now + ms; now < end; turn()) now += 100;
    }
    // A frame as a worker punts it: `l4` from the frame's start, 0 for none.
    void punt(PuntReason reason, const Bytes& frame, const char* in = "lan", unsigned l4 = 0,
              std::uint16_t next_hop = 0) {
        PuntRecord record;
        record.mbuf = test::make_mbuf(frame).release();
        record.reason = reason;
        record.tenant = tenant();
        record.interface = interface(in);
        record.port = port(in == std::string("lan") ? "west" : "east");
        record.next_hop = next_hop;
        record.l3_offset = in == std::string("lan") ? 14 : 18;
        record.ip6 = frame[record.l3_offset] >> 4 == 6;
        record.l3_length = static_cast<std::uint16_t>(frame.size() - record.l3_offset);
        record.l4_offset = static_cast<std::uint16_t>(l4);
        REQUIRE(to->push(record));
        to->publish();
        now += 60;  // RouteFeed publishes a VRF's changes 20 times a second
        turn();
    }
    std::vector<Sent> out() {
        std::vector<Sent> all;
        while (from->ready() != 0) {
            const Return r = from->take();
            all.push_back({r.kind, r.drop, r.port, r.mbuf != nullptr ? test::bytes_of(r.mbuf) : Bytes{}});
            rte_pktmbuf_free(r.mbuf);
        }
        from->release();
        return all;
    }
    std::uint16_t hop_to(const char* destination) const {
        const net::Address to_address = address(destination);
        const net::Address* const one = &to_address;
        std::uint16_t index = 0;
        publisher.current()->tenants[tenant()].fib->lookup({&one, 1}, {&index, 1});
        return index;
    }

    unsigned before;
    std::uint64_t now = 10000;
    std::unique_ptr<pipeline::PuntRing> to = std::make_unique<pipeline::PuntRing>();
    std::unique_ptr<pipeline::ReturnRing> from = std::make_unique<pipeline::ReturnRing>();
    SnapshotBuilder builder;
    Publisher publisher;
    RouteFeed feed;
    config::Config config;
    std::unique_ptr<SlowPath> slow_path;
};

Bytes arp_frame(net::ArpOp op, const net::Mac& sender_mac, const char* sender, const char* target,
                const net::Mac& to = test::kBroadcastMac, bool tagged = false) {
    Bytes arp(net::kArpBytes);
    net::write_arp({op, sender_mac, address(sender), {}, address(target)}, arp.data());
    PacketBuilder builder;
    builder.eth(to, sender_mac);
    if (tagged) builder.vlan(7);
    return builder.ether_type(0x0806).payload(arp).pad_to(60).bytes();
}

net::Arp arp_of(const Sent& sent, unsigned l2 = 14) {
    const auto arp = net::read_arp(std::span(sent.bytes).subspan(l2));
    REQUIRE(arp);
    return *arp;
}

TEST_CASE("slow path: ARP has exactly the address that was asked for, on its own interface only", "[slow_path]") {
    Rig rig;
    rig.punt(PuntReason::arp, arp_frame(net::ArpOp::request, kPeerMac, "10.0.0.50", "10.0.5.1"));
    auto out = rig.out();
    REQUIRE(out.size() == 1);
    CHECK(out[0].port == rig.port("west"));
    CHECK(Bytes(out[0].bytes.begin(), out[0].bytes.begin() + 6) == Bytes(kPeerMac.bytes.begin(), kPeerMac.bytes.end()));
    const net::Arp reply = arp_of(out[0]);
    CHECK(reply.op == net::ArpOp::reply);
    CHECK(reply.sender == address("10.0.5.1"));
    CHECK(reply.sender_mac == test::kRouterMac);
    CHECK(reply.target == address("10.0.0.50"));
    CHECK(rig.slow_path->neighbors().find({rig.tenant(), rig.interface("lan"), address("10.0.0.50")})->mac == kPeerMac);

    for (const char* target : {"192.0.2.1", "10.0.0.77", "10.0.0.255"}) {
        INFO(target);
        rig.punt(PuntReason::arp, arp_frame(net::ArpOp::request, kPeerMac, "10.0.0.50", target));
        CHECK(rig.out().empty());
    }
    rig.punt(PuntReason::arp, arp_frame(net::ArpOp::request, kPeerMac, "0.0.0.0", "10.0.0.1"));  // RFC 5227 probe
    CHECK(rig.out().size() == 1);
    // Somebody else's network, our own address, a network's broadcast: nobody to learn.
    const std::size_t known = rig.slow_path->neighbors().all().size();
    for (const char* sender : {"172.16.0.1", "10.0.0.1", "10.0.0.255", "10.0.0.0"})
        rig.punt(PuntReason::arp, arp_frame(net::ArpOp::request, kPeerMac, sender, "10.0.0.1"));
    CHECK(rig.slow_path->neighbors().all().size() == known);
    CHECK(rig.slow_path->resolver().conflicts == 1);
}

TEST_CASE("slow path: an advertisement is solicited, overrides and is a router's", "[slow_path]") {
    Rig rig;
    net::NeighborMessage ask;
    ask.src = address("2001:db8:1::50");
    ask.target = address("2001:db8:1::1");
    ask.dst = net::solicited_node(ask.target);
    ask.link_layer = kPeerMac;
    const auto frame = [](const net::NeighborMessage& message) {
        Bytes bytes(net::kMaxNeighborBytes);
        bytes.resize(net::write_neighbor_message(message, bytes.data()));
        return PacketBuilder().eth(net::multicast_mac(message.dst), kPeerMac).ether_type(0x86dd).payload(bytes).bytes();
    };
    rig.punt(PuntReason::nd, frame(ask));
    auto out = rig.out();
    REQUIRE(out.size() == 1);
    auto reply = net::read_neighbor_message(std::span(out[0].bytes).subspan(14));
    REQUIRE(reply);
    CHECK(reply->advertisement);
    CHECK((reply->solicited && reply->override_ && reply->router));
    CHECK(reply->target == ask.target);
    CHECK(reply->src == ask.target);
    CHECK(reply->dst == ask.src);
    CHECK(reply->link_layer == test::kRouterMac);

    ask.src = {};  // duplicate address detection
    ask.link_layer.reset();
    rig.punt(PuntReason::nd, frame(ask));
    out = rig.out();
    REQUIRE(out.size() == 1);
    reply = net::read_neighbor_message(std::span(out[0].bytes).subspan(14));
    REQUIRE(reply);
    CHECK_FALSE(reply->solicited);
    CHECK(reply->dst == net::all_nodes());

    ask.target = address("2001:db8:2::1");  // of the other interface
    ask.dst = net::solicited_node(ask.target);
    rig.punt(PuntReason::nd, frame(ask));
    CHECK(rig.out().empty());
}

TEST_CASE("slow path: a packet waits for its neighbor and goes on when it answers", "[slow_path]") {
    Rig rig;
    const Bytes packet = PacketBuilder().eth().ip4("10.0.0.9", "192.0.2.7").udp(1, 2).payload(20).bytes();
    rig.punt(PuntReason::no_neighbor, packet, "lan", 34, rig.hop_to("192.0.2.7"));
    auto out = rig.out();
    REQUIRE(out.size() == 1);
    CHECK(out[0].kind == ReturnKind::transmit);
    CHECK(out[0].port == rig.port("east"));
    CHECK(Bytes(out[0].bytes.begin() + 12, out[0].bytes.begin() + 18) == Bytes{0x81, 0, 0, 7, 8, 6});
    const net::Arp question = arp_of(out[0], 18);
    CHECK(question.op == net::ArpOp::request);
    CHECK(question.sender == address("192.0.2.1"));
    CHECK(question.target == address("192.0.2.7"));
    CHECK(rig.slow_path->waiting() == 1);

    rig.punt(PuntReason::arp, arp_frame(net::ArpOp::reply, kPeerMac, "192.0.2.7", "192.0.2.1", kEastMac, true), "wan");
    out = rig.out();
    REQUIRE(out.size() == 1);
    CHECK(out[0].kind == ReturnKind::retry);
    CHECK(out[0].port == rig.port("west"));
    CHECK(out[0].bytes == packet);
    const route::NextHop& hop = rig.publisher.current()->next_hops[rig.hop_to("192.0.2.7")];
    CHECK(hop.kind == route::NextHopKind::forward);
    CHECK(Bytes(hop.l2_header.begin(), hop.l2_header.begin() + 6) ==
          Bytes(kPeerMac.bytes.begin(), kPeerMac.bytes.end()));
    CHECK(rig.slow_path->waiting() == 0);
}

TEST_CASE("slow path: behind a link that comes back everyone is asked for at once, and serves meanwhile",
          "[slow_path]") {
    Rig rig;
    const Bytes packet = PacketBuilder().eth().ip4("10.0.0.9", "192.0.2.7").udp(1, 2).payload(20).bytes();
    rig.punt(PuntReason::no_neighbor, packet, "lan", 34, rig.hop_to("192.0.2.7"));
    rig.punt(PuntReason::arp, arp_frame(net::ArpOp::reply, kPeerMac, "192.0.2.7", "192.0.2.1", kEastMac, true), "wan");
    rig.out();
    rig.set_link("east", false);
    rig.turn();
    CHECK_FALSE(rig.publisher.current()->ports[rig.port("east")].sends);
    CHECK(rig.out().empty());
    rig.set_link("east", true);
    rig.turn();
    const auto out = rig.out();
    REQUIRE(out.size() == 2);  // and the gateway, which has not answered yet
    CHECK(arp_of(out[0], 18).target == address("192.0.2.7"));
    CHECK(Bytes(out[0].bytes.begin(), out[0].bytes.begin() + 6) == Bytes(6, 0xff));
    CHECK(rig.publisher.current()->next_hops[rig.hop_to("192.0.2.7")].kind == route::NextHopKind::forward);
}

TEST_CASE("slow path: nobody answers, so the packets are dropped and their sender hears of it", "[slow_path]") {
    Rig rig;
    for (std::uint16_t n = 0; n < 10; ++n)
        rig.punt(PuntReason::no_neighbor, PacketBuilder().eth().ip4("10.0.0.9", "192.0.2.7").udp(n, 2).bytes(), "lan",
                 34, rig.hop_to("192.0.2.7"));
    unsigned drops = 0, asked = 0, told = 0;
    const auto look = [&] {
        for (const Sent& sent : rig.out()) {
            drops += sent.kind == ReturnKind::drop && sent.drop == pipeline::DropReason::no_neighbor;
            if (sent.kind != ReturnKind::transmit) continue;
            const bool unreachable = sent.port == rig.port("west") && sent.bytes[23] == 1;
            told += unreachable && sent.bytes[34] == 3 && sent.bytes[35] == 1;
            asked += sent.bytes[16] == 8 && sent.bytes[17] == 6 && sent.bytes[18 + 27] == 7;
        }
    };
    look();
    CHECK(drops == 2);  // eight wait
    CHECK(asked == 1);
    rig.pass(4000);
    look();
    CHECK(asked == 3);
    CHECK(drops == 10);
    CHECK(told == 8);
    CHECK(rig.slow_path->waiting() == 0);
    CHECK(rig.hop_to("192.0.2.7") == rig.hop_to("192.0.2.99"));  // the network's
}

TEST_CASE("slow path: errors speak from the side that the packet came in by", "[slow_path]") {
    struct Case {
        const char* what;
        PuntReason reason;
        Bytes frame;
        const char* from;
        std::uint8_t type, code;
    };
    Rig rig;
    const auto v4 = [](const char* src, const char* dst) {
        return PacketBuilder().eth().ip4(src, dst).udp(1, 2).payload(9).bytes();
    };
    const auto v6 = [](const char* src, const char* dst) {
        return PacketBuilder().eth().ip6(src, dst).udp(1, 2).payload(9).bytes();
    };
    for (const Case& c : {
             Case{"TTL", PuntReason::ttl_exceeded, v4("10.0.0.9", "192.0.2.7"), "10.0.0.1", 11, 0},
             {"TTL, of the sender's own network", PuntReason::ttl_exceeded, v4("10.0.5.9", "192.0.2.7"), "10.0.5.1", 11,
              0},
             {"TTL, from far away", PuntReason::ttl_exceeded, v4("203.0.113.9", "192.0.2.7"), "10.0.0.1", 11, 0},
             {"no route", PuntReason::no_route, v4("10.0.0.9", "8.8.8.8"), "10.0.0.1", 3, 0},
             {"a port of ours", PuntReason::local, v4("10.0.0.9", "192.0.2.1"), "10.0.0.1", 3, 3},
             {"rejected", PuntReason::reject, v4("10.0.0.9", "192.0.2.7"), "10.0.0.1", 3, 13},
             {"hop limit", PuntReason::ttl_exceeded, v6("2001:db8:1::9", "2001:db8:2::7"), "2001:db8:1::1", 3, 0},
             {"no route, IPv6", PuntReason::no_route, v6("2001:db8:1::9", "2001:db8:9::7"), "2001:db8:1::1", 1, 0},
             {"a port of ours, IPv6", PuntReason::local, v6("2001:db8:1::9", "2001:db8:2::1"), "2001:db8:1::1", 1, 4},
         }) {
        INFO(c.what);
        const bool ip6 = c.frame[14] >> 4 == 6;
        if (c.from == std::string("10.0.5.1"))  // its own MAC address is learned first
            rig.punt(PuntReason::arp, arp_frame(net::ArpOp::request, kClientMac, "10.0.5.9", "10.0.5.1"));
        rig.out();
        rig.punt(c.reason, c.frame, "lan", ip6 ? 54 : 34);
        const auto out = rig.out();
        REQUIRE(out.size() == 1);
        CHECK(out[0].kind == ReturnKind::transmit);
        CHECK(out[0].port == rig.port("west"));
        const std::uint8_t* ip = out[0].bytes.data() + 14;
        net::Address from = ip6 ? net::Address{} : net::Address::from_v4(__builtin_bswap32(net::load32(ip + 12)));
        if (ip6) std::copy_n(ip + 8, 16, from.bytes.begin());
        CHECK(net::to_string(from) == c.from);
        CHECK(ip[ip6 ? 40 : 20] == c.type);
        CHECK(ip[ip6 ? 41 : 21] == c.code);
    }
}

TEST_CASE("slow path: the MTU of the next hop stands in packet too big", "[slow_path]") {
    Rig rig;
    test::Ip4Fields df;
    df.fragment = 0x4000;
    rig.punt(PuntReason::mtu_exceeded,
             PacketBuilder().eth().ip4("10.0.0.9", "198.51.100.9", df).udp(1, 2).payload(1400).bytes(), "lan", 34,
             rig.hop_to("198.51.100.9"));
    auto out = rig.out();
    REQUIRE(out.size() == 1);
    CHECK(out[0].bytes.size() == 14 + 576);
    CHECK(net::load16_be(out[0].bytes.data() + 40) == 1280);
    rig.punt(PuntReason::mtu_exceeded,
             PacketBuilder().eth().ip6("2001:db8:1::9", "2001:db8:2::9").udp(1, 2).payload(1400).bytes(), "lan", 54,
             rig.hop_to("2001:db8:2::9"));
    out = rig.out();
    REQUIRE(out.size() == 1);
    CHECK(out[0].bytes.size() == 14 + 1280);
}

TEST_CASE("slow path: nothing is said where RFC 1812 4.3.2.7 forbids it", "[slow_path]") {
    Rig rig;
    const auto from = [](const char* src) { return PacketBuilder().eth().ip4(src, "8.8.8.8").udp(1, 2).bytes(); };
    for (const char* source :
         {"10.0.0.255", "10.0.0.0", "10.0.0.1", "192.0.2.1", "9.9.9.9"}) {  // the last: no way back
        INFO(source);
        rig.punt(PuntReason::ttl_exceeded, from(source), "lan", 34);
        CHECK(rig.out().empty());
    }
    rig.punt(PuntReason::local, PacketBuilder().eth().ip4("10.0.0.9", "10.0.0.1").icmp(0, 0).payload(9).bytes(), "lan",
             34);
    CHECK(rig.out().empty());  // a reply
    test::TcpFields reset;
    reset.flags = 4;
    rig.punt(PuntReason::local, PacketBuilder().eth().ip4("10.0.0.9", "10.0.0.1").tcp(1, 2, reset).bytes(), "lan", 34);
    CHECK(rig.out().empty());
    reset.flags = 2;
    rig.punt(PuntReason::local, PacketBuilder().eth().ip4("10.0.0.9", "10.0.0.1").tcp(1, 2, reset).bytes(), "lan", 34);
    const auto out = rig.out();
    REQUIRE(out.size() == 1);
    CHECK(out[0].bytes[14 + 33] == 0x14);
}

TEST_CASE("slow path: an echo request comes back whole, without its padding", "[slow_path]") {
    Rig rig;
    Bytes frame = PacketBuilder().eth().ip4("10.0.0.9", "192.0.2.1").icmp(8, 0, 7, 9).payload(5).bytes();
    const std::size_t size = frame.size();
    frame.resize(60, 0xa5);
    PuntRecord record;
    record.mbuf = test::make_mbuf(frame).release();
    record.reason = PuntReason::echo;
    record.tenant = rig.tenant();
    record.interface = rig.interface("lan");
    record.l3_offset = 14;
    record.l3_length = static_cast<std::uint16_t>(size - 14);
    record.l4_offset = 34;
    REQUIRE(rig.to->push(record));
    rig.to->publish();
    rig.turn();
    const auto out = rig.out();
    REQUIRE(out.size() == 1);
    CHECK(out[0].bytes == PacketBuilder()
                              .eth(kClientMac, test::kRouterMac)
                              .ip4("192.0.2.1", "10.0.0.9")
                              .icmp(0, 0, 7, 9)
                              .payload(5)
                              .bytes());
}

TEST_CASE("slow path: when it closes nothing waits", "[slow_path]") {
    Rig rig;
    const auto packet = [] { return PacketBuilder().eth().ip4("10.0.0.9", "192.0.2.7").udp(1, 2).bytes(); };
    rig.punt(PuntReason::no_neighbor, packet(), "lan", 34, rig.hop_to("192.0.2.7"));
    CHECK(rig.slow_path->waiting() == 1);
    rig.slow_path->close();
    rig.punt(PuntReason::no_neighbor, packet(), "lan", 34, rig.hop_to("192.0.2.7"));
    unsigned drops = 0;
    for (const Sent& sent : rig.out())
        drops += sent.kind == ReturnKind::drop && sent.drop == pipeline::DropReason::shutdown;
    CHECK(drops == 2);
    CHECK(rig.slow_path->waiting() == 0);
}

TEST_CASE("slow path: more than a queue holds waits its turn, and what a ledger counts is never lost", "[slow_path]") {
    Rig rig;
    for (int n = 0; n < 1500; ++n)
        rig.punt(PuntReason::ttl_exceeded, PacketBuilder().eth().ip4("10.0.0.9", "192.0.2.7").udp(1, 2).bytes(), "lan",
                 34);
    std::size_t seen = 0, errors = 0;  // the gateway is asked for too, meanwhile
    const auto look = [&] {
        for (const Sent& sent : rig.out()) {
            ++seen;
            errors += sent.port == rig.port("west") && sent.bytes[23] == 1;
        }
    };
    look();
    CHECK(seen == pipeline::kReturnSlots);
    rig.turn();
    look();
    CHECK(errors == 1500);
}

}  // namespace
}  // namespace cachewire::control
