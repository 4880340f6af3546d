#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The session stage: key, hash -> session, direction, and what a fresh memo knows: verdict and next hop. A hit on a
// fresh memo runs no ACL and no LPM. Drops what can't begin a session, and what a memoised verdict denies. Its second
// half, after the route stage, is in 3_install.h.
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
#include "pipeline/stages/new_session.h"
#include "pipeline/stages/own_verdict.h"
#include "pipeline/stages/verdict.h"
#include "pipeline/worker_state.h"
#include "session/table.h"

namespace cachewire::pipeline::stages {

struct Session {
    static constexpr StageId kId = StageId::session;
    static constexpr FieldSet kReads = field::key | field::hash | field::tenant | field::frame_length | field::mbuf |
                                       field::offsets | field::l3_length;
    static constexpr FieldSet kWrites = field::session;

    template <class Burst>
    static void process(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
        // Here, where no lane holds an entry's number.
        if (worker.sessions->needs_relief()) worker.sessions->relieve(worker.outcomes);
        LaneSet apart;               // look up nothing
        std::uint8_t tcp_flags = 0;  // of all that look up
        const session::Index index = worker.sessions->index();
        const Tenant* const tenants = snapshot.tenants.data();
        const std::size_t asked = snapshot.prefetch_session;
        burst.filter([&](auto i) __attribute__((always_inline)) {
            if (!gather(worker, snapshot, tenants, burst, i, apart, tcp_flags)) return false;
            if constexpr (Burst::kPrefetchesSessions)
                if (i < asked) index.prefetch_first(burst.lane(i).hash);
            return true;
        });
        const LaneSet looking = burst.live().without(apart);
        find_candidates(worker, snapshot, burst, looking);
        const bool kill = snapshot.on_policy_change == OnPolicyChange::kill;
        if (kill || (tcp_flags & session::kTcpSyn) != 0) make_way(worker, snapshot, burst, looking);

        // Not served by its memo alone. Looked at in a pass of their own, so that there is no call in this one.
        LaneSet slow = apart;
        const Fast fast = fast_of(worker, snapshot);
        // Asked of the table and not of the routes: companions outlive the leak that made them.
        const bool adopts = worker.sessions->has_companions();
        looking.for_each([&](auto i) __attribute__((always_inline)) {
            auto&& lane = burst.lane(i);
            slow.add_if(i, !fast.hit(lane, burst.key(i), adopts));
        });
        Counts counts;
        if (!slow.empty()) [[unlikely]]
            take_slow(worker, snapshot, adopts, burst, slow, apart, counts);
        const LaneSet memoised = burst.live().without(slow);
        burst.set_memoised(memoised);
        worker.memo.hits.add(counts.hits + memoised.size());
        worker.memo.misses.add(counts.misses);
    }

  private:
    static_assert(kMaxLanes <= session::kMaxLookup);
    struct Counts {
        unsigned hits = 0, misses = 0;
    };

    // First pass: which lanes look up nothing. False: dropped.
    template <class Burst>
    [[gnu::always_inline]] static bool gather(WorkerState& worker, const Snapshot& snapshot, const Tenant* tenants,
                                              Burst& burst, auto i, LaneSet& apart, std::uint8_t& tcp_flags) noexcept {
        auto&& lane = burst.lane(i);
        if (tenants[lane.tenant].sessions == SessionMode::none) {
            lane.session = kNoSession;
            apart.add(i);
            return true;
        }
        const net::FlowKey& key = burst.key(i);
        if (key.match_flags != net::kL4Known || (lane.flags & kLaneIcmpError) != 0) [[unlikely]] {
            lane.session = kNoSession;
            lane.flags |= kLaneBypass;
            const Piece piece = begin_bypass(worker, snapshot, burst, i);
            if (piece == Piece::overlap) return burst.drop(i, DropReason::fragment_offset);
            if (piece == Piece::unknown) {
                apart.add(i);
                return true;
            }
        }
        tcp_flags |= key.tcp_flags;
        return true;
    }

    // Until it is verified a lane's candidate stands where its session will.
    template <class Burst>
    [[gnu::always_inline]] static void find_candidates(WorkerState& worker, const Snapshot& snapshot, Burst& burst,
                                                       LaneSet looking) noexcept {
        worker.sessions->find_candidates<Burst::kPrefetchesSessions>(
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
            each(
                [&](const net::FlowKey&, session::Found found) { return end_outdated(worker, snapshot, found.index); });
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
    // with that one's list, routes and policers. False: a reload took the session's tenant away.
    static bool adopt(WorkerState& worker, const Snapshot& snapshot, auto& lane, std::uint32_t index) noexcept {
        const std::uint16_t owner = worker.sessions->hot(index).tenant;
        if (owner == lane.tenant) return true;
        if (!is_served(snapshot, owner)) return false;
        lane.tenant = owner;
        worker.tenants[owner].leaked_in.add(1);
        return true;
    }

    // A tenant that is gone, or that keeps sessions no more, leaves them to their time-outs, and another tenant's
    // companions may lead to them. The slot of one that is gone reads as `none`.
    static bool is_served(const Snapshot& snapshot, std::uint16_t tenant) noexcept {
        return tenant < snapshot.tenants.size() && snapshot.tenants[tenant].sessions != SessionMode::none;
    }

    // Where only routes have changed, a list that looks at the egress judges its sessions anew, and none is killed.
    static bool is_of_older_list(const Tenant& tenant, const session::HotEntry& entry) noexcept {
        return static_cast<std::int16_t>(entry.policy_generation - tenant.list_generation) < 0;
    }

    // `on_policy_change: kill`: what an older policy has permitted is no session any more.
    static bool end_outdated(WorkerState& worker, const Snapshot& snapshot, std::uint32_t index) noexcept {
        const session::HotEntry& entry = worker.sessions->hot(index);
        // Free: an earlier lane of the same session came by.
        if (entry.state() == session::State::free) return false;
        if (is_served(snapshot, entry.tenant) && !is_of_older_list(snapshot.tenants[entry.tenant], entry)) return false;
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
        const session::HotEntry* entries;
        const session::OutcomeTable* outcomes;
        const route::NextHop* next_hops;
        bool memo;  // switched on, and no shadow checks

        // The lane's candidate is its session then.
        [[gnu::always_inline]] bool hit(auto& lane, const net::FlowKey& key, bool adopts) const noexcept {
            if (lane.session == session::kNone) return false;
            const session::HotEntry& entry = entries[lane.session];
            const auto [any, reverse] = session::match_key(entry, key);
            if (!any || entry.is_companion()) return false;
            if (adopts && entry.tenant != lane.tenant) [[unlikely]]
                return false;
            const Tenant& tenant = tenants[lane.tenant];
            const std::uint16_t next_hop = entry.next_hop[reverse ? 1 : 0];
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
                static_cast<std::uint16_t>(kLaneRouteKnown | kLaneVerdictKnown | (reverse ? kLaneReverse : 0));
            return true;
        }
    };
    static_assert(offsetof(session::HotEntry, route_generation) == offsetof(session::HotEntry, policy_generation) + 2);
    static_assert(offsetof(Tenant, route_generation) == offsetof(Tenant, policy_generation) + 2);
    static Fast fast_of(WorkerState& worker, const Snapshot& snapshot) noexcept {
        return {snapshot.tenants.data(), worker.sessions->entries(), &worker.outcomes, snapshot.next_hops.data(),
                snapshot.memoize && snapshot.shadow_check == 0};
    }

    template <class Burst>
    [[gnu::noinline]] static void take_slow(WorkerState& worker, const Snapshot& snapshot, bool adopts, Burst& burst,
                                            LaneSet slow, LaneSet apart, Counts& counts) noexcept {
        burst.filter(
            slow, [&](auto i) __attribute__((always_inline)) {
                if (apart.contains(i)) [[unlikely]]
                    return (burst.lane(i).flags & kLaneBypass) == 0 || error_or_unknown(worker, snapshot, burst, i);
                return without_memo(worker, snapshot, adopts, burst, i, counts);
            });
    }

    // All others that looked up: no session, another tenant's, or a memo that does not say everything.
    template <class Burst>
    [[gnu::always_inline]] static bool without_memo(WorkerState& worker, const Snapshot& snapshot, bool adopts,
                                                    Burst& burst, auto i, Counts& counts) noexcept {
        auto&& lane = burst.lane(i);
        const session::Found found = worker.sessions->verify(lane.session, burst.key(i), lane.hash);
        lane.session = found.index;
        if (found.index == session::kNone) {
            counts.misses += (lane.flags & kLaneBypass) == 0;
            return without_session(worker, snapshot, snapshot.tenants[lane.tenant], burst, i);
        }
        if (adopts && worker.sessions->hot(found.index).tenant != lane.tenant &&
            !adopt(worker, snapshot, lane, found.index)) {
            // Judged alone, and no session begins: its tuple is taken until the old one ends.
            lane.session = kNoSession;
            ++counts.misses;
            return true;
        }
        return hit(worker, snapshot, snapshot.tenants[lane.tenant], burst, i, found, counts);
    }

    template <class Burst>
    [[gnu::noinline]] static bool hit(WorkerState& worker, const Snapshot& snapshot, const Tenant& tenant, Burst& burst,
                                      auto i, session::Found found, Counts& counts) noexcept {
        auto&& lane = burst.lane(i);
        const session::HotEntry& entry = worker.sessions->hot(found.index);
        if (found.reverse) lane.flags |= kLaneReverse;
        const bool usable = entry.policy_generation == tenant.policy_generation && snapshot.memoize &&
                            (lane.flags & kLaneBypass) == 0 &&
                            (tenant.stateful ? worker.outcomes.knows_forward(entry.outcome)
                                             : speaks_for(worker, tenant, found, burst.key(i)));
        if (!usable) return hit_without_memo(worker, snapshot, tenant, burst, i, found);
        const bool reply_alone = found.reverse && !tenant.stateful;
        if (snapshot.shadow_check != 0 && ++worker.shadow_hits >= snapshot.shadow_check) {
            worker.shadow_hits = 0;
            worker.memo.shadow_checked.add(1);
            ++counts.hits;
            lane.flags |= reply_alone ? kLaneShadow : kLaneStale | kLaneShadow;
            return true;
        }
        if (take_route(tenant, entry, found.reverse, lane)) {
            ++counts.hits;
        } else {
            worker.memo.stale.add(1);
        }
        return apply(worker, burst, i, entry, reply_alone);
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

    // Leaves the lane to the ACL stage: as the session's (stale) or, without either flag, by its own key.
    template <class Burst>
    [[gnu::noinline]] static bool hit_without_memo(WorkerState& worker, const Snapshot& snapshot, const Tenant& tenant,
                                                   Burst& burst, auto i, session::Found found) noexcept {
        auto&& lane = burst.lane(i);
        const session::HotEntry& entry = worker.sessions->hot(found.index);
        const bool bypass = (lane.flags & kLaneBypass) != 0;
        const bool outdated = entry.policy_generation != tenant.policy_generation;
        const bool own = !tenant.stateful &&
                         (bypass || found.reverse || !agrees_with_first(worker, tenant, found.index, burst.key(i)));
        if (!bypass && snapshot.memoize) take_route(tenant, entry, found.reverse, lane);
        if (tenant.stateful && outdated && is_kept(worker, snapshot, entry)) {
            if (!bypass) (snapshot.memoize ? worker.memo.hits : worker.memo.bypass_other).add(1);
            return apply(worker, burst, i, entry, false);
        }
        // Without the memo a stateless list judges each packet alone.
        if (own || (!tenant.stateful && !snapshot.memoize)) {
            if (!bypass && teaches_memo(worker, snapshot, tenant, found))
                lane.flags |= kLaneLearn;  // counted where it is judged
            else if (!bypass)
                worker.memo.bypass_other.add(1);
            return true;
        }
        lane.flags |= kLaneStale;  // counted where it is judged, which finds out whether there is an outcome to be had
        return true;
    }

    // `on_policy_change: keep` makes a stateful list's verdict part of the session's state.
    static bool is_kept(WorkerState& worker, const Snapshot& snapshot, const session::HotEntry& entry) noexcept {
        return snapshot.on_policy_change == OnPolicyChange::keep && worker.outcomes.knows_forward(entry.outcome);
    }

    // The session's verdict, or that of its replies alone, to the lane.
    template <class Burst>
    static bool apply(WorkerState& worker, Burst& burst, auto i, const session::HotEntry& entry,
                      bool reply_alone) noexcept {
        auto&& lane = burst.lane(i);
        const session::Outcome& outcome =
            reply_alone ? worker.outcomes.reverse(entry.outcome) : worker.outcomes[entry.outcome];
        if (!outcome.permit) {
            // A session that a reload has turned against; it is not touched, so it ends by its time-out.
            const session::ColdEntry& cold = worker.sessions->cold(lane.session);
            count_rule(worker, burst, i, session::Table::rule_of(cold, reply_alone));
            return refuse(burst, i, outcome);
        }
        lane.outcome = entry.outcome;
        lane.policer = outcome.policer;
        lane.traffic_class = outcome.traffic_class;
        lane.policy_hop = (lane.flags & kLaneReverse) != 0 ? kNoNextHop : outcome.next_hop;
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
        if (!adopt(worker, snapshot, lane, related.found.index)) return true;
        const bool outdated = entry.policy_generation != snapshot.tenants[entry.tenant].policy_generation;
        if (outdated && snapshot.on_policy_change == OnPolicyChange::kill &&
            is_of_older_list(snapshot.tenants[entry.tenant], entry))
            return true;
        lane.session = related.found.index;
        if (!related.found.reverse) lane.flags |= kLaneReverse;  // it answers what it quotes
        if (outdated && is_kept(worker, snapshot, entry)) return apply(worker, burst, i, entry, false);
        lane.flags |= kLaneStale;
        return true;
    }
};

}  // namespace cachewire::pipeline::stages
