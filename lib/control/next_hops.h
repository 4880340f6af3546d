#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Next hops: from identity (NextHopKey, an index that stays) to content (what a snapshot says under that index).
// Content is a function of the registry, the interfaces and the ports, so any snapshot can be filled at any time.
#include <optional>

#include "control/registry.h"
#include "pipeline/snapshot.h"

namespace cachewire::control {

// The configuration's word first, then what was learned; nullptr: nothing is known.
const NeighborBinding* find_binding(const Registry& registry, const NextHopKey& key);

// Writes what stands under `index`. Interfaces and ports of the snapshot are filled in.
void fill_next_hop(const Registry& registry, const NextHopKey& key, std::uint16_t index, pipeline::Snapshot& snapshot);
// All that have an index.
void fill_next_hops(const Registry& registry, pipeline::Snapshot& snapshot);

// Makes the snapshot's groups anew from its next hops: a member is down when its neighbour has failed or its port is
// down. A group in which nothing changed stays the same object. Bumps the route generation of tenants whose group
// changed, because sessions hold members.
void fill_groups(Registry& registry, pipeline::Snapshot& snapshot);

// Where routes of one tenant say that another's decide, the other's changes are changes of the one: bumps the
// generations of tenants that look at one whose generation differs from `before`.
void bump_lookers(Registry& registry, const std::map<std::uint16_t, Generations>& before);

// The generations into the snapshot's tenants. A list that looks at the egress judges anew when routes have changed.
void write_route_generations(Registry& registry, pipeline::Snapshot& snapshot);

// The next hop that stands for the ECMP group over these (next hop, weight); the group is made if it is new. Throws
// base::MachineError.
NextHopKey group_key(Registry& registry, std::uint16_t tenant,
                     std::vector<std::pair<std::uint16_t, std::uint16_t>> members);

// A route to the router itself: its addresses are among those that the tenant may have (pipeline::Tenant::local_ends),
// from here on.
void note_local(Registry& registry, std::uint16_t tenant, const net::Prefix& prefix);
void write_local_ends(const Registry& registry, pipeline::Snapshot& snapshot);

net::Prefix host_prefix(const net::Address& address);

}  // namespace cachewire::control
