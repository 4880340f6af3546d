// SPDX-License-Identifier: BSD-3-Clause
// The watch over ports whose device goes: what it publishes and in which order, held against a device that EAL reports
// as removed. Publication is a stand-in, so each of its answers can be tried.
#include "control/ports.h"

#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>

#include "support/catch.h"
#include "support/eal.h"

using namespace cachewire;
using namespace cachewire::control;

namespace {

struct PortsRig {
    explicit PortsRig(const char* device) {
        test::ensure_eal();
        static rte_mempool* pool = port::make_mempool("ports_test", 4095, 64, 2176, SOCKET_ID_ANY);
        port::PortConfig config;
        config.name = "wan";
        config.device = {port::DeviceKind::vdev, device, ""};
        REQUIRE(rte_dev_probe(device) == 0);
        ports.push_back(std::make_unique<port::EthPort>(config, pool));
        watch.emplace(
            ports,
            [this](const std::string& name, const PortInfo& info) {
                CHECK(name == "wan");
                published.push_back(info.attached);
                open_when_published.push_back(ports[0]->is_open());
                return workers_follow;
            },
            [](const std::string&) { return std::uint64_t{0}; });
    }
    void look() { watch->look(now_ms += 100); }
    void remove_device(const char* device) { rte_dev_event_callback_process(device, RTE_DEV_EVENT_REMOVE); }

    Ports ports;
    std::optional<PortWatch> watch;
    std::uint64_t now_ms = 0;
    bool workers_follow = true;
    std::vector<bool> published, open_when_published;
};

bool known(const char* device) {
    std::uint16_t id = 0;
    return rte_eth_dev_get_port_by_name(device, &id) == 0;
}

}  // namespace

TEST_CASE("port watch: a device that stays is left alone", "[ports]") {
    PortsRig rig("net_null70");
    for (int i = 0; i < 20; ++i) rig.look();
    CHECK(rig.published.empty());
    CHECK(rig.ports[0]->is_open());
}

TEST_CASE("port watch: detached before it is closed, opened before it is attached", "[ports]") {
    PortsRig rig("net_null71");
    for (unsigned round = 0; round < 3; ++round) {
        rig.remove_device("net_null71");
        rig.published.clear();
        rig.open_when_published.clear();
        rig.look();
        // A virtual device can be made again at once.
        CHECK(rig.published == std::vector<bool>{false, true});
        CHECK(rig.open_when_published == std::vector<bool>{true, true});
        CHECK(rig.ports[0]->gone().empty());
        CHECK(known("net_null71"));
    }
}

TEST_CASE("port watch: while a worker may still use it the device stays open", "[ports]") {
    PortsRig rig("net_null72");
    rig.workers_follow = false;
    rig.remove_device("net_null72");
    for (int i = 0; i < 5; ++i) rig.look();
    CHECK(rig.published == std::vector<bool>(5, false));
    CHECK(rig.ports[0]->is_open());
    CHECK(known("net_null72"));
    rig.workers_follow = true;
    rig.look();
    CHECK(rig.published.back());
    CHECK(rig.ports[0]->is_open());
    CHECK(rig.ports[0]->gone().empty());
}
