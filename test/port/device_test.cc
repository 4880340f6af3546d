// SPDX-License-Identifier: BSD-3-Clause
#include "port/port.h"
#include "support/catch.h"

using namespace cachewire::port;

TEST_CASE("device: a string is a PCI address or a virtual device", "[port]") {
    struct Case {
        const char* text;
        DeviceKind kind;
        const char* name;
        const char* arguments;
    };
    const Case cases[] = {
        {"0000:03:00.0", DeviceKind::pci, "0000:03:00.0", ""},
        {"03:00.1", DeviceKind::pci, "0000:03:00.1", ""},
        {"0001:AF:1F.7", DeviceKind::pci, "0001:af:1f.7", ""},
        {"10000:01:00.0", DeviceKind::pci, "10000:01:00.0", ""},
        {"0000:03:00.0,representor=[0-1]", DeviceKind::pci, "0000:03:00.0", "representor=[0-1]"},
        {"net_tap0,iface=cw0", DeviceKind::vdev, "net_tap0", "iface=cw0"},
        {"kernel:veth-a.1@x", DeviceKind::kernel, "veth-a.1@x", ""},
        {"net_null0", DeviceKind::vdev, "net_null0", ""},
        {"net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap", DeviceKind::vdev, "net_pcap0",
         "rx_pcap=in.pcap,tx_pcap=out.pcap"},
        {"net_af_packet0,iface=vA,qpairs=2", DeviceKind::vdev, "net_af_packet0", "iface=vA,qpairs=2"},
        {"net_virtio_user0,path=/tmp/v.sock", DeviceKind::vdev, "net_virtio_user0", "path=/tmp/v.sock"},
    };
    for (const Case& c : cases) {
        INFO(c.text);
        std::string why;
        const auto device = parse_device(c.text, why);
        REQUIRE(device.has_value());
        CHECK(device->kind == c.kind);
        CHECK(device->name == c.name);
        CHECK(device->arguments == c.arguments);
        CHECK(why.empty());
    }
}

TEST_CASE("device: what is neither is refused and says why", "[port]") {
    struct Case {
        std::string text;
        const char* why;
    };
    const Case cases[] = {
        {"", "is empty; allowed is a Linux interface"},
        {"kernel:", "\"kernel:\": names no interface"},
        {"kernel:a,b", "\"kernel:a,b\": the name may hold letters, digits and ._-@"},
        {"kernel:sixteenlettersxx", "the name has 16 characters; Linux allows 15"},
        {"eth1", "\"eth1\" is no device; allowed is a Linux interface"},
        {"net_", "not the name of a virtual device"},
        {"net_tap-0", "not the name of a virtual device"},
        {"net_TAP0", "not the name of a virtual device"},
        {"net_tap0,", "ends in a comma"},
        {" net_tap0", "is no device"},
        {"net_tap0,iface=a\nb", "control character"},
        {"0000:03:20.0", "not a PCI address"},
        {"0000:03:00.8", "not a PCI address"},
        {"0000:03:00", "not a PCI address"},
        {"0000:+3:00.0", "is no device"},
        {"0000:103:00.0", "not a PCI address"},
        {"net_" + std::string(80, 'x'), "characters; DPDK allows 63"},
    };
    for (const Case& c : cases) {
        INFO(c.text);
        std::string why;
        CHECK_FALSE(parse_device(c.text, why).has_value());
        INFO(why);
        CHECK(why.find(c.why) != std::string::npos);
    }
}

TEST_CASE("device: EAL takes no NIC that no port names", "[port]") {
    using Arguments = std::vector<std::string>;
    const Device tap{DeviceKind::vdev, "net_tap0", "iface=cw0"};
    const Device null{DeviceKind::vdev, "net_null0", ""};
    const Device nic{DeviceKind::pci, "0000:03:00.0", ""};
    const Device nic_with_arguments{DeviceKind::pci, "0000:03:00.1", "mprq_en=1"};
    CHECK(eal_arguments({{DeviceKind::kernel, "eth1", ""}}) == Arguments{"--no-pci"});
    CHECK(eal_arguments({}) == Arguments{"--no-pci"});
    CHECK(eal_arguments({tap, null}) == Arguments{"--no-pci", "--vdev=net_tap0,iface=cw0", "--vdev=net_null0"});
    CHECK(eal_arguments({tap, nic, nic_with_arguments}) ==
          Arguments{"-a", "0000:03:00.0", "-a", "0000:03:00.1,mprq_en=1", "--vdev=net_tap0,iface=cw0"});
}
