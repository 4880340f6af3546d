// SPDX-License-Identifier: BSD-3-Clause
// A device that leaves: EAL's event sets a flag, and the port can be closed, forgotten by EAL and opened again.
#include "port/removal.h"

#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "port/port.h"
#include "support/catch.h"
#include "support/eal.h"
#include "support/skip.h"

using namespace cachewire;
using namespace cachewire::port;

namespace {

PortConfig null_port(const std::string& device) {
    test::ensure_eal();
    PortConfig config;
    config.name = "wan";
    config.device = {DeviceKind::vdev, device, ""};
    return config;
}

rte_mempool* pool() {
    static rte_mempool* made = make_mempool("removal_test", 4095, 64, 2176, SOCKET_ID_ANY);
    return made;
}

}  // namespace

TEST_CASE("removal: EAL's event on the device is seen, another device's and another event are not", "[port]") {
    PortConfig config = null_port("net_null90");
    REQUIRE(rte_dev_probe("net_null90") == 0);
    EthPort port(config, pool());
    CHECK(port.gone().empty());
    rte_dev_event_callback_process("net_null91", RTE_DEV_EVENT_REMOVE);
    rte_dev_event_callback_process("net_null90", RTE_DEV_EVENT_ADD);
    CHECK(port.gone().empty());
    rte_dev_event_callback_process("net_null90", RTE_DEV_EVENT_REMOVE);
    CHECK(port.gone() == "device net_null90");
}

TEST_CASE("removal: a port is closed, forgotten by EAL and opened again with nothing lost", "[port]") {
    PortConfig config = null_port("net_null92");
    REQUIRE(rte_dev_probe("net_null92") == 0);
    const unsigned before = rte_mempool_avail_count(pool());
    EthPort port(config, pool());
    for (unsigned round = 0; round < 5; ++round) {
        rte_dev_event_callback_process("net_null92", RTE_DEV_EVENT_REMOVE);
        REQUIRE_FALSE(port.gone().empty());
        port.close();
        port.unplug();
        std::uint16_t id = 0;
        CHECK(rte_eth_dev_get_port_by_name("net_null92", &id) != 0);
        CHECK_FALSE(port.is_open());
        CHECK(port.stats().link_up == false);
        REQUIRE(port.can_open());
        port.open();
        CHECK(port.is_open());
        CHECK(port.gone().empty());
    }
    CHECK(port.lost_mbufs() == 0);
    port.close();
    CHECK(rte_mempool_avail_count(pool()) == before);
}

TEST_CASE("removal: a flag of an earlier device does not count for the next", "[port]") {
    PortConfig config = null_port("net_null93");
    REQUIRE(rte_dev_probe("net_null93") == 0);
    EthPort port(config, pool());
    Removal removal;
    removal.watch(port.id(), "net_null93", false);
    rte_dev_event_callback_process("net_null93", RTE_DEV_EVENT_REMOVE);
    CHECK(removal.seen());
    removal.watch(port.id(), "net_null93", false);
    CHECK_FALSE(removal.seen());
    removal.forget();
    rte_dev_event_callback_process("net_null93", RTE_DEV_EVENT_REMOVE);
    CHECK_FALSE(removal.seen());
}

TEST_CASE("removal: a TAP's descriptor tells that its interface was deleted", "[port]") {
    const int tap = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
    ifreq request{};
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    std::strncpy(request.ifr_name, "cwremoval%d", IFNAMSIZ - 1);
    if (tap < 0 || ioctl(tap, TUNSETIFF, &request) != 0) {
        if (tap >= 0) close(tap);
        return test::say_skipped("no TAP can be made here");
    }
    const std::string name = request.ifr_name;
    CHECK(tap_descriptor(name) == tap);
    CHECK(tap_descriptor("cwnothere0") == -1);
    CHECK_FALSE(tap_deleted(tap));
    REQUIRE(std::system(("ip link del " + name).c_str()) == 0);
    CHECK(tap_deleted(tap));
    CHECK(tap_descriptor(name) == -1);
    close(tap);
}
