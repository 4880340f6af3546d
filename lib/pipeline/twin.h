#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What goes to the kernel's twins, and as what: off the hot path, for packets that would be dropped otherwise. Each
// kind has a rate of its own, so that no flood of one takes the session of another down.
#include <optional>

#include "net/flow_key.h"
#include "pipeline/burst.h"
#include "pipeline/punt.h"
#include "pipeline/snapshot.h"

namespace cachewire::pipeline {

// Of a packet to one of the tenant's own addresses.
PuntReason twin_reason(const net::FlowKey& key) noexcept;

// What the parser has refused because no router passes it on, on an interface with a twin: link-local groups
// (224.0.0.0/24, ff02::/16) and, to our MAC address, link-local destinations (OSPFv3, BGP over unnumbered links). Sets
// what the punt record needs of the lane, as the parser has not come that far.
std::optional<PuntReason> twin_takes_refused(const Snapshot& snapshot, Burst& burst, Burst::LaneIndex i,
                                             DropReason reason) noexcept;

// The address is the tenant's own. Asked for each packet of a flood that a quota refuses, so the routes are asked only
// where the tenant has an address that ends like it.
bool is_local_by_route(const Snapshot& snapshot, const Tenant& tenant, const net::Address& address) noexcept;
inline bool is_local(const Snapshot& snapshot, const Tenant& tenant, const net::Address& address) noexcept {
    return (tenant.local_ends & end_bit(address)) != 0 && is_local_by_route(snapshot, tenant, address);
}

}  // namespace cachewire::pipeline
