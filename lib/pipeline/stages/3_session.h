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
// What does not identify its session by itself, or is not understood, bypasses the memo: its session, where it has one,
// is judged for each packet by the slow path. Fragments take the ports of their first piece, ICMP errors the session of
// the packet they quote (bypass.h). Sessions belong to the worker; nothing here is shared.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "net/flow_hash.h"
#include "pipeline/bypass.h"
#include "pipeline/pipeline.h"
#include "pipeline/snapshot.h"
#include "pipeline/stages/verdict.h"
#include "pipeline/worker_state.h"
#include "session/table.h"

namespace cachewire::pipeline::stages {

// A later piece repeats its first piece's flags, for the rules. To the session they have been said once.
inline std::uint8_t own_tcp_flags(const net::FlowKey& key) noexcept {
    return (key.match_flags & net::kLaterFragment) != 0 ? 0 : key.tcp_flags;
}

struct Session {
    static constexpr StageId kId = StageId::session;
    static constexpr FieldSet kReads = field::key | field::hash | field::tenant | field::frame_length | field::mbuf |
                                       field::offsets | field::l3_length;
    static constexpr FieldSet kWrites = field::session;

    template <class Burst>
    static void process(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
        // Here, where no lane holds an entry's number.
        if (worker.sessions->needs_relief()) worker.sessions->relieve(worker.outcomes);
        LaneSet looking;
        std::uint8_t tcp_flags = 0;  // of all that look up
        burst.filter([&](auto i) __attribute__((always_inline)) {
            return gather(worker, snapshot, burst, i, looking, tcp_flags);
        });
        find_candidates(worker, snapshot, burst, looking);
        const bool kill = snapshot.on_policy_change == OnPolicyChange::kill;
        if (kill || (tcp_flags & session::kTcpSyn) != 0) make_way(worker, snapshot, burst, looking);

        Counts counts;
        LaneSet memoised;
        const Fast fast = fast_of(worker, snapshot);
        burst.filter([&](auto i) __attribute__((always_inline)) {
            auto&& lane = burst.lane(i);
            if (!looking.contains(i)) [[unlikely]]
                return (lane.flags & kLaneBypass) == 0 || error_or_unknown(worker, snapshot, burst, i);
            const Tenant& tenant = fast.tenants[lane.tenant];
            const session::Found found = fast.sessions->verify(lane.session, burst.key(i), lane.hash);
            lane.session = found.index;
            if (found.index == session::kNone) return miss(tenant, burst, i, counts);
            if (snapshot.leaks && adopt(worker, lane, found.index)) [[unlikely]]
                return hit(worker, snapshot, fast.tenants[lane.tenant], burst, i, found, counts);
            if (!fast.hit(tenant, lane, found)) return hit(worker, snapshot, tenant, burst, i, found, counts);
            ++counts.hits;
            memoised.add(i);
            return true;
        });
        burst.set_memoised(memoised);
        worker.memo.hits.add(counts.hits);
        worker.memo.misses.add(counts.misses);
    }

  private:
    static_assert(kMaxLanes <= session::kMaxLookup);
    struct Counts {
        unsigned hits = 0, misses = 0;
    };

    // First pass: which lanes look up, and their buckets are fetched. False: dropped.
    template <class Burst>
    [[gnu::always_inline]] static bool gather(WorkerState& worker, const Snapshot& snapshot, Burst& burst, auto i,
                                              LaneSet& looking, std::uint8_t& tcp_flags) noexcept {
        auto&& lane = burst.lane(i);
        if (snapshot.tenants[lane.tenant].sessions == SessionMode::none) {
            lane.session = kNoSession;
            return true;
        }
        const net::FlowKey& key = burst.key(i);
        if (key.match_flags != net::kL4Known || (lane.flags & kLaneIcmpError) != 0) [[unlikely]] {
            lane.session = kNoSession;
            lane.flags |= kLaneBypass;
            const Piece piece = begin_bypass(worker, snapshot, burst, i);
            if (piece == Piece::overlap) return burst.drop(i, DropReason::fragment_offset);
            if (piece == Piece::unknown) return true;
        }
        looking.add(i);
        tcp_flags |= key.tcp_flags;
        if (i < snapshot.prefetch_session) worker.sessions->prefetch_bucket(lane.hash);
        return true;
    }

    // Until it is verified a lane's candidate stands where its session will.
    template <class Burst>
    [[gnu::always_inline]] static void find_candidates(WorkerState& worker, const Snapshot& snapshot, Burst& burst,
                                                       LaneSet looking) noexcept {
        worker.sessions->find_candidates(
            looking.bits(), snapshot.prefetch_session, [&](unsigned i) { return burst.lane(i).hash; },
            [&](unsigned i, std::uint32_t candidate) { burst.lane(i).session = candidate; });
    }

    // Sessions that end before this burst's packets use them: those of an outdated policy, and those whose tuple begins
    // a new connection. Directions may have turned then, and other lanes of the burst may belong to the session that
    // just began: everything is looked up anew.
    template <class Burst>
    [[gnu::noinline]] static void make_way(WorkerState& worker, const Snapshot& snapshot, Burst& burst,
                                           LaneSet looking) noexcept {
        const auto each = [&](auto&& change) {
            session::Found found[kMaxLanes];
            for (const auto i : looking)
                found[i] = worker.sessions->verify(burst.lane(i).session, burst.key(i), burst.lane(i).hash);
            bool any = false;
            for (const auto i : looking)
                if (found[i].index != session::kNone) any |= change(burst.key(i), found[i]);
            if (any) find_candidates(worker, snapshot, burst, looking);
        };
        if (snapshot.on_policy_change == OnPolicyChange::kill)
            each([&](const net::FlowKey&, session::Found found) {
                return end_outdated(worker, snapshot, found.index);
            });
        each([&](const net::FlowKey& key, session::Found found) {
            return restart_reused(worker, snapshot, key, found);
        });
    }

    // Counts the packet under its reason. `unknown`: its key names no session.
    template <class Burst>
    [[gnu::noinline]] static Piece begin_bypass(WorkerState& worker, const Snapshot& snapshot, Burst& burst,
                                                auto i) noexcept {
        auto&& lane = burst.lane(i);
        net::FlowKey& key = burst.key(i);
        if ((lane.flags & kLaneIcmpError) != 0) {
            worker.memo.bypass_icmp_error.add(1);
            return Piece::unknown;
        }
        if ((key.match_flags & (net::kFirstFragment | net::kLaterFragment)) != 0) {
            worker.memo.bypass_fragment.add(1);
            if ((lane.flags & kLaneFollowed) != 0) return followed_piece(lane.flags, key);
            return follow_first_fragment(worker, snapshot.hash_seed, place_of(lane), key, lane.hash);
        }
        auto& counter =
            (key.match_flags & net::kHasOptions) != 0 ? worker.memo.bypass_options : worker.memo.bypass_other;
        counter.add(1);
        return Piece::first;
    }

    // Another worker, or this one before, has asked for the first piece (dispatch.cc).
    static Piece followed_piece(std::uint16_t flags, const net::FlowKey& key) noexcept {
        if ((flags & kLaneStray) != 0) return Piece::unknown;
        return (key.match_flags & net::kFirstFragment) != 0 ? Piece::first : Piece::later;
    }

    static HeaderPlace place_of(const auto& lane) noexcept {
        return {lane.mbuf, lane.l3_offset, lane.l4_offset, lane.l3_length, (lane.flags & kLaneIpv6) != 0};
    }

    // A reply that came in by the tenant that its session leaks to: from here on it is the session's tenant's packet,
    // with that one's list, routes and policers. True: it was.
    static bool adopt(WorkerState& worker, auto& lane, std::uint32_t index) noexcept {
        const std::uint16_t owner = worker.sessions->hot(index).tenant;
        if (owner == lane.tenant) return false;
        lane.tenant = owner;
        worker.tenants[owner].leaked_in.add(1);
        return true;
    }

    // `on_policy_change: kill`: what an older policy has permitted is no session any more.
    static bool end_outdated(WorkerState& worker, const Snapshot& snapshot, std::uint32_t index) noexcept {
        const session::HotEntry& entry = worker.sessions->hot(index);
        // Free: an earlier lane of the same session came by.
        if (entry.state() == session::State::free ||
            entry.policy_generation == snapshot.tenants[entry.tenant].policy_generation)
            return false;
        worker.sessions->erase(index, worker.outcomes);
        return true;
    }

    static bool restart_reused(WorkerState& worker, const Snapshot& snapshot, const net::FlowKey& key,
                               session::Found found) noexcept {
        session::HotEntry& entry = worker.sessions->hot(found.index);
        // Another tenant's packet begins no session of this one's.
        if (entry.tenant != key.tenant || !session::can_restart(entry, found.reverse, own_tcp_flags(key))) return false;
        worker.sessions->restart(found.index, worker.outcomes, key, worker.now_tsc);
        entry.policy_generation = snapshot.tenants[key.tenant].policy_generation;
        return true;
    }

    // Neither none nor kOldNextHop.
    static bool is_known(std::uint16_t next_hop) noexcept { return static_cast<std::int16_t>(next_hop) > 0; }

    // What nearly every packet is: a hit on a memo that has everything, of a stateful list. False: anything else, and
    // nothing is written.
    struct Fast {
        const Tenant* tenants;
        session::Table* sessions;
        const session::OutcomeTable* outcomes;
        const route::NextHop* next_hops;
        bool memo;  // switched on, and no shadow checks

        [[gnu::always_inline]] bool hit(const Tenant& tenant, auto& lane, session::Found found) const noexcept {
            const session::HotEntry& entry = sessions->hot(found.index);
            const std::uint16_t next_hop = entry.next_hop[found.reverse ? 1 : 0];
            // Both generations at once.
            std::uint32_t generations, now;
            std::memcpy(&generations, &entry.policy_generation, sizeof generations);
            std::memcpy(&now, &tenant.policy_generation, sizeof now);
            if (generations != now || !is_known(next_hop) || entry.outcome == session::kNoOutcome) return false;
            if (!memo || !tenant.stateful || (lane.flags & kLaneBypass) != 0) return false;
            const session::Outcome outcome = (*outcomes)[entry.outcome];
            if (!outcome.permit) return false;
            base::prefetch_read(&next_hops[next_hop]);
            lane.next_hop = next_hop;
            lane.outcome = entry.outcome;
            lane.policer = outcome.policer;
            lane.traffic_class = outcome.traffic_class;
            lane.flags |=
                static_cast<std::uint16_t>(kLaneRouteKnown | kLaneVerdictKnown | (found.reverse ? kLaneReverse : 0));
            return true;
        }
    };
    static_assert(offsetof(session::HotEntry, route_generation) == offsetof(session::HotEntry, policy_generation) + 2);
    static_assert(offsetof(Tenant, route_generation) == offsetof(Tenant, policy_generation) + 2);
    static Fast fast_of(WorkerState& worker, const Snapshot& snapshot) noexcept {
        return {snapshot.tenants.data(), worker.sessions.get(), &worker.outcomes, snapshot.next_hops.data(),
                snapshot.memoize && snapshot.shadow_check == 0};
    }

    template <class Burst>
    [[gnu::noinline]] static bool hit(WorkerState& worker, const Snapshot& snapshot, const Tenant& tenant, Burst& burst,
                                      auto i, session::Found found, Counts& counts) noexcept {
        auto&& lane = burst.lane(i);
        const session::HotEntry& entry = worker.sessions->hot(found.index);
        if (found.reverse) lane.flags |= kLaneReverse;
        const bool usable = entry.policy_generation == tenant.policy_generation && snapshot.memoize &&
                            (lane.flags & kLaneBypass) == 0 && entry.outcome != session::kNoOutcome &&
                            (tenant.stateful || speaks_for(worker, tenant, found, burst.key(i)));
        if (!usable) return hit_without_memo(worker, snapshot, tenant, burst, i, found);
        if (snapshot.shadow_check != 0 && ++worker.shadow_hits >= snapshot.shadow_check) {
            worker.shadow_hits = 0;
            worker.memo.shadow_checked.add(1);
            ++counts.hits;
            lane.flags |= kLaneStale | kLaneShadow;
            return true;
        }
        if (take_route(tenant, entry, found.reverse, lane)) {
            ++counts.hits;
        } else {
            worker.memo.stale.add(1);
        }
        return apply(worker, burst, i, entry);
    }

    // False: there was a next hop, of other routes.
    static bool take_route(const Tenant& tenant, const session::HotEntry& entry, bool reverse, auto& lane) noexcept {
        const std::uint16_t next_hop = entry.next_hop[reverse ? 1 : 0];
        if (!is_known(next_hop)) return true;
        if (entry.route_generation != tenant.route_generation) return false;
        lane.next_hop = next_hop;
        lane.flags |= kLaneRouteKnown;
        return true;
    }

    // A stateless list has an opinion of its own on each packet. The session's verdict is this packet's only in its
    // direction, and where the packet agrees with the session's first one in all that the rules look at. Only lists
    // that look at such fields pay for the cold line.
    static bool speaks_for(WorkerState& worker, const Tenant& tenant, session::Found found,
                           const net::FlowKey& key) noexcept {
        if (found.reverse) return false;
        if (tenant.own_fields == 0) return true;
        std::uint64_t own, first;
        std::memcpy(&own, &key.in_interface_be, sizeof own);
        std::memcpy(&first, &worker.sessions->cold(found.index).in_interface_be, sizeof first);
        return ((own ^ first) & tenant.own_fields) == 0;
    }

    // Leaves the lane to the ACL stage: as the session's (stale) or, without either flag, by its own key.
    template <class Burst>
    [[gnu::noinline]] static bool hit_without_memo(WorkerState& worker, const Snapshot& snapshot, const Tenant& tenant,
                                                   Burst& burst, auto i, session::Found found) noexcept {
        auto&& lane = burst.lane(i);
        const session::HotEntry& entry = worker.sessions->hot(found.index);
        const bool bypass = (lane.flags & kLaneBypass) != 0;
        const bool outdated = entry.policy_generation != tenant.policy_generation;
        const bool own = !tenant.stateful && (bypass || !speaks_for(worker, tenant, found, burst.key(i)));
        if (!bypass && snapshot.memoize) take_route(tenant, entry, found.reverse, lane);
        if (tenant.stateful && outdated && is_kept(snapshot, entry)) {
            if (!bypass) (snapshot.memoize ? worker.memo.hits : worker.memo.bypass_other).add(1);
            return apply(worker, burst, i, entry);
        }
        // Without the memo a stateless list judges each packet alone.
        if (own || (!tenant.stateful && !snapshot.memoize)) {
            if (!bypass) worker.memo.bypass_other.add(1);
            return true;
        }
        lane.flags |= kLaneStale;  // counted where it is judged, which finds out whether there is an outcome to be had
        return true;
    }

    // `on_policy_change: keep` makes a stateful list's verdict part of the session's state.
    static bool is_kept(const Snapshot& snapshot, const session::HotEntry& entry) noexcept {
        return snapshot.on_policy_change == OnPolicyChange::keep && entry.outcome != session::kNoOutcome;
    }

    // The session's verdict to the lane.
    template <class Burst>
    static bool apply(WorkerState& worker, Burst& burst, auto i, const session::HotEntry& entry) noexcept {
        auto&& lane = burst.lane(i);
        const session::Outcome& outcome = worker.outcomes[entry.outcome];
        if (!outcome.permit) {
            // A session that a reload has turned against; it is not touched, so it ends by its time-out.
            count_rule(worker, burst, i, worker.sessions->cold(lane.session).rule);
            return refuse(burst, i, outcome);
        }
        lane.outcome = entry.outcome;
        lane.policer = outcome.policer;
        lane.traffic_class = outcome.traffic_class;
        lane.flags |= kLaneVerdictKnown;
        return true;
    }

    // An ICMP error about a session of a stateful list has the session's verdict and changes nothing in it; others are
    // judged by their own key, like pieces whose first one is not known.
    template <class Burst>
    [[gnu::noinline]] static bool error_or_unknown(WorkerState& worker, const Snapshot& snapshot, Burst& burst,
                                                   auto i) noexcept {
        auto&& lane = burst.lane(i);
        const Tenant& tenant = snapshot.tenants[lane.tenant];
        if ((lane.flags & kLaneIcmpError) == 0 || !tenant.stateful) return true;
        const Related related = find_quoted_session(worker, snapshot.hash_seed, place_of(lane), burst.key(i));
        if (related.malformed) return burst.drop(i, DropReason::icmp_quote);
        if (related.found.index == session::kNone) return true;
        const session::HotEntry& entry = worker.sessions->hot(related.found.index);
        adopt(worker, lane, related.found.index);
        const bool outdated = entry.policy_generation != snapshot.tenants[entry.tenant].policy_generation;
        if (outdated && snapshot.on_policy_change == OnPolicyChange::kill) return true;
        lane.session = related.found.index;
        if (!related.found.reverse) lane.flags |= kLaneReverse;  // it answers what it quotes
        if (outdated && is_kept(snapshot, entry)) return apply(worker, burst, i, entry);
        lane.flags |= kLaneStale;
        return true;
    }

    template <class Burst>
    static bool miss(const Tenant& tenant, Burst& burst, auto i, Counts& counts) noexcept {
        auto&& lane = burst.lane(i);
        const net::FlowKey& key = burst.key(i);
        counts.misses += (lane.flags & kLaneBypass) == 0;
        if (tenant.sessions == SessionMode::track) {
            const session::Begin begin = session::may_begin(key.proto, key.tcp_flags, tenant.midstream);
            if (begin == session::Begin::nothing) return burst.drop(i, DropReason::session_state);
            if (begin == session::Begin::packet) return true;
        }
        if ((key.match_flags & net::kLaterFragment) == 0) lane.flags |= kLaneInstall;
        return true;
    }
};

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
        for (const auto i : burst.live()) {
            auto&& lane = burst.lane(i);
            const unsigned flags = lane.flags;
            flags_seen |= flags;
            if (!counts_for_session(lane)) {
                if ((flags & kLaneInstall) == 0) count_apart(worker, snapshot, burst, i);
                continue;
            }
            sessions.touch_at(stamp, lane.session, (flags & kLaneReverse) != 0, own_tcp_flags(burst.key(i)),
                              lane.frame_length);
        }
        if ((flags_seen & kLaneInstall) == 0) return;
        burst.filter([&](auto i) {
            auto&& lane = burst.lane(i);
            return (lane.flags & kLaneInstall) == 0 || install(worker, snapshot, burst, i);
        });
    }

  private:
    // The session's rule has judged the packet, by its memo or now.
    static bool counts_for_session(const auto& lane) noexcept {
        if (lane.session == kNoSession || (lane.flags & kLaneIcmpError) != 0) return false;
        return (lane.flags & kLaneVerdictKnown) != 0 || (lane.flags & (kLaneStale | kLaneBypass)) == kLaneStale;
    }

    // A packet that stands for itself. Where it has a session, that sees it; an ICMP error changes nothing there.
    template <class Burst>
    [[gnu::noinline]] static void count_apart(WorkerState& worker, const Snapshot& snapshot, Burst& burst,
                                              auto i) noexcept {
        auto&& lane = burst.lane(i);
        session::Table& sessions = *worker.sessions;
        const bool kept = (lane.flags & kLaneVerdictKnown) != 0;  // an ICMP error: the session's verdict is an older one
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
                if (snapshot.leaks && snapshot.next_hops[lane.next_hop].tenant != lane.tenant &&
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
        session::remember_next_hop(sessions.hot(found.index), found.reverse, lane.next_hop, tenant.route_generation);
        sessions.touch(found.index, found.reverse, key.tcp_flags, lane.frame_length, worker.now_tsc);
        return true;
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
        const auto result =
            worker.sessions->add_companion(index, reply, net::flow_hash(reply, snapshot.hash_seed));
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
                                    {.permit = 1, .traffic_class = lane.traffic_class, .policer = lane.policer},
                                    tenant.policy_generation, tenant.rule_id(lane.rule));
        sessions.hot(index).policy_generation = tenant.policy_generation;
        sessions.cold(index).match_flags &= net::kL4Known;
        sessions.set_rule(index, tenant.rule_id(lane.rule));
        return session::kNoOutcome;
    }
};

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

}  // namespace cachewire::pipeline::stages
