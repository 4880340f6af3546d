#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The session stage and, after the route stage, its second half.
//
//   Session   key, hash -> session, direction, and what a fresh memo knows: verdict and next hop. A hit on a fresh memo
//   runs no
//             ACL and no LPM. Drops what can't begin a session, and what a memoised verdict denies.
//   Install   packets that were permitted and routed without a session get one, with the verdict and next hop just
//   found.
//
// What does not identify its session by itself takes the slow path each time: any fragment, and ICMP errors. Sessions
// belong to the worker; nothing here is shared.
#include <array>
#include <cstdint>
#include <span>

#include "pipeline/pipeline.h"
#include "pipeline/snapshot.h"
#include "pipeline/worker_state.h"
#include "session/table.h"

namespace cachewire::pipeline::stages {

inline bool may_have_session(const Tenant& tenant, const net::FlowKey& key, std::uint16_t lane_flags) noexcept {
    return tenant.sessions != SessionMode::none &&
           (key.match_flags & (net::kFirstFragment | net::kLaterFragment)) == 0 && (lane_flags & kLaneIcmpError) == 0;
}

struct Session {
    static constexpr StageId kId = StageId::session;
    static constexpr FieldSet kReads = field::key | field::hash | field::tenant | field::frame_length;
    static constexpr FieldSet kWrites = field::session;

    template <class Burst>
    static void process(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
        Batch batch;
        gather(worker, snapshot, burst, batch);
        const std::span keys(batch.keys.data(), batch.size);
        const std::span hashes(batch.hashes.data(), batch.size);
        const std::span found(batch.found.data(), batch.size);
        worker.sessions->lookup(keys, hashes, found);
        // Directions may have turned, and other lanes of the burst may belong to the session that just began.
        if (restart_reused(worker, keys, found)) worker.sessions->lookup(keys, hashes, found);

        unsigned next = 0;
        burst.filter([&](auto i) {
            auto&& lane = burst.lane(i);
            if ((lane.flags & kLaneTracked) == 0) return true;
            const session::Found f = batch.found[next++];
            const Tenant& tenant = snapshot.tenants[lane.tenant];
            return f.index != session::kNone ? hit(worker, tenant, burst, i, f) : miss(tenant, burst, i);
        });
    }

  private:
    struct Batch {
        std::array<const net::FlowKey*, kMaxLanes> keys;
        std::array<std::uint32_t, kMaxLanes> hashes;
        std::array<session::Found, kMaxLanes> found;
        unsigned size = 0;
    };
    static_assert(kMaxLanes <= session::kMaxLookup);

    // First pass: which lanes look up, and their buckets on the way.
    template <class Burst>
    static void gather(WorkerState& worker, const Snapshot& snapshot, Burst& burst, Batch& batch) noexcept {
        for (const auto i : burst.live()) {
            auto&& lane = burst.lane(i);
            const net::FlowKey& key = burst.key(i);
            lane.session = kNoSession;
            lane.flags &= static_cast<std::uint16_t>(~kLaneTracked);
            if (!may_have_session(snapshot.tenants[lane.tenant], key, lane.flags)) continue;
            lane.flags |= kLaneTracked;
            worker.sessions->prefetch(lane.hash);
            batch.keys[batch.size] = &key;
            batch.hashes[batch.size++] = lane.hash;
        }
    }

    static bool restart_reused(WorkerState& worker, std::span<const net::FlowKey* const> keys,
                               std::span<const session::Found> found) noexcept {
        bool any = false;
        for (std::size_t i = 0; i < keys.size(); ++i) {
            if (found[i].index == session::kNone) continue;
            if (!session::can_restart(worker.sessions->hot(found[i].index), keys[i]->tcp_flags)) continue;
            worker.sessions->restart(found[i].index, worker.outcomes, *keys[i], worker.now_tsc);
            any = true;
        }
        return any;
    }

    template <class Burst>
    static bool hit(WorkerState& worker, const Tenant& tenant, Burst& burst, auto i, session::Found found) noexcept {
        auto&& lane = burst.lane(i);
        const session::HotEntry& entry = worker.sessions->hot(found.index);
        lane.session = found.index;
        if (found.reverse) lane.flags |= kLaneReverse;

        // A stateless list has an opinion of its own on each reply; a stateful one lets it pass with its session.
        if (!found.reverse || tenant.stateful) {
            if (entry.outcome != session::kNoOutcome && entry.policy_generation == tenant.policy_generation) {
                const session::Outcome& outcome = worker.outcomes[entry.outcome];
                if (!outcome.permit) return burst.drop(i, denied(worker, found.index));
                lane.outcome = entry.outcome;
                lane.policer = outcome.policer;
                lane.traffic_class = outcome.traffic_class;
                lane.flags |= kLaneVerdictKnown;
            } else {
                lane.flags |= kLaneStale;
            }
        }
        const std::uint16_t next_hop = entry.next_hop[found.reverse ? 1 : 0];
        if (next_hop != kNoNextHop && entry.route_generation == tenant.route_generation) {
            lane.next_hop = next_hop;
            lane.flags |= kLaneRouteKnown;
        }
        worker.sessions->touch(found.index, found.reverse, burst.key(i).tcp_flags, lane.frame_length, worker.now_tsc);
        return true;
    }

    // A session that a reload has turned against; it is not touched, so it ends by its time-out.
    static DropReason denied(WorkerState& worker, std::uint32_t index) noexcept {
        return worker.sessions->cold(index).rule == kNoRule ? DropReason::acl_default : DropReason::acl_deny;
    }

    template <class Burst>
    static bool miss(const Tenant& tenant, Burst& burst, auto i) noexcept {
        const net::FlowKey& key = burst.key(i);
        if (tenant.sessions == SessionMode::track && key.proto == session::kProtoTcp &&
            !session::begins_connection(key.tcp_flags))
            return burst.drop(i, DropReason::session_state);
        burst.lane(i).flags |= kLaneInstall;
        return true;
    }
};

struct Install {
    static constexpr StageId kId = StageId::session;
    static constexpr FieldSet kReads = field::key | field::hash | field::tenant | field::frame_length | field::session |
                                       field::verdict | field::next_hop;
    static constexpr FieldSet kWrites = field::none;

    template <class Burst>
    static void process(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
        burst.filter([&](auto i) {
            auto&& lane = burst.lane(i);
            return (lane.flags & kLaneInstall) == 0 || install(worker, snapshot.tenants[lane.tenant], burst, i);
        });
    }

  private:
    template <class Burst>
    static bool install(WorkerState& worker, const Tenant& tenant, Burst& burst, auto i) noexcept {
        auto&& lane = burst.lane(i);
        const net::FlowKey& key = burst.key(i);
        session::Table& sessions = *worker.sessions;
        session::Found found;
        const auto result = sessions.insert(key, lane.hash, worker.now_tsc, found);
        switch (result) {
            case session::Table::Insert::table_full:
            case session::Table::Insert::bucket_full:
                // A cache that is full only costs time; a stateful tenant can't let pass what it can't remember.
                if (tenant.sessions != SessionMode::track) return true;
                return burst.drop(i, result == session::Table::Insert::table_full ? DropReason::session_table_full
                                                                                  : DropReason::session_bucket_full);
            case session::Table::Insert::created:
                lane.outcome =
                    sessions.memoize(found.index, worker.outcomes,
                                     {.permit = true, .traffic_class = lane.traffic_class, .policer = lane.policer},
                                     tenant.policy_generation, lane.rule);
                break;
            case session::Table::Insert::exists:  // an earlier lane of this burst created it
                lane.outcome = sessions.hot(found.index).outcome;
                break;
        }
        lane.session = found.index;
        if (found.reverse) lane.flags |= kLaneReverse;
        session::remember_next_hop(sessions.hot(found.index), found.reverse, lane.next_hop, tenant.route_generation);
        sessions.touch(found.index, found.reverse, key.tcp_flags, lane.frame_length, worker.now_tsc);
        return true;
    }
};

// A step of the expiry walk, between bursts: ends what is past its time-out, and keeps stale what a wrap of the
// generations would make look fresh.
inline unsigned expire_sessions(WorkerState& worker, const Snapshot& snapshot, std::uint64_t now_tsc,
                                unsigned max_entries) noexcept {
    return worker.sessions->expire(now_tsc, max_entries, worker.outcomes, [&](session::HotEntry& entry) {
        if (entry.tenant >= snapshot.tenants.size()) return;  // its tenant is gone: no packet finds it any more
        const Tenant& tenant = snapshot.tenants[entry.tenant];
        session::keep_generations_stale(entry, tenant.policy_generation, tenant.route_generation);
    });
}

}  // namespace cachewire::pipeline::stages
