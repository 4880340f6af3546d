#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A tenant's routes as the configuration wants them: connected networks, own and broadcast addresses, neighbours as
// host routes, then static routes where nothing of these stands. Next hops are entered into the snapshot under stable
// indices.
#include <map>

#include "config/config.h"
#include "control/registry.h"
#include "pipeline/snapshot.h"

namespace cachewire::control {

using RouteTable = std::map<net::Prefix, std::uint16_t>;

// `tenant` is the index in config.tenants. snapshot.interfaces must be filled. Throws base::MachineError when indices
// run out.
RouteTable desired_routes(const config::Config& config, std::size_t tenant, Registry& registry,
                          pipeline::Snapshot& snapshot);

// What turns `have` into `want`.
std::vector<route::RouteChange> route_changes(const RouteTable& have, const RouteTable& want);

}  // namespace cachewire::control
