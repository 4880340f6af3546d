// SPDX-License-Identifier: BSD-3-Clause
// What workers hand over for the kernel's twins, and under which rate. The rig has no slow path: what is taken shows as
// the drop reason that it would have over its rate.
#include "control/memo_rig.h"
#include "net/headers.h"
#include "pipeline/twin.h"
#include "support/catch.h"

namespace cachewire {
namespace {

using pipeline::PuntReason;
using test::Bytes;
using test::PacketBuilder;

constexpr net::Mac kLanMac{{2, 0, 0, 0, 0, 1}}, kWanMac{{2, 0, 0, 0, 0, 2}}, kOspfMac{{1, 0, 0x5e, 0, 0, 5}},
    kOspf6Mac{{0x33, 0x33, 0, 0, 0, 5}};

const char* const kConfig = R"(version: 1
ports: [{name: lan, device: net_null0}, {name: wan, device: net_null1}]
tenants: [{name: edge, id: 1, match: [{port: lan}, {port: wan}], acl: control}]
interfaces:
  - {name: lan, port: lan, addresses: [10.0.0.1/24, "2001:db8::1/64"], kernel: {ifname: cw-lan, netns: edge}}
  - {name: lan7, port: lan, vlan: 7, addresses: [10.7.0.1/24, "2001:db8:7::1/64"], kernel: {ifname: cw-lan7, netns: edge}}
  - {name: wan, port: wan, addresses: [192.0.2.1/24, "2001:db8:1::1/64"]}
acl:
  - {name: control, default: permit, stateful: true, rules: [{action: deny, src: 10.0.0.66/32}]}
)";

Bytes ospf(const net::Mac& to, const char* src, const char* dst) {
    PacketBuilder packet;
    packet.eth(to);
    if (std::string_view(src).find(':') == std::string_view::npos) {
        packet.ip4(src, dst, {.ttl = 1, .proto = 89});
    } else {
        packet.ip6(src, dst, {.hop_limit = 1, .next_header = 89});
    }
    return packet.payload(24).bytes();
}

TEST_CASE("twin: what is for the router goes to the kernel, but for what cachewire answers", "[control]") {
    test::Builder builder({{"lan", {0, 1, kLanMac}}, {"wan", {1, 1, kWanMac}}});
    test::Runner runner;
    const auto snapshot = builder.build(kConfig);
    const auto tcp = [](const net::Mac& to, const char* src, const char* dst, std::uint16_t from, std::uint16_t port,
                        std::uint8_t flags) {
        return PacketBuilder().eth(to).ip4(src, dst).tcp(from, port, {.flags = flags}).bytes();
    };
    // To a link-local address, as sessions over unnumbered links go.
    const auto bgp6 = [](PacketBuilder& l2) {
        return l2.ip6("fe80::9", "fe80::ff:fe00:1", {.hop_limit = 1}).tcp(40000, 179, {.flags = 2}).bytes();
    };
    const auto bfd6 = [](PacketBuilder& l2) {
        return l2.ip6("fe80::9", "fe80::ff:fe00:1", {.hop_limit = 255}).udp(49152, 3784).payload(24).bytes();
    };
    struct Case {
        const char* what;
        const char* port;
        Bytes frame;
        const char* fate;
    };
    const Case cases[] = {
        {"a BGP peer on the link", "lan", bgp6(PacketBuilder().eth(kLanMac)), "kernel_rate"},
        {"the same on a VLAN", "lan", bgp6(PacketBuilder().eth(kLanMac).vlan(7)), "kernel_rate"},
        {"BFD on the link", "lan", bfd6(PacketBuilder().eth(kLanMac)), "kernel_rate"},
        {"the same on a VLAN", "lan", bfd6(PacketBuilder().eth(kLanMac).vlan(7)), "kernel_rate"},
        {"the same where no twin is", "wan", bgp6(PacketBuilder().eth(kWanMac)), "martian_destination"},
        {"a BGP peer connects", "lan", tcp(kLanMac, "10.0.0.9", "10.0.0.1", 40000, 179, 2), "kernel_rate"},
        {"it answers a connection of the twin's, which no session knows", "lan",
         tcp(kLanMac, "10.0.0.9", "10.0.0.1", 179, 40000, 0x12), "kernel_rate"},
        {"the same through us", "lan", tcp(kLanMac, "10.0.0.9", "192.0.2.9", 179, 40000, 0x12), "session_state"},
        {"to another interface's address", "wan", tcp(kWanMac, "192.0.2.9", "10.0.0.1", 40000, 179, 2), "kernel_rate"},
        {"from whom the list denies", "lan", tcp(kLanMac, "10.0.0.66", "10.0.0.1", 40000, 179, 2), "acl_deny"},
        {"an echo request", "lan", PacketBuilder().eth(kLanMac).ip4("10.0.0.9", "10.0.0.1").icmp(8, 0, 7).bytes(),
         "local"},
        {"an echo reply", "lan", PacketBuilder().eth(kLanMac).ip4("10.0.0.9", "10.0.0.1").icmp(0, 0, 7).bytes(),
         "kernel_rate"},
        {"OSPF to its group", "lan", ospf(kOspfMac, "10.0.0.9", "224.0.0.5"), "kernel_rate"},
        {"OSPF to its group where no twin is", "wan", ospf(kOspfMac, "192.0.2.9", "224.0.0.5"), "multicast"},
        {"a group of more than the link", "lan", ospf(kOspfMac, "10.0.0.9", "239.0.0.5"), "multicast"},
        {"OSPFv3 to its group", "lan", ospf(kOspf6Mac, "fe80::9", "ff02::5"), "kernel_rate"},
        {"OSPFv3 to us", "lan", ospf(kLanMac, "fe80::9", "fe80::ff:fe00:1"), "kernel_rate"},
        {"OSPFv3 where no twin is", "wan", ospf(kWanMac, "fe80::9", "fe80::ff:fe00:2"), "martian_destination"},
        {"a link-local destination in a broadcast", "lan", ospf(test::kBroadcastMac, "fe80::9", "fe80::ff:fe00:1"),
         "martian_destination"},
    };
    for (const Case& c : cases) {
        INFO(c.what);
        CHECK(runner.run_one(*snapshot, {builder.port(c.port), c.frame}) == c.fate);
    }
    CHECK(runner.worker->sessions->stats().active == 0);
}

TEST_CASE("twin: each kind of packet has its class", "[control]") {
    struct Case {
        std::uint8_t proto;
        std::uint16_t from, to;
        std::uint8_t flags;
        PuntReason reason;
    };
    const Case cases[] = {
        {6, 40000, 179, net::kL4Known, PuntReason::kernel_bgp},
        {6, 179, 40000, net::kL4Known, PuntReason::kernel_bgp},
        {17, 40000, 179, net::kL4Known, PuntReason::kernel_other},
        {89, 0, 0, 0, PuntReason::kernel_ospf},
        {17, 49152, 3784, net::kL4Known, PuntReason::kernel_bfd},
        {17, 49152, 4784, net::kL4Known, PuntReason::kernel_bfd},
        {17, 3784, 49152, net::kL4Known, PuntReason::kernel_other},
        {6, 40000, 22, net::kL4Known, PuntReason::kernel_other},
        {6, 0, 0, net::kLaterFragment | net::kFragment, PuntReason::kernel_other},
    };
    for (const Case& c : cases) {
        net::FlowKey key;
        key.proto = c.proto;
        key.src_port_be = net::be16(c.from);
        key.dst_port_be = net::be16(c.to);
        key.match_flags = c.flags;
        INFO(int{c.proto} << " " << c.from << " " << c.to);
        CHECK(pipeline::twin_reason(key) == c.reason);
    }
}

TEST_CASE("twin: rates are the configuration's, each class's own", "[control]") {
    test::Builder builder({{"lan", {0, 1, kLanMac}}, {"wan", {1, 1, kWanMac}}});
    const auto usual = builder.build(kConfig);
    const auto changed = builder.build(std::string(kConfig) + "kernel: {punt: {bgp: 8kpps, other: 1pps}}\n");
    const auto of = [](const pipeline::Snapshot& snapshot, pipeline::PuntClass c) {
        return snapshot.kernel_punt[static_cast<std::size_t>(c) - pipeline::kFirstKernelClass];
    };
    CHECK(of(*usual, pipeline::PuntClass::kernel_bgp).tsc == base::tsc_hz() / 1000);
    CHECK(of(*usual, pipeline::PuntClass::kernel_bgp).burst == 250);
    CHECK(of(*usual, pipeline::PuntClass::kernel_bfd).tsc == base::tsc_hz() / 2000);
    CHECK(of(*usual, pipeline::PuntClass::kernel_other).burst == 32);
    CHECK(of(*changed, pipeline::PuntClass::kernel_bgp).tsc == base::tsc_hz() / 8000);
    CHECK(of(*changed, pipeline::PuntClass::kernel_other).tsc == base::tsc_hz());
    CHECK(of(*changed, pipeline::PuntClass::kernel_ospf).tsc == base::tsc_hz() / 1000);
}

}  // namespace
}  // namespace cachewire
