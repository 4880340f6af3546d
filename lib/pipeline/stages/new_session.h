#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What becomes of a packet that has no session: it may begin one (kLaneInstall), is judged alone, or is dropped by the
// session stage before list and route are asked.
#include "pipeline/drop_reason.h"
#include "pipeline/snapshot.h"
#include "pipeline/twin.h"
#include "pipeline/worker_state.h"
#include "session/table.h"

namespace cachewire::pipeline::stages {

// What is for the router itself begins no session, so no quota is in its way.
template <class Burst>
bool refuse_session(WorkerState& worker, const Snapshot& snapshot, Burst& burst, auto i) noexcept {
    const std::uint16_t tenant = burst.lane(i).tenant;
    if (is_local(snapshot, snapshot.tenants[tenant], burst.key(i).dst)) {
        burst.lane(i).flags |= kLaneInstall;
        return true;
    }
    worker.sessions->count_quota_denied(tenant);
    return burst.drop(i, DropReason::session_quota);
}

template <class Burst>
[[gnu::always_inline]] inline bool without_session(WorkerState& worker, const Snapshot& snapshot, const Tenant& tenant,
                                                   Burst& burst, auto i) noexcept {
    auto&& lane = burst.lane(i);
    const net::FlowKey& key = burst.key(i);
    if (tenant.sessions == SessionMode::track) {
        const session::Begin begin = session::may_begin(key.proto, key.tcp_flags, tenant.midstream);
        // What the kernel's twin sends passes no worker's sessions, so its answers belong to none.
        if (begin == session::Begin::nothing)
            return (tenant.twins && is_local(snapshot, tenant, key.dst)) || burst.drop(i, DropReason::session_state);
        if (begin == session::Begin::packet) return true;
    }
    if ((key.match_flags & net::kLaterFragment) != 0) return true;
    // Before list and route are asked: a flood over the quota costs its neighbors no more than this.
    if (tenant.sessions == SessionMode::track &&
        worker.sessions->is_over_quota(lane.tenant, worker.now_tsc, tenant.quota)) [[unlikely]]
        return refuse_session(worker, snapshot, burst, i);
    lane.flags |= kLaneInstall;
    return true;
}

}  // namespace cachewire::pipeline::stages
