// SPDX-License-Identifier: BSD-3-Clause
// The kernel's table as messages tell of it, against a plain model: what is in force after each is the best metric's.
#include "control/kernel/kernel_routes.h"

#include <map>
#include <set>

#include "support/catch.h"
#include "support/packet_builder.h"
#include "support/parsed.h"
#include "support/random.h"

namespace cachewire {
namespace {

using control::FedVia;
using control::KernelRoute;
using control::KernelRoutes;
using test::prefix;

FedVia via(std::uint16_t interface, const char* address) { return {interface, test::address(address), 1}; }

struct KernelRig {
    std::map<net::Prefix, std::vector<FedVia>> force;
    unsigned changes = 0;
    KernelRoutes routes{[this](const net::Prefix& p, const std::vector<FedVia>* v) {
        ++changes;
        if (v == nullptr) {
            CHECK(force.erase(p) == 1);
        } else {
            force[p] = *v;
        }
    }};
};

TEST_CASE("kernel routes: the least metric is in force", "[control]") {
    KernelRig rig;
    const net::Prefix p = prefix("192.0.2.0/24");
    rig.routes.set({p, 100, {via(1, "10.0.0.1")}});
    CHECK(rig.force[p] == std::vector{via(1, "10.0.0.1")});
    rig.routes.set({p, 200, {via(1, "10.0.0.2")}});
    CHECK(rig.changes == 1);
    rig.routes.set({p, 50, {via(1, "10.0.0.3")}});
    CHECK(rig.force[p] == std::vector{via(1, "10.0.0.3")});
    rig.routes.withdraw({p, 100, {via(1, "10.0.0.1")}});
    CHECK(rig.changes == 2);
    rig.routes.withdraw({p, 50, {via(1, "10.0.0.3")}});
    CHECK(rig.force[p] == std::vector{via(1, "10.0.0.2")});
    rig.routes.withdraw({p, 7, {via(1, "10.0.0.2")}});  // none such
    rig.routes.withdraw({p, 200, {via(1, "10.0.0.2")}});
    CHECK(rig.force.empty());
    CHECK(rig.routes.size() == 0);
}

TEST_CASE("kernel routes: one next hop of several can go", "[control]") {
    KernelRig rig;
    const net::Prefix p = prefix("2001:db8::/32");
    rig.routes.set({p, 1, {via(1, "fe80::1"), via(2, "fe80::2")}});
    rig.routes.withdraw({p, 1, {via(1, "fe80::1")}});
    CHECK(rig.force[p] == std::vector{via(2, "fe80::2")});
    CHECK(rig.routes.take_gateways() == std::vector<KernelRoutes::Gateway>{{2, test::address("fe80::2")}});
    rig.routes.withdraw({p, 1, {via(2, "fe80::2")}});
    CHECK(rig.force.empty());
    CHECK(rig.routes.gateways_changed());
    CHECK(rig.routes.take_gateways().empty());
}

TEST_CASE("kernel routes: after a resync there is what it saw, and only changes are told", "[control]") {
    INFO("seed " << test::seed());
    auto random = test::random_engine();
    KernelRig rig;
    std::map<std::pair<net::Prefix, std::uint32_t>, KernelRoute> kernel;
    const auto any_route = [&] {
        KernelRoute route;
        route.prefix = {net::Address::from_v4(0x0a000000u + static_cast<std::uint32_t>(random() % 50) * 256), 24,
                        net::Family::ip4};
        route.metric = static_cast<std::uint32_t>(random() % 3);
        const unsigned hops = random() % 3;  // none: it drops
        for (unsigned i = 0; i < hops; ++i)
            route.via.push_back({static_cast<std::uint16_t>(i),
                                 net::Address::from_v4(0x0b000000u + static_cast<std::uint32_t>(random() % 4)), 1});
        return route;
    };
    const auto check = [&] {
        std::map<net::Prefix, std::vector<FedVia>> best;
        std::set<KernelRoutes::Gateway> gateways;
        for (const auto& [key, route] : kernel) {
            best.try_emplace(key.first, route.via);
            for (const FedVia& hop : route.via) gateways.insert({hop.interface, hop.address});
        }
        CHECK(rig.force == best);
        const auto told = rig.routes.take_gateways();
        CHECK(std::set(told.begin(), told.end()) == gateways);
    };
    for (int round = 0; round < 200; ++round) {
        for (int i = 0; i < 20; ++i) {
            const KernelRoute route = any_route();
            const auto there = kernel.find({route.prefix, route.metric});
            if (random() % 3 == 0 && there != kernel.end()) {
                rig.routes.withdraw(there->second);
                kernel.erase(there);
            } else {
                rig.routes.set(route);
                kernel[{route.prefix, route.metric}] = route;
            }
        }
        check();
        // Messages are lost.
        for (int i = 0; i < 10; ++i) {
            const KernelRoute route = any_route();
            if (random() % 2 == 0) {
                kernel.erase({route.prefix, route.metric});
            } else {
                kernel[{route.prefix, route.metric}] = route;
            }
        }
        rig.routes.begin_sync();
        for (const auto& [key, route] : kernel) rig.routes.set(route);
        rig.routes.end_sync();
        check();
        const unsigned changes = rig.changes;
        rig.routes.begin_sync();
        for (const auto& [key, route] : kernel) rig.routes.set(route);
        rig.routes.end_sync();
        CHECK(rig.changes == changes);
    }
    rig.routes.clear();
    CHECK(rig.force.empty());
}

}  // namespace
}  // namespace cachewire
