#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The session stage's second half, after list and route: packets that were permitted and routed count for their
// session, and those without one get one, with the verdict and next hop just found.
#include "pipeline/egress.h"
#include "pipeline/stages/3_session.h"

namespace cachewire::pipeline::stages {

struct Install {
    static constexpr StageId kId = StageId::session;
    static constexpr bool kContinues = true;
    static constexpr FieldSet kReads = field::key | field::hash | field::tenant | field::frame_length | field::session |
                                       field::verdict | field::next_hop;
    static constexpr FieldSet kWrites = field::none;

    template <class Burst>
    static void process(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
        // Here, in the lanes' order, and not at look-up: what a list or the route denies leaves no trace in a session.
        // Before anything is installed, so that the entries are those that were looked up.
        session::Table& sessions = *worker.sessions;
        const std::uint16_t stamp = sessions.stamp(worker.now_tsc);
        unsigned flags_seen = 0;
        burst.live().for_each([&](auto i) __attribute__((always_inline)) {
            auto&& lane = burst.lane(i);
            const unsigned flags = lane.flags;
            flags_seen |= flags;
            if (!counts_for_session(lane)) {
                if ((flags & kLaneInstall) == 0) count_apart(worker, snapshot, burst, i);
                return;
            }
            const bool reverse = (flags & kLaneReverse) != 0;
            const auto tcp_flags = [&] { return own_tcp_flags(burst.key(i)); };
            if constexpr (Burst::kCountsInHotLine)
                sessions.touch_at(stamp, lane.session, reverse, tcp_flags, lane.frame_length);
            else
                sessions.touch_both_lines(sessions.stamp(burst.timestamp(i)), lane.session, reverse, tcp_flags(),
                                          lane.frame_length);
        });
        if ((flags_seen & kLaneInstall) == 0) return;
        burst.filter([&](auto i) {
            auto&& lane = burst.lane(i);
            return (lane.flags & kLaneInstall) == 0 || install(worker, snapshot, burst, i);
        });
    }

  private:
    // The session's rule has judged the packet, by its memo or now.
    static bool counts_for_session(const auto& lane) noexcept {
        if (lane.session == kNoSession) return false;
        if ((lane.flags & (kLaneIcmpError | kLaneVerdictKnown)) == kLaneVerdictKnown) [[likely]]
            return true;
        return (lane.flags & (kLaneIcmpError | kLaneStale | kLaneBypass)) == kLaneStale;
    }

    // A packet that stands for itself. Where it has a session, that sees it; an ICMP error changes nothing there.
    template <class Burst>
    [[gnu::noinline]] static void count_apart(WorkerState& worker, const Snapshot& snapshot, Burst& burst,
                                              auto i) noexcept {
        auto&& lane = burst.lane(i);
        session::Table& sessions = *worker.sessions;
        const bool kept =
            (lane.flags & kLaneVerdictKnown) != 0;  // an ICMP error: the session's verdict is an older one
        count_rule(worker, burst, i,
                   kept ? sessions.cold(lane.session).rule : snapshot.tenants[lane.tenant].rule_id(lane.rule));
        if (lane.session == kNoSession || (lane.flags & kLaneIcmpError) != 0) return;
        sessions.touch_apart(lane.session, (lane.flags & kLaneReverse) != 0, own_tcp_flags(burst.key(i)),
                             lane.frame_length, worker.now_tsc);
    }

    static DropReason reason_of(session::Table::Insert result) noexcept {
        switch (result) {
            case session::Table::Insert::table_full:
                return DropReason::session_table_full;
            case session::Table::Insert::bucket_full:
                return DropReason::session_bucket_full;
            default:
                return DropReason::session_quota;
        }
    }

    template <class Burst>
    static bool install(WorkerState& worker, const Snapshot& snapshot, Burst& burst, auto i) noexcept {
        auto&& lane = burst.lane(i);
        const Tenant& tenant = snapshot.tenants[lane.tenant];
        const net::FlowKey& key = burst.key(i);
        session::Table& sessions = *worker.sessions;
        session::Found found;
        const auto result = sessions.insert(key, lane.hash, worker.now_tsc, tenant.quota, found);
        switch (result) {
            case session::Table::Insert::table_full:
            case session::Table::Insert::bucket_full:
            case session::Table::Insert::quota_denied:
                // A cache that is full only costs time; a stateful tenant can't let pass what it can't remember.
                if (tenant.sessions != SessionMode::track) {
                    count_rule(worker, burst, i, tenant.rule_id(lane.rule));
                    return true;
                }
                return burst.drop(i, reason_of(result));
            case session::Table::Insert::created:
                if (snapshot.leaks && is_leak(snapshot.next_hops[lane.next_hop], lane.tenant) &&
                    !expect_reply(worker, snapshot, burst, i, found.index))
                    return false;
                lane.outcome = begin_memo(worker, tenant, lane, found.index);
                break;
            case session::Table::Insert::exists:  // an earlier lane of this burst created it
                lane.outcome = sessions.hot(found.index).outcome;
                break;
        }
        lane.session = found.index;
        if (found.reverse) lane.flags |= kLaneReverse;
        if (speaks_for_session(tenant, lane, result))
            session::remember_next_hop(sessions.hot(found.index), found.reverse, lane.next_hop,
                                       tenant.route_generation);
        if (result == session::Table::Insert::exists && !tenant.stateful) {
            count_apart(worker, snapshot, burst, i);  // its own rule has judged it
        } else {
            sessions.touch(found.index, found.reverse, key.tcp_flags, lane.frame_length, worker.now_tsc);
        }
        return true;
    }

    // Where rules name next hops, only a packet that the session's own rule has judged knows the session's.
    static bool speaks_for_session(const Tenant& tenant, const auto& lane, session::Table::Insert result) noexcept {
        if (tenant.policy_hops == nullptr) return true;
        return result == session::Table::Insert::created && (lane.flags & kLaneBypass) == 0;
    }

    // The session leaves by another tenant's interface, and its replies come in there: they find it by their own tuple.
    // Two tenants with one tuple can't both be told from it, so the second session does not begin. False: dropped.
    template <class Burst>
    [[gnu::cold, gnu::noinline]] static bool expect_reply(WorkerState& worker, const Snapshot& snapshot, Burst& burst,
                                                          auto i, std::uint32_t index) noexcept {
        auto&& lane = burst.lane(i);
        net::FlowKey reply = burst.key(i);
        std::swap(reply.src, reply.dst);
        std::swap(reply.src_port_be, reply.dst_port_be);
        reply.tenant = snapshot.next_hops[lane.next_hop].tenant;
        const auto result = worker.sessions->add_companion(index, reply, net::flow_hash(reply, snapshot.hash_seed));
        if (result == session::Table::Insert::created) return true;
        worker.sessions->erase(index, worker.outcomes);
        return burst.drop(i, result == session::Table::Insert::exists ? DropReason::leak_conflict : reason_of(result));
    }

    // A packet that bypasses the memo leaves the session without one: the first ordinary packet has it derived, for a
    // first packet that was no fragment and had no options.
    static std::uint16_t begin_memo(WorkerState& worker, const Tenant& tenant, const auto& lane,
                                    std::uint32_t index) noexcept {
        session::Table& sessions = *worker.sessions;
        if ((lane.flags & kLaneBypass) == 0)
            return sessions.memoize(index, worker.outcomes,
                                    {.permit = 1,
                                     .traffic_class = lane.traffic_class,
                                     .policer = lane.policer,
                                     .next_hop = lane.policy_hop},
                                    tenant.policy_generation, tenant.rule_id(lane.rule));
        sessions.hot(index).policy_generation = tenant.policy_generation;
        sessions.cold(index).match_flags &= net::kL4Known;
        sessions.set_rule(index, tenant.rule_id(lane.rule));
        return session::kNoOutcome;
    }
};

}  // namespace cachewire::pipeline::stages
