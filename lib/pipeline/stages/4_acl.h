#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The tenant's list, for lanes whose verdict no fresh memo holds: misses and packets without a session by their own
// key, hits on a stale memo by what the session is judged by. Lanes that go on are permitted; lane.rule, policer,
// traffic_class and policy_hop say how. Takes no reference to an outcome: only a session does, in Table::memoize.
//
// What is denied is counted for its rule here; what goes on is counted where it is known to leave, by Install.
//
// A stateless list judges replies by their own key. The first one's verdict goes into the session's memo, for replies.
//
// In front of the list stand an operator's blocks, for every packet, memo or not: they stop sessions at once without a
// word to any of them, so that those go on when a block ends. Nothing is blocked: one test a burst.
#include <cstdint>

#include "acl/batch.h"
#include "base/scratch_array.h"
#include "pipeline/egress.h"
#include "pipeline/pipeline.h"
#include "pipeline/snapshot.h"
#include "pipeline/stages/own_verdict.h"
#include "pipeline/stages/verdict.h"
#include "pipeline/worker_state.h"
#include "session/table.h"

namespace cachewire::pipeline::stages {

struct Acl {
    static constexpr StageId kId = StageId::acl;
    static constexpr FieldSet kReads = field::key | field::hash | field::tenant | field::session;
    static constexpr FieldSet kWrites = field::verdict;

    template <class Burst>
    static void process(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
        if (!snapshot.blocks.empty()) [[unlikely]]
            drop_blocked(snapshot, burst);
        // The session stage has dropped what a fresh memo denies. Where all lanes have one, nothing is left to do.
        const LaneSet lanes = burst.live().without(burst.memoised());
        if (lanes.empty()) [[likely]]
            return;
        Denied denied;
        const LaneSet stale = judge_packets(worker, snapshot, burst, lanes, denied);
        if (!stale.empty()) judge_sessions(worker, snapshot, burst, stale, denied);
        burst.filter(denied.any, [&](auto i) {
            auto&& lane = burst.lane(i);
            count_rule(worker, burst, i, snapshot.tenants[lane.tenant].rule_id(lane.rule));
            return refuse(burst, i, denial_of(lane.rule, denied.rejected.contains(i)));
        });
    }

  private:
    struct Denied {
        LaneSet any, rejected;
    };
    static_assert(kMaxLanes <= 64 && kMaxLanes <= acl::Batch::kCapacity);
    static_assert(kNoRule == acl::kDefaultRule && kNoRule == session::kNoRuleId && kNoPolicer == acl::kNoPolicer);

    // Behind the session stage, which gives replies over a leak to the session's tenant.
    template <class Burst>
    [[gnu::cold, gnu::noinline]] static void drop_blocked(const Snapshot& snapshot, Burst& burst) noexcept {
        burst.filter([&](auto i) {
            const std::uint16_t tenant = burst.lane(i).tenant;
            if (tenant >= snapshot.blocks.size()) return true;
            const net::FlowKey& key = burst.key(i);
            for (const net::Prefix& prefix : snapshot.blocks[tenant])
                if (prefix.contains(key.src) || prefix.contains(key.dst)) return burst.drop(i, DropReason::blocked);
            return true;
        });
    }

    // Copies of keys that have to say more than the packet's own.
    using Copies = base::ScratchArray<net::FlowKey, kMaxLanes>;

    // Each packet by its own key, but for those whose verdict is known and for those whose session has to be judged:
    // returns the latter.
    template <class Burst>
    static LaneSet judge_packets(WorkerState& worker, const Snapshot& snapshot, Burst& burst, LaneSet lanes,
                                 Denied& denied) noexcept {
        LaneSet stale;
        acl::Batch batch;
        Copies copies;
        lanes.for_each([&](auto i) {
            auto&& lane = burst.lane(i);
            if ((lane.flags & (kLaneStale | kLaneVerdictKnown)) != 0) {
                stale.add_if(i, (lane.flags & kLaneStale) != 0);
                return;
            }
            const acl::Classifier* list = snapshot.tenants[lane.tenant].acl;
            const net::FlowKey* key = &burst.key(i);
            if (list != nullptr && list->uses_egress()) [[unlikely]]
                key = &with_egress(worker, snapshot, lane, copies[i] = *key, (lane.flags & kLaneReverse) != 0);
            batch.add(list, key, i);
        });
        batch.judge([&](auto i, const acl::Verdict& verdict) {
            auto&& lane = burst.lane(i);
            const Tenant& tenant = snapshot.tenants[lane.tenant];
            write(burst, i, verdict, denied);
            if ((lane.flags & (kLaneLearn | kLaneShadow)) != 0)
                renew_reply_memo(worker, tenant, lane, verdict, own_fields(burst.key(i)));
            if (tenant.policy_hops == nullptr) return;
            // The session's next hop may be what its own rule says.
            lane.policy_hop = tenant.policy_hops[verdict.treatment.next_hop];
            lane.flags &= static_cast<std::uint16_t>(~kLaneRouteKnown);
        });
        return stale;
    }

    // Each session by its forward key and first-packet fields, and its memo is renewed: a deny as well, so that its
    // packets keep finding it, and a later policy can let it live. What bypasses the memo renews none, and is judged as
    // if the session's first packet had been such a fragment.
    template <class Burst>
    static void judge_sessions(WorkerState& worker, const Snapshot& snapshot, Burst& burst, LaneSet lanes,
                               Denied& denied) noexcept {
        acl::Batch batch;
        Copies copies;
        lanes.for_each([&](auto i) {
            auto&& lane = burst.lane(i);
            net::FlowKey& key = copies[i];
            key = session::forward_key(worker.sessions->hot(lane.session), worker.sessions->cold(lane.session));
            if ((lane.flags & (kLaneBypass | kLaneIcmpError)) == kLaneBypass)
                key.match_flags = burst.key(i).match_flags;
            const acl::Classifier* list = snapshot.tenants[lane.tenant].acl;
            if (list != nullptr && list->uses_egress()) [[unlikely]]
                with_egress(worker, snapshot, lane, key, false);
            batch.add(list, &key, i);
        });
        batch.judge([&](auto i, const acl::Verdict& verdict) {
            write(burst, i, verdict, denied);
            auto&& lane = burst.lane(i);
            const std::uint16_t next_hop = policy_hop(snapshot.tenants[lane.tenant], verdict);
            // A rule speaks of where its own direction goes.
            lane.policy_hop = (lane.flags & kLaneReverse) != 0 ? kNoNextHop : next_hop;
            if ((lane.flags & kLaneBypass) == 0) renew_memo(worker, snapshot, lane, verdict, next_hop);
        });
    }

    [[gnu::noinline]] static net::FlowKey& with_egress(WorkerState& worker, const Snapshot& snapshot, const auto& lane,
                                                       net::FlowKey& key, bool reverse) noexcept {
        const std::uint16_t known =
            lane.session == kNoSession ? kNoNextHop : worker.sessions->hot(lane.session).next_hop[reverse ? 1 : 0];
        acl::put_out_interface(key, egress_interface(snapshot, lane.tenant, key, lane.hash, known));
        return key;
    }

    static session::Outcome denial_of(std::uint32_t rule, bool reject) noexcept {
        return {.reject = reject, .by_default = rule == kNoRule};
    }

    static session::Outcome outcome_of(const acl::Verdict& verdict, std::uint16_t next_hop) noexcept {
        if (verdict.action != acl::Action::permit)
            return denial_of(verdict.rule, verdict.action == acl::Action::reject);
        return {.permit = 1,
                .traffic_class = verdict.treatment.traffic_class,
                .policer = verdict.treatment.policer,
                .next_hop = next_hop};
    }

    static std::uint16_t policy_hop(const Tenant& tenant, const acl::Verdict& verdict) noexcept {
        return tenant.policy_hops == nullptr ? kNoNextHop : tenant.policy_hops[verdict.treatment.next_hop];
    }

    static void renew_memo(WorkerState& worker, const Snapshot& snapshot, auto& lane, const acl::Verdict& verdict,
                           std::uint16_t next_hop) noexcept {
        const session::HotEntry& entry = worker.sessions->hot(lane.session);
        const Tenant& tenant = snapshot.tenants[lane.tenant];
        const std::uint16_t generation = tenant.policy_generation;
        const std::uint32_t rule = tenant.rule_id(verdict.rule);
        const bool current = entry.policy_generation == generation && worker.outcomes.knows_forward(entry.outcome);
        const session::Outcome outcome = outcome_of(verdict, next_hop);
        if ((lane.flags & kLaneShadow) != 0) {
            if (worker.outcomes[entry.outcome] != outcome || worker.sessions->cold(lane.session).rule != rule) {
                worker.memo.shadow_mismatch.add(1);
                lane.flags &= static_cast<std::uint16_t>(~kLaneShadow);  // the next hop's doesn't count twice
            }
        } else if (current) {
            // The memo is switched off, and kept for the day when it is switched on.
            worker.memo.bypass_other.add(1);
            lane.outcome = entry.outcome;
            return;
        }
        lane.outcome = worker.sessions->memoize(lane.session, worker.outcomes, outcome, generation, rule);
        if ((lane.flags & kLaneShadow) != 0 || current) return;
        auto& counter = lane.outcome == session::kNoOutcome ? worker.memo.bypass_outcome_full : worker.memo.stale;
        counter.add(1);
    }

    // What a stateless list says of a reply, for those that follow it. Only what the rules look at is kept, so that
    // sessions whose replies differ in nothing else share a value.
    [[gnu::noinline]] static void renew_reply_memo(WorkerState& worker, const Tenant& tenant, auto& lane,
                                                   const acl::Verdict& verdict, std::uint64_t fields) noexcept {
        const session::HotEntry& entry = worker.sessions->hot(lane.session);
        const session::Outcome outcome = outcome_of(verdict, kNoNextHop);
        const std::uint32_t rule = tenant.rule_id(verdict.rule);
        const bool current = entry.policy_generation == tenant.policy_generation;
        if ((lane.flags & kLaneShadow) != 0) {
            const std::uint32_t known = worker.sessions->cold(lane.session).reverse_rule;
            if (worker.outcomes.reverse(entry.outcome) == outcome && known == rule) return;
            worker.memo.shadow_mismatch.add(1);
            lane.flags &= static_cast<std::uint16_t>(~kLaneShadow);
        } else if (current && worker.outcomes.knows_reverse(entry.outcome)) {  // an earlier lane of this burst's
            worker.memo.bypass_other.add(1);
            return;
        }
        const bool kept = worker.sessions->memoize_reverse(lane.session, worker.outcomes, outcome,
                                                           fields & tenant.own_fields, tenant.policy_generation, rule);
        if ((lane.flags & kLaneLearn) == 0) return;
        auto& counter = !kept     ? worker.memo.bypass_outcome_full
                        : current ? worker.memo.bypass_other
                                  : worker.memo.stale;
        counter.add(1);
    }

    template <class Burst>
    static void write(Burst& burst, auto i, const acl::Verdict& verdict, Denied& denied) noexcept {
        auto&& lane = burst.lane(i);
        lane.rule = verdict.rule;
        lane.outcome = session::kNoOutcome;
        lane.policer = verdict.treatment.policer;
        lane.traffic_class = verdict.treatment.traffic_class;
        denied.any.add_if(i, verdict.action != acl::Action::permit);
        denied.rejected.add_if(i, verdict.action == acl::Action::reject);
    }
};

}  // namespace cachewire::pipeline::stages
