#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What the session and the ACL stage do alike with a verdict: count it for its rule, and refuse.
#include <cstdint>

#include "pipeline/snapshot.h"
#include "pipeline/worker_state.h"
#include "session/outcome.h"

namespace cachewire::pipeline::stages {

// A packet that no session counts. One line: the rule's.
template <class Burst>
void count_rule(WorkerState& worker, Burst& burst, auto i, std::uint32_t rule) noexcept {
    worker.rules.count(rule, 1, burst.lane(i).frame_length);
}

// Always false, as burst.drop(). Errors are never answered, nor later pieces (RFC 1122 3.2.2); on a transparent pair
// there is nobody who could.
template <class Burst>
bool refuse(Burst& burst, auto i, const session::Outcome& outcome) noexcept {
    const DropReason reason = outcome.by_default ? DropReason::acl_default : DropReason::acl_deny;
    const bool silent = !outcome.reject || (burst.lane(i).flags & (kLaneIcmpError | kLaneWire)) != 0 ||
                        (burst.key(i).match_flags & net::kLaterFragment) != 0;
    return silent ? burst.drop(i, reason) : burst.punt(i, PuntReason::reject, reason);
}

}  // namespace cachewire::pipeline::stages
