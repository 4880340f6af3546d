// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/reverse_path.h"

#include <algorithm>

namespace cachewire::pipeline {

using route::NextHopKind;

namespace {

std::uint16_t look_up(const route::FibView& fib, const net::Address& address) noexcept {
    const net::Address* const one = &address;
    std::uint16_t index = kNoNextHop;
    fib.lookup({&one, 1}, {&index, 1});
    return index;
}

}  // namespace

bool is_reverse_path(const Snapshot& snapshot, const net::Address& source, std::uint16_t index,
                     std::uint16_t in_interface, Rpf rpf) noexcept {
    const route::NextHop* hop = &snapshot.next_hops[index];
    if (hop->kind == NextHopKind::leak) {
        if (hop->tenant >= snapshot.tenants.size() || snapshot.tenants[hop->tenant].fib == nullptr) return false;
        hop = &snapshot.next_hops[look_up(*snapshot.tenants[hop->tenant].fib, source)];
    }
    if (hop->kind == NextHopKind::group) {
        if (rpf == Rpf::loose) return true;
        const auto& members = snapshot.groups[hop->group]->members();
        return std::any_of(members.begin(), members.end(), [&](const route::Member& member) {
            return snapshot.next_hops[member.next_hop].interface == in_interface;
        });
    }
    if (hop->kind != NextHopKind::forward && hop->kind != NextHopKind::unresolved) return false;
    return rpf == Rpf::loose || hop->interface == in_interface;
}

void check_reverse_paths(const Snapshot& snapshot, Burst& burst) noexcept {
    burst.filter([&](auto i) {
        const Lane& lane = burst.lane(i);
        const Tenant& tenant = snapshot.tenants[lane.tenant];
        if (tenant.rpf == Rpf::none || lane.session != kNoSession) return true;
        const net::Address& source = burst.key(i).src;
        if (is_reverse_path(snapshot, source, look_up(*tenant.fib, source), lane.in_interface, tenant.rpf)) return true;
        return burst.drop(i, DropReason::rpf);
    });
}

}  // namespace cachewire::pipeline
