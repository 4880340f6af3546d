#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Whether packets may have come by where they came by (RFC 3704 2.2 to 2.4), for tenants with `rpf`: on a session's
// first packet, and on every packet of a tenant without sessions. The route stage calls it where any tenant asks for
// it.
//
//   loose    the tenant has a route to the source, the default route counts; not one that drops
//   strict   that route leaves by the interface that the packet came in by; of several next hops, one of them
#include "pipeline/snapshot.h"
#include "pipeline/worker_state.h"

namespace cachewire::pipeline {

void check_reverse_paths(const Snapshot& snapshot, Burst& burst) noexcept;

// `index`: the next hop that the tenant's routes have for the source.
bool is_reverse_path(const Snapshot& snapshot, const net::Address& source, std::uint16_t index,
                     std::uint16_t in_interface, Rpf rpf) noexcept;

}  // namespace cachewire::pipeline
