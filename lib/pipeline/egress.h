#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// By which interface a packet will leave, for lists whose rules name one: asked before they judge, off the hot path.
#include <cstdint>

#include "net/flow_key.h"
#include "pipeline/snapshot.h"

namespace cachewire::pipeline {

// `key`: the packet's, with the interface that it came in by. `hash`: of the flow; `known`: the next hop that the
// session's direction has or has had, else 0: ECMP members are the route stage's. kNoInterface where no route leads
// out.
std::uint16_t egress_interface(const Snapshot& snapshot, std::uint16_t tenant, const net::FlowKey& key,
                               std::uint32_t hash, std::uint16_t known) noexcept;

// The next hop itself, leaks and groups followed; 0 where there is no route.
std::uint16_t egress_next_hop(const Snapshot& snapshot, std::uint16_t tenant, const net::Address& destination,
                              std::uint32_t hash, std::uint16_t known) noexcept;

// By another tenant's interface than the packet's. A pair's ports are of all their tenants.
inline bool is_leak(const route::NextHop& next_hop, std::uint16_t tenant) noexcept {
    return next_hop.kind != route::NextHopKind::wire && next_hop.tenant != tenant;
}

}  // namespace cachewire::pipeline
