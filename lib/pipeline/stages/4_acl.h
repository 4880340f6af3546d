#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The tenant's list, for lanes whose verdict no fresh memo holds: misses and packets without a session by their own
// key, hits on a stale memo by what the session is judged by. Lanes that go on are permitted; lane.rule, policer and
// traffic_class say how. Takes no reference to an outcome: only a session does, in Table::memoize.
#include <array>
#include <cstdint>

#include "acl/batch.h"
#include "pipeline/pipeline.h"
#include "pipeline/snapshot.h"
#include "pipeline/worker_state.h"
#include "session/table.h"

namespace cachewire::pipeline::stages {

struct Acl {
    static constexpr StageId kId = StageId::acl;
    static constexpr FieldSet kReads = field::key | field::tenant | field::session;
    static constexpr FieldSet kWrites = field::verdict;

    template <class Burst>
    static void process(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
        // The session stage has dropped what a fresh memo denies. Where all lanes have one, nothing is left to do.
        unsigned by_own_key = 0;
        unsigned stale = 0;
        for (const auto i : burst.live().without(burst.memoised())) {
            const std::uint16_t flags = burst.lane(i).flags;
            stale += (flags & kLaneStale) != 0;
            by_own_key += (flags & (kLaneStale | kLaneVerdictKnown)) == 0;
        }
        LaneSet denied = 0;
        if (by_own_key != 0) denied |= judge_packets(snapshot, burst);
        if (stale != 0) denied |= judge_sessions(worker, snapshot, burst);
        if (denied == 0) return;
        burst.filter([&](auto i) {
            if ((denied >> i & 1) == 0) return true;
            return burst.drop(i, burst.lane(i).rule == kNoRule ? DropReason::acl_default : DropReason::acl_deny);
        });
    }

  private:
    using LaneSet = std::uint64_t;
    static_assert(kMaxLanes <= 64 && kMaxLanes <= acl::Batch::kCapacity);
    static_assert(kNoRule == acl::kDefaultRule);

    // Each packet by its own key. Returns the lanes denied.
    template <class Burst>
    static LaneSet judge_packets(const Snapshot& snapshot, Burst& burst) noexcept {
        acl::Batch batch;
        for (const auto i : burst.live()) {
            auto&& lane = burst.lane(i);
            if ((lane.flags & (kLaneStale | kLaneVerdictKnown)) != 0) continue;
            batch.add(snapshot.tenants[lane.tenant].acl, &burst.key(i), i);
        }
        batch.classify();
        LaneSet denied = 0;
        batch.for_each([&](auto i, const acl::Verdict& verdict) { denied |= write(burst, i, verdict); });
        return denied;
    }

    // Each session by its forward key and first-packet fields, and its memo is renewed: a deny as well, so that its
    // packets keep finding it, and a later policy can let it live. What bypasses the memo renews none, and is judged as
    // if the session's first packet had been such a fragment. Returns the lanes denied.
    template <class Burst>
    static LaneSet judge_sessions(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
        acl::Batch batch;
        std::array<net::FlowKey, kMaxLanes> keys;
        unsigned used = 0;
        for (const auto i : burst.live()) {
            auto&& lane = burst.lane(i);
            if ((lane.flags & kLaneStale) == 0) continue;
            net::FlowKey& key = keys[used++];
            key = session::forward_key(worker.sessions->hot(lane.session), worker.sessions->cold(lane.session));
            if ((lane.flags & (kLaneBypass | kLaneIcmpError)) == kLaneBypass)
                key.match_flags = burst.key(i).match_flags;
            batch.add(snapshot.tenants[lane.tenant].acl, &key, i);
        }
        batch.classify();
        LaneSet denied = 0;
        batch.for_each([&](auto i, const acl::Verdict& verdict) {
            denied |= write(burst, i, verdict);
            auto&& lane = burst.lane(i);
            if ((lane.flags & kLaneBypass) == 0) renew_memo(worker, snapshot, lane, verdict);
        });
        return denied;
    }

    static void renew_memo(WorkerState& worker, const Snapshot& snapshot, auto& lane,
                           const acl::Verdict& verdict) noexcept {
        const session::HotEntry& entry = worker.sessions->hot(lane.session);
        const std::uint16_t generation = snapshot.tenants[lane.tenant].policy_generation;
        const bool current = entry.policy_generation == generation && entry.outcome != session::kNoOutcome;
        const session::Outcome outcome = {.permit = verdict.action == acl::Action::permit,
                                          .traffic_class = lane.traffic_class,
                                          .policer = lane.policer};
        if ((lane.flags & kLaneShadow) != 0) {
            if (worker.outcomes[entry.outcome] != outcome || worker.sessions->cold(lane.session).rule != verdict.rule) {
                worker.memo.shadow_mismatch.add(1);
                lane.flags &= static_cast<std::uint16_t>(~kLaneShadow);  // the next hop's doesn't count twice
            }
        } else if (current) {
            // The memo is switched off, and kept for the day when it is switched on.
            worker.memo.bypass_other.add(1);
            lane.outcome = entry.outcome;
            return;
        }
        lane.outcome = worker.sessions->memoize(lane.session, worker.outcomes, outcome, generation, verdict.rule);
        if ((lane.flags & kLaneShadow) != 0 || current) return;
        auto& counter = lane.outcome == session::kNoOutcome ? worker.memo.bypass_outcome_full : worker.memo.stale;
        counter.add(1);
    }

    template <class Burst>
    static LaneSet write(Burst& burst, auto i, const acl::Verdict& verdict) noexcept {
        auto&& lane = burst.lane(i);
        lane.rule = verdict.rule;
        lane.outcome = session::kNoOutcome;
        lane.policer = kNoPolicer;
        lane.traffic_class = 0;
        return verdict.action == acl::Action::deny ? LaneSet{1} << i : 0;
    }
};

}  // namespace cachewire::pipeline::stages
