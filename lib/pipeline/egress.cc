// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/egress.h"

#include "net/headers.h"
#include "session/entry.h"

namespace cachewire::pipeline {

namespace {

std::uint16_t lookup(const Snapshot& snapshot, std::uint16_t tenant, const net::Address& destination) noexcept {
    const route::FibView* fib = tenant < snapshot.tenants.size() ? snapshot.tenants[tenant].fib : nullptr;
    std::uint16_t next_hop = kNoNextHop;
    const net::Address* one = &destination;
    if (fib != nullptr) fib->lookup({&one, 1}, {&next_hop, 1});
    return next_hop;
}

}  // namespace

std::uint16_t egress_next_hop(const Snapshot& snapshot, std::uint16_t tenant, const net::Address& destination,
                              std::uint32_t hash, std::uint16_t known) noexcept {
    using route::NextHopKind;
    std::uint16_t index = lookup(snapshot, tenant, destination);
    if (snapshot.next_hops[index].kind == NextHopKind::leak)
        index = lookup(snapshot, snapshot.next_hops[index].tenant, destination);
    if (snapshot.next_hops[index].kind == NextHopKind::group) {
        const route::Group& group = *snapshot.groups[snapshot.next_hops[index].group];
        const auto had = static_cast<std::uint16_t>(known & ~session::kOldNextHop);
        index = had != kNoNextHop && group.has(had) ? had : group.pick(hash);
    }
    return index;
}

std::uint16_t egress_interface(const Snapshot& snapshot, std::uint16_t tenant, const net::FlowKey& key,
                               std::uint32_t hash, std::uint16_t known) noexcept {
    using route::NextHopKind;
    const std::uint16_t in = net::be16(key.in_interface_be);
    if (in < snapshot.interfaces.size() && snapshot.interfaces[in].wire_peer != kNoInterface)
        return snapshot.interfaces[in].wire_peer;
    const route::NextHop& next_hop = snapshot.next_hops[egress_next_hop(snapshot, tenant, key.dst, hash, known)];
    const bool leads_out = next_hop.kind == NextHopKind::forward || next_hop.kind == NextHopKind::unresolved;
    return leads_out ? next_hop.interface : kNoInterface;
}

}  // namespace cachewire::pipeline
