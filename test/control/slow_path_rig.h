#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The slow path between its two queues: what workers would punt goes in, what they would send comes out. Snapshots and
// route changes are real.
#include <memory>

#include "config/load.h"
#include "control/publisher.h"
#include "control/route_feed.h"
#include "control/slow_path/slow_path.h"
#include "control/snapshot_builder.h"
#include "net/arp.h"
#include "net/headers.h"
#include "support/catch.h"
#include "support/config_of.h"
#include "support/mbuf.h"
#include "support/packet_builder.h"

namespace cachewire::control {

using pipeline::PuntReason;
using pipeline::PuntRecord;
using pipeline::Return;
using pipeline::ReturnKind;
using test::address;
using test::Bytes;
using test::PacketBuilder;

inline const char* const kSlowPathConfig = R"(version: 1
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

inline constexpr net::Mac kEastMac{{2, 0, 0, 0, 0, 0xee}}, kClientMac{{2, 0, 0, 0, 0, 0x88}},
    kPeerMac{{2, 0, 0, 0, 0, 0x77}};

struct Sent {
    ReturnKind kind;
    pipeline::DropReason drop;
    std::uint16_t port;
    Bytes bytes;
};

struct SlowPathRig {
    SlowPathRig()
        : before(test::mbufs_in_use()),
          builder({{"west", {0, 1, test::kRouterMac}}, {"east", {1, 1, kEastMac}}}, {}, -1),
          publisher(1),
          feed(builder, publisher) {
        config = test::config_of(kSlowPathConfig);
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
    ~SlowPathRig() {
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

inline Bytes arp_frame(net::ArpOp op, const net::Mac& sender_mac, const char* sender, const char* target,
                       const net::Mac& to = test::kBroadcastMac, bool tagged = false) {
    Bytes arp(net::kArpBytes);
    net::write_arp({op, sender_mac, address(sender), {}, address(target)}, arp.data());
    PacketBuilder builder;
    builder.eth(to, sender_mac);
    if (tagged) builder.vlan(7);
    return builder.ether_type(0x0806).payload(arp).pad_to(60).bytes();
}

inline net::Arp arp_of(const Sent& sent, unsigned l2 = 14) {
    const auto arp = net::read_arp(std::span(sent.bytes).subspan(l2));
    REQUIRE(arp);
    return *arp;
}

}  // namespace cachewire::control
