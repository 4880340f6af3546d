// SPDX-License-Identifier: BSD-3-Clause
// On real drivers, loaded as plug-ins: net_null has queues and an address to set, net_ring has neither address nor MTU
// and hands back what was sent, net_pcap reads files.
#include "port/port.h"

#include <fmt/format.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/error.h"
#include "support/catch.h"
#include "support/eal.h"

using namespace cachewire;
using namespace cachewire::port;

namespace {

rte_mempool* device_pool() {
    static rte_mempool* pool = make_mempool("port_test", 8191, 64, 2176, SOCKET_ID_ANY);
    return pool;
}

// A device of its own for each port: close removes it.
PortConfig make_device(const std::string& driver, const std::string& arguments = "") {
    static unsigned count = 0;
    test::ensure_eal();
    const std::string name = fmt::format("{}{}", driver, count++);
    const std::string devargs = arguments.empty() ? name : name + "," + arguments;
    REQUIRE(rte_dev_probe(devargs.c_str()) == 0);
    PortConfig config;
    config.name = "wan";
    config.device = {DeviceKind::vdev, name, arguments};
    return config;
}

std::string error_of(const PortConfig& config) {
    try {
        EthPort port(config, device_pool());
    } catch (const base::MachineError& error) {
        return error.what();
    }
    return "";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("port: comes up and moves packets", "[port]") {
    const char* driver = GENERATE("net_null", "net_ring");
    INFO(driver);
    const PortConfig config = make_device(driver);
    EthPort port(config, device_pool());
    CHECK(port.name() == "wan");
    CHECK_FALSE(port.mac().is_zero());
    CHECK_FALSE(port.mac().is_multicast());
    rte_mbuf* mbuf = rte_pktmbuf_alloc(device_pool());
    REQUIRE(mbuf != nullptr);
    REQUIRE(rte_pktmbuf_append(mbuf, 60) != nullptr);
    CHECK(rte_eth_tx_burst(port.id(), 0, &mbuf, 1) == 1);
    CHECK(rte_eth_rx_burst(port.id(), 0, &mbuf, 1) == 1);
    rte_pktmbuf_free(mbuf);
    CHECK(port.stats().driver == driver);
}

TEST_CASE("port: a configured address holds on every device", "[port]") {
    const net::Mac wanted{{0x02, 0, 0, 0, 0, 0x07}};
    SECTION("the driver takes it") {
        PortConfig config = make_device("net_null");
        config.mac = wanted;
        EthPort port(config, device_pool());
        CHECK(port.mac() == wanted);
        rte_ether_addr address;
        REQUIRE(rte_eth_macaddr_get(port.id(), &address) == 0);
        CHECK(address.addr_bytes[5] == 0x07);
    }
    SECTION("in software where the driver can't") {
        PortConfig config = make_device("net_ring");
        config.mac = wanted;
        EthPort port(config, device_pool());
        CHECK(port.mac() == wanted);
    }
    SECTION("a device without one gets the same one after a restart") {
        const auto mac_after_start = [] { return EthPort(make_device("net_ring"), device_pool()).mac(); };
        CHECK(mac_after_start() == mac_after_start());
    }
    SECTION("a multicast address is refused") {
        PortConfig config = make_device("net_null");
        config.mac = net::Mac{{0x01, 0, 0x5e, 0, 0, 1}};
        CHECK(contains(error_of(config), "multicast"));
    }
}

TEST_CASE("port: a limit of the device is an error that names it", "[port]") {
    SECTION("queues") {
        PortConfig config = make_device("net_null");
        config.rx_queues = 60000;
        const std::string error = error_of(config);
        INFO(error);
        CHECK(contains(error, "port wan (net_null"));
        CHECK(contains(error, "60000 receive and 1 send queues are wanted, the driver net_null offers 1024 and 1024"));
    }
    SECTION("mtu above the buffer") {
        PortConfig config = make_device("net_null");
        config.mtu = 9000;
        const std::string error = error_of(config);
        INFO(error);
        CHECK(contains(
            error,
            "an mtu of 9000 and 22 bytes of Ethernet and VLAN headers make frames of 9022, an mbuf_size of 2176 "
            "less 128 of headroom holds 2048, and the driver net_null does not spread frames over buffers: raise "
            "`memory: "
            "mbuf_size` to 9150"));
    }
    SECTION("the largest mtu that fits") {
        PortConfig config = make_device("net_null");
        config.mtu = 2026;
        CHECK(error_of(config).empty());
        config = make_device("net_null");
        config.mtu = 2027;
        CHECK(contains(error_of(config), "frames of 2049"));
    }
    SECTION("no such virtual device") {
        PortConfig config;
        config.name = "lan";
        config.device = {DeviceKind::vdev, "net_nothing0", ""};
        CHECK(contains(error_of(config), "port lan (net_nothing0): no driver made this device"));
    }
    SECTION("no such PCI device") {
        PortConfig config;
        config.name = "lan";
        config.device = {DeviceKind::pci, "ffff:ff:1f.7", ""};
        CHECK(contains(error_of(config), "no such PCI device; `lspci -D`"));
    }
}

TEST_CASE("port: mtu changes at run time within the buffer", "[port]") {
    EthPort port(make_device("net_null"), device_pool());
    port.set_mtu(1400);
    CHECK(port.config().mtu == 1400);
    std::uint16_t mtu = 0;
    REQUIRE(rte_eth_dev_get_mtu(port.id(), &mtu) == 0);
    CHECK(mtu == 1400);
    CHECK_THROWS_AS(port.set_mtu(4000), base::MachineError);
    CHECK(port.config().mtu == 1400);
}

TEST_CASE("port: stop leaves no mbuf in a ring", "[port]") {
    const unsigned before = rte_mempool_avail_count(device_pool());
    {
        EthPort port(make_device("net_ring"), device_pool());
        for (unsigned i = 0; i < 500; ++i) {
            rte_mbuf* mbuf = rte_pktmbuf_alloc(device_pool());
            REQUIRE(mbuf != nullptr);
            REQUIRE(rte_eth_tx_burst(port.id(), 0, &mbuf, 1) == 1);
        }
        CHECK(rte_mempool_avail_count(device_pool()) == before - 500);
        port.stop();
    }
    CHECK(rte_mempool_avail_count(device_pool()) == before);
}

TEST_CASE("mempool: buffers lie side by side, but for a NIC's", "[port]") {
    test::ensure_eal();
    rte_mempool* dense = make_mempool("dense", 4095, 64, 2176, SOCKET_ID_ANY);
    rte_mempool* gaps = make_mempool("gaps", 4095, 64, 2176, SOCKET_ID_ANY, true);
    CHECK(lies_side_by_side(dense));
    CHECK_FALSE(lies_side_by_side(gaps));  // 4 KB pages here, and none goes over one
    for (rte_mempool* pool : {dense, gaps}) {
        CHECK(rte_mempool_avail_count(pool) == 4095);
        rte_mbuf* mbuf = rte_pktmbuf_alloc(pool);
        REQUIRE(mbuf != nullptr);
        CHECK(rte_pktmbuf_tailroom(mbuf) == 2048);
        CHECK(rte_pktmbuf_headroom(mbuf) == 128);
        rte_pktmbuf_free(mbuf);
        rte_mempool_free(pool);
    }
}

TEST_CASE("mempool: an error says how much memory is needed and how to get it", "[port]") {
    test::ensure_eal();
    const auto error_of_pool = [](unsigned mbufs, unsigned cache, unsigned size) -> std::string {
        try {
            make_mempool("too_much", mbufs, cache, size, SOCKET_ID_ANY);
        } catch (const base::MachineError& error) {
            return error.what();
        }
        return "";
    };
    const std::string memory = error_of_pool(4'000'000, 256, 2176);
    INFO(memory);
    CHECK(contains(memory, "mempool too_much: 4000000 mbufs of 2176 bytes need 9"));
    CHECK(contains(memory, "MiB"));
    CHECK(contains(memory, "`-m "));
    CHECK(contains(error_of_pool(1000, 700, 2176), "a cache of 700 is too large for 1000 mbufs: at most 512"));
    CHECK(contains(error_of_pool(100, 67, 2176), "at most 66"));
    CHECK(contains(error_of_pool(100, 0, 100), "is not between 129 and 65535"));
}
