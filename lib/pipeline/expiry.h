#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Sessions past their time-outs, ended a few at a time between bursts.
#include "pipeline/snapshot.h"
#include "pipeline/worker_state.h"
#include "session/table.h"

namespace cachewire::pipeline {

// A step of the expiry walk, between bursts: ends what is past its time-out, and keeps stale what a wrap of the
// generations would make look fresh.
inline unsigned expire_sessions(WorkerState& worker, const Snapshot& snapshot, std::uint64_t now_tsc,
                                unsigned max_entries) noexcept {
    if (worker.sessions->settings_version() != snapshot.generation)
        worker.sessions->configure(snapshot.sessions, snapshot.generation);
    return worker.sessions->expire(now_tsc, max_entries, worker.outcomes, [&](session::HotEntry& entry) {
        if (entry.tenant >= snapshot.tenants.size()) return;  // its tenant is gone: no packet finds it any more
        const Tenant& tenant = snapshot.tenants[entry.tenant];
        session::keep_generations_stale(entry, tenant.policy_generation, tenant.route_generation);
    });
}

}  // namespace cachewire::pipeline
