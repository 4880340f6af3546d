#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A tenant's routes as the configuration wants them: own and broadcast addresses, static neighbours as host routes,
// connected networks, then static routes and those of files where nothing of these stands. Next hops are entered into
// the registry, and filled by next_hops.h.
#include <map>
#include <memory>

#include "config/config.h"
#include "control/registry.h"

namespace cachewire::control {

// Registry::static_neighbors anew.
void enter_static_neighbors(const config::Config& config, Registry& registry);

// `tenant` is the index in config.tenants. Throws base::MachineError when indices run out.
RouteTable configured_routes(const config::Config& config, std::size_t tenant, Registry& registry);

// The next hop that a neighbor of the tenant is, as a route's `via` has it; 0: on none of its networks.
std::uint16_t gateway_hop(const config::Config& config, std::size_t tenant, const net::Address& address,
                          Registry& registry);

// What routes came in at run time, by prefix: next hops, 0 where that source has none. What the configuration says goes
// first, then the kernel's, then a neighbour's.
struct FedRoute {
    std::uint16_t kernel = 0;
    std::uint16_t neighbor = 0;
    [[nodiscard]] std::uint16_t best() const noexcept { return kernel != 0 ? kernel : neighbor; }
};
using FedTable = std::map<net::Prefix, FedRoute>;

// nullptr: the configuration has no route for exactly this prefix.
const ConfiguredRoute* find_route(const RouteTable* table, const net::Prefix& prefix);

// What turns the FIB of `have` into that of `want`, with `fed` where neither has a route.
std::vector<route::RouteChange> route_changes(const RouteTable* have, const RouteTable& want, const FedTable& fed);

}  // namespace cachewire::control
