// SPDX-License-Identifier: BSD-3-Clause
// Neighbors and the packets that wait for them.
#include <algorithm>

#include "control/slow_path_rig.h"
#include "net/nd.h"

namespace cachewire::control {
namespace {

TEST_CASE("slow path: ARP has exactly the address that was asked for, on its own interface only", "[slow_path]") {
    SlowPathRig rig;
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
    SlowPathRig rig;
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
    SlowPathRig rig;
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
    SlowPathRig rig;
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

TEST_CASE("slow path: the configuration's word on a neighbor goes before the kernel's, that before the link's",
          "[slow_path]") {
    SlowPathRig rig;
    const std::uint16_t lan = rig.interface("lan"), wan = rig.interface("wan");
    const auto tell = [&rig](const std::vector<KernelNeighbor>& neighbors) {
        rig.slow_path->set_kernel_neighbors(neighbors, rig.now += 60);
        rig.turn();
    };
    const auto known = [&rig](std::uint16_t interface, const char* text) {
        return rig.slow_path->neighbors().find({rig.tenant(), interface, address(text)});
    };
    const auto hop = [&rig](const char* text) { return rig.publisher.current()->next_hops[rig.hop_to(text)]; };
    const auto goes_to = [&hop](const char* text, const net::Mac& mac) {
        const route::NextHop next = hop(text);
        return next.kind == route::NextHopKind::forward &&
               std::equal(mac.bytes.begin(), mac.bytes.end(), next.l2_header.begin());
    };
    tell({{lan, address("10.0.0.9"), kPeerMac},        // the configuration's
          {lan, address("10.0.0.30"), kPeerMac},       // nobody else's
          {lan, address("2001:db8:1::30"), kPeerMac},  //
          {wan, address("192.0.2.254"), kPeerMac},     // a gateway
          {lan, address("198.18.0.1"), kPeerMac},      // on no network of the link
          {lan, address("10.0.0.1"), kPeerMac},        // our own
          {60000, address("10.0.0.31"), kPeerMac}});   // by an interface that is not there
    CHECK(goes_to("10.0.0.9", kClientMac));
    for (const char* text : {"10.0.0.30", "2001:db8:1::30", "192.0.2.254", "198.51.100.1"}) {
        INFO(text);
        CHECK(goes_to(text, kPeerMac));
    }
    CHECK(known(lan, "198.18.0.1") == nullptr);
    CHECK(known(lan, "10.0.0.1") == nullptr);
    rig.punt(PuntReason::arp, arp_frame(net::ArpOp::request, kClientMac, "10.0.0.30", "10.0.0.1"));
    CHECK(goes_to("10.0.0.30", kPeerMac));
    rig.slow_path->configure(rig.config, rig.builder.registry(), std::vector<bool>(pipeline::kMaxPorts, false),
                             rig.now);
    rig.turn();
    CHECK(goes_to("10.0.0.30", kPeerMac));

    rig.out();
    tell({});
    CHECK(goes_to("10.0.0.9", kClientMac));
    CHECK(known(lan, "10.0.0.30") == nullptr);
    CHECK(hop("10.0.0.30").kind == route::NextHopKind::unresolved);
    REQUIRE(known(wan, "192.0.2.254") != nullptr);
    CHECK(known(wan, "192.0.2.254")->phase == NeighborPhase::incomplete);
    CHECK(rig.out().size() == 1);  // the gateway is asked for

    rig.slow_path->hear_kernel_neighbor({lan, address("10.0.0.31"), kPeerMac}, rig.now += 60);
    rig.turn();
    CHECK(goes_to("10.0.0.31", kPeerMac));
    rig.punt(PuntReason::arp, arp_frame(net::ArpOp::request, kClientMac, "10.0.0.31", "10.0.0.1"));
    CHECK(goes_to("10.0.0.31", kClientMac));
}

TEST_CASE("slow path: when it closes nothing waits", "[slow_path]") {
    SlowPathRig rig;
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
    SlowPathRig rig;
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
