#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Stateless lists have an opinion of their own on each packet. Which packets a session's memo answers for all the same,
// and which replies it learns from. Such a memo has a verdict for each direction (session/outcome.h).
#include <cstdint>
#include <cstring>

#include "pipeline/snapshot.h"
#include "pipeline/worker_state.h"
#include "session/table.h"

namespace cachewire::pipeline::stages {

// A packet's own first-packet fields in one word, as Tenant::own_fields.
inline std::uint64_t own_fields(const net::FlowKey& key) noexcept {
    std::uint64_t fields;
    std::memcpy(&fields, &key.in_interface_be, sizeof fields);
    return fields;
}

// Only lists that look at more than the tuple pay for the cold line.
inline bool agrees_with_first(WorkerState& worker, const Tenant& tenant, std::uint32_t index,
                              const net::FlowKey& key) noexcept {
    if (tenant.own_fields == 0) return true;
    std::uint64_t first;
    std::memcpy(&first, &worker.sessions->cold(index).in_interface_be, sizeof first);
    return ((own_fields(key) ^ first) & tenant.own_fields) == 0;
}

// Whether a memo of the tenant's generation is this packet's: it has a verdict for the direction, and the packet agrees
// with the one that was judged in all that the rules look at.
inline bool speaks_for(WorkerState& worker, const Tenant& tenant, session::Found found,
                       const net::FlowKey& key) noexcept {
    const std::uint16_t memo = worker.sessions->hot(found.index).outcome;
    if (!found.reverse)
        return worker.outcomes.knows_forward(memo) && agrees_with_first(worker, tenant, found.index, key);
    return worker.outcomes.knows_reverse(memo) &&
           ((own_fields(key) ^ worker.outcomes.reverse_fields(memo)) & tenant.own_fields) == 0;
}

// Whether what the list says of this reply becomes the memo's word on replies. Where rules name next hops it does
// not: a session remembers one next hop a direction, and that has to be the one of the rule that speaks for it.
inline bool teaches_memo(WorkerState& worker, const Snapshot& snapshot, const Tenant& tenant,
                         session::Found found) noexcept {
    const session::HotEntry& entry = worker.sessions->hot(found.index);
    if (!found.reverse || !snapshot.memoize || tenant.policy_hops != nullptr) return false;
    return entry.policy_generation != tenant.policy_generation || !worker.outcomes.knows_reverse(entry.outcome);
}

}  // namespace cachewire::pipeline::stages
