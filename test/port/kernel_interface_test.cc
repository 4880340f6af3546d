// SPDX-License-Identifier: BSD-3-Clause
#include "port/kernel_interface.h"

#include "support/catch.h"

using namespace cachewire::port;

namespace {

KernelFacts veth() {
    KernelFacts facts;
    facts.index = 7;
    facts.up = true;
    facts.driver = "veth";
    return facts;
}

KernelWish wish(std::uint16_t queues = 1, std::uint16_t mtu = 1500, std::uint16_t mbuf_size = 2176) {
    KernelWish w;
    w.interface = "vA";
    w.queues = queues;
    w.mtu = mtu;
    w.mbuf_size = mbuf_size;
    return w;
}

}  // namespace

TEST_CASE("kernel interface: AF_XDP where it works, else AF_PACKET, and why", "[port]") {
    struct Case {
        const char* what;
        KernelWish wish;
        void (*change)(KernelFacts&);
        KernelDriver driver;
        const char* why;
    };
    KernelWish failed = wish();
    failed.xdp_failed = true;
    KernelWish gaps = wish();
    gaps.pool_has_gaps = true;
    KernelWish dear = wish();
    dear.xdp_too_dear = true;
    const Case cases[] = {
        {"veth with one queue", wish(), [](KernelFacts&) {}, KernelDriver::af_xdp,
         "kernel, driver veth and 1 queue allow it"},
        {"down: it will be set up", wish(), [](KernelFacts& f) { f.up = false; }, KernelDriver::af_xdp, "driver veth"},
        {"a NIC with as many queues", wish(4), [](KernelFacts& f) { f.driver = "ice", f.rx_queues = 4; },
         KernelDriver::af_xdp, "kernel, driver ice and 4 queues allow it"},
        {"a driver that says nothing", wish(), [](KernelFacts& f) { f.driver = ""; }, KernelDriver::af_xdp,
         "driver (unknown)"},
        {"veth with two queues", wish(), [](KernelFacts& f) { f.rx_queues = 2; }, KernelDriver::af_packet,
         "AF_XDP on veth needs one active queue and it has 2; `ethtool -L vA rx 1 tx 1`"},
        {"veth with two queues, two wanted", wish(2), [](KernelFacts& f) { f.rx_queues = 2; }, KernelDriver::af_packet,
         "AF_XDP on veth needs one active queue"},
        {"a NIC with more queues", wish(1), [](KernelFacts& f) { f.driver = "ice", f.rx_queues = 8; },
         KernelDriver::af_packet, "its 8 receive queues and the port's 1 would have to be as many"},
        {"a NIC with fewer queues", wish(4), [](KernelFacts& f) { f.driver = "ice", f.rx_queues = 2; },
         KernelDriver::af_packet, "set `rxq: 2`, or `ethtool -L vA combined 4`"},
        {"jumbo frames", wish(1, 9000, 12416), [](KernelFacts&) {}, KernelDriver::af_packet,
         "an mtu of 9000 is above the 3498"},
        {"no driver", wish(), [](KernelFacts& f) { f.xdp_plugin = false; }, KernelDriver::af_packet,
         "DPDK's driver net_af_xdp is not in "},
        {"no such socket", wish(), [](KernelFacts& f) { f.no_xdp_socket = "the kernel was built without it"; },
         KernelDriver::af_packet, "AF_XDP sockets: the kernel was built without it"},
        {"buffers for a NIC", gaps, [](KernelFacts&) {}, KernelDriver::af_packet,
         "wants buffers in one piece of memory"},
        {"its buffers are too dear", dear, [](KernelFacts&) {}, KernelDriver::af_packet, "the pool runs low"},
        {"somebody's XDP program", wish(), [](KernelFacts& f) { f.xdp_program = "firewall"; }, KernelDriver::af_packet,
         "the XDP program firewall is on it; `ip link set dev vA xdp off`"},
        {"left by a process that was killed", wish(), [](KernelFacts& f) { f.xdp_program = "xsk_def_prog"; },
         KernelDriver::af_xdp, "kernel, driver veth"},
        {"it was tried", failed, [](KernelFacts&) {}, KernelDriver::af_packet, "AF_XDP did not start on it"},
    };
    for (const Case& c : cases) {
        INFO(c.what);
        KernelFacts facts = veth();
        c.change(facts);
        std::string error;
        const auto choice = choose_driver(c.wish, facts, error);
        REQUIRE(choice.has_value());
        INFO(choice->why);
        CHECK(choice->driver == c.driver);
        CHECK(choice->why.find(c.why) != std::string::npos);
        CHECK(error.empty());
    }
}

TEST_CASE("kernel interface: what neither can do is an error that says what to do", "[port]") {
    struct Case {
        const char* what;
        KernelWish wish;
        void (*change)(KernelFacts&);
        const char* error;
    };
    const Case cases[] = {
        {"missing", wish(), [](KernelFacts& f) { f.index = 0; },
         "no interface vA in this network namespace; `ip -br link`"},
        {"no Ethernet", wish(), [](KernelFacts& f) { f.ethernet = false; }, "carries no Ethernet frames"},
        {"no rights", wish(), [](KernelFacts& f) { f.no_xdp_socket = f.no_packet_socket = "Operation not permitted"; },
         "AF_PACKET sockets: Operation not permitted: run as root"},
        {"another AF_XDP program", wish(),
         [](KernelFacts& f) { f.xdp_program = "xsk_def_prog", f.xdp_holder = "dpdk-testpmd (pid 7)"; },
         "dpdk-testpmd (pid 7) receives by vA through AF_XDP, and two can't share an interface"},
        {"no drivers", wish(), [](KernelFacts& f) { f.xdp_plugin = f.packet_plugin = false; },
         "AF_PACKET's driver net_af_packet is not in "},
        {"jumbo frames in small buffers", wish(1, 9000), [](KernelFacts&) {},
         "in slots of 12288 bytes, which need `memory: mbuf_size` 12416, not 2176"},
    };
    for (const Case& c : cases) {
        INFO(c.what);
        KernelFacts facts = veth();
        c.change(facts);
        std::string error;
        CHECK_FALSE(choose_driver(c.wish, facts, error).has_value());
        INFO(error);
        CHECK(error.find(c.error) != std::string::npos);
    }
}

TEST_CASE("kernel interface: the device that EAL makes of it", "[port]") {
    const Device xdp = kernel_device(wish(2), KernelDriver::af_xdp);
    CHECK(xdp.name == "net_af_xdp_vA");
    CHECK(xdp.arguments == "iface=vA,queue_count=2");
    CHECK(interface_below(xdp) == "vA");
    const Device packet = kernel_device(wish(2), KernelDriver::af_packet);
    CHECK(packet.name == "net_af_packet_vA");
    CHECK(packet.arguments == "iface=vA,qpairs=2,framesz=2048,blocksz=4096");
    CHECK(interface_below(packet) == "vA");
    CHECK(kernel_device(wish(1, 9000, 12416), KernelDriver::af_packet).arguments ==
          "iface=vA,qpairs=1,framesz=12288,blocksz=12288");
}

TEST_CASE("kernel interface: which one is below a device", "[port]") {
    CHECK(interface_below({DeviceKind::kernel, "eth1", ""}) == "eth1");
    CHECK(interface_below({DeviceKind::vdev, "net_af_packet0", "qpairs=2,iface=eth1"}) == "eth1");
    CHECK(interface_below({DeviceKind::vdev, "net_af_xdp0", "iface=eth1,queue_count=2"}) == "eth1");
    CHECK(interface_below({DeviceKind::vdev, "net_tap0", "iface=cw0"}).empty());
    CHECK(interface_below({DeviceKind::vdev, "net_af_packet0", ""}).empty());
    CHECK(interface_below({DeviceKind::pci, "0000:03:00.0", ""}).empty());
}

TEST_CASE("kernel interface: a slot holds the longest frame and fits pages", "[port]") {
    for (unsigned mtu = 68; mtu <= 65535; mtu += mtu < 20000 ? 1 : 97) {
        const unsigned slot = packet_slot_bytes(static_cast<std::uint16_t>(mtu));
        INFO("mtu " << mtu << ", slot " << slot);
        REQUIRE((slot == 2048 || slot % 4096 == 0));
        REQUIRE(slot >= mtu + 22 + 66);
        REQUIRE((slot == 2048 || slot - 4096 < mtu + 22 + 96 || slot == 4096));
    }
}

TEST_CASE("kernel interface: names that Linux and device arguments hold", "[port]") {
    for (const char* name : {"eth1", "veth-a.1@x", "enp3s0f0np0", "A_b"}) {
        INFO(name);
        CHECK(why_no_interface_name(name).empty());
    }
    for (const char* name : {"", ".", "..", "a,b", "a b", "a/b", "a=b", "sixteenlettersxx", "a:1"}) {
        INFO(name);
        CHECK_FALSE(why_no_interface_name(name).empty());
    }
}

TEST_CASE("kernel interface: the machine is asked", "[port]") {
    CHECK(probe_interface("cwnothere0").index == 0);
    const KernelFacts lo = probe_interface("lo");
    CHECK(lo.index != 0);
    CHECK_FALSE(lo.ethernet);
}
