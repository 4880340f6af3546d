#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Where each packet goes. Sessions with a fresh route generation have brought their next hop; the others are looked up
// in their tenant's FIB in bulk, one call a FIB, and what was found is put into the session. Then the next hop decides:
// drop by reason, or on to TX with a TTL to spare and within the egress MTU.
//
// Lines touched: the FIB (misses and stale lanes only), the next hop's line, which TX reads again, and the hot entry of
// sessions whose route is renewed. Neither the mbuf nor the packet.
#include <array>
#include <cstdint>

#include "base/prefetch.h"
#include "net/headers.h"
#include "pipeline/egress.h"
#include "pipeline/fragment.h"
#include "pipeline/pipeline.h"
#include "pipeline/reverse_path.h"
#include "pipeline/snapshot.h"
#include "pipeline/twin.h"
#include "pipeline/worker_state.h"

#include <rte_mbuf.h>

namespace cachewire::pipeline::stages {

struct Route {
    static constexpr StageId kId = StageId::route;
    static constexpr FieldSet kReads = field::key | field::tenant | field::l3_length | field::session;
    static constexpr FieldSet kWrites = field::next_hop;

    template <class Burst>
    static void process(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
        Lanes pending;
        const route::NextHop* const next_hops = snapshot.next_hops.data();
        for (const auto i : burst.live().without(burst.memoised())) {
            auto&& lane = burst.lane(i);
            if ((lane.flags & kLaneRouteKnown) != 0) {
                base::prefetch_read(&next_hops[lane.next_hop]);
                if ((lane.flags & kLaneWire) != 0) remember_wire(worker, snapshot, lane);
            } else {
                pending.lane[pending.size++] = static_cast<std::uint8_t>(i);
            }
        }
        while (pending.size != 0) lookup_one_fib(worker, snapshot, burst, pending);
        // Before anything is answered: a forged source hears nothing.
        if (snapshot.rpf) check_reverse_paths(snapshot, burst);
        burst.filter([&](auto i) {
            auto&& lane = burst.lane(i);
            const route::NextHop& next_hop = next_hops[lane.next_hop];
            if (next_hop.kind != route::NextHopKind::forward) return refuse(worker, snapshot, burst, i, next_hop);
            // RFC 1812 5.3.1, RFC 8200 3: a packet that would leave with 0 is not forwarded.
            if (lane.ttl <= 1) return answer(burst, i, PuntReason::ttl_exceeded);
            return lane.l3_length <= next_hop.mtu || too_long(burst, i);
        });
        if (snapshot.leaks) count_leaks(worker, snapshot, burst);
    }

  private:
    struct Lanes {
        std::array<std::uint8_t, kMaxLanes> lane;
        unsigned size = 0;
    };
    static_assert(kMaxLanes <= route::kMaxBulk);

    // Looks up the lanes of the first pending one's FIB and leaves the others pending, in order.
    template <class Burst>
    static void lookup_one_fib(WorkerState& worker, const Snapshot& snapshot, Burst& burst, Lanes& pending) noexcept {
        const route::FibView* fib = snapshot.tenants[burst.lane(pending.lane[0]).tenant].fib;
        std::array<const net::Address*, kMaxLanes> destinations;
        std::array<std::uint16_t, kMaxLanes> next_hops;
        Lanes mine;
        unsigned others = 0;
        for (unsigned k = 0; k < pending.size; ++k) {
            const std::uint8_t i = pending.lane[k];
            if (snapshot.tenants[burst.lane(i).tenant].fib != fib) {
                pending.lane[others++] = i;
                continue;
            }
            destinations[mine.size] = &burst.key(i).dst;
            mine.lane[mine.size++] = i;
        }
        pending.size = others;
        fib->lookup({destinations.data(), mine.size}, {next_hops.data(), mine.size});
        for (unsigned k = 0; k < mine.size; ++k) base::prefetch_read(&snapshot.next_hops[next_hops[k]]);
        for (unsigned k = 0; k < mine.size; ++k) {
            auto&& lane = burst.lane(mine.lane[k]);
            lane.next_hop = next_hops[k];
            if (snapshot.next_hops[lane.next_hop].kind >= route::NextHopKind::group)
                lane.next_hop = resolve(worker, snapshot, lane, *destinations[k]);
            if (lane.policy_hop != kNoNextHop && is_overridden(snapshot, lane, *destinations[k]))
                lane.next_hop = lane.policy_hop;
            if (lane.session == kNoSession || stands_apart(snapshot, lane)) continue;
            session::HotEntry& entry = worker.sessions->hot(lane.session);
            const bool reverse = (lane.flags & kLaneReverse) != 0;
            const std::uint16_t generation = snapshot.tenants[lane.tenant].route_generation;
            if ((lane.flags & kLaneShadow) != 0) compare(worker, entry, reverse, generation, lane.next_hop);
            session::remember_next_hop(entry, reverse, lane.next_hop, generation);
        }
    }

    // For the session's next packet, which finds everything in its memo then.
    static void remember_wire(WorkerState& worker, const Snapshot& snapshot, const auto& lane) noexcept {
        if (lane.session == kNoSession || (lane.flags & kLaneIcmpError) != 0) return;
        session::remember_next_hop(worker.sessions->hot(lane.session), (lane.flags & kLaneReverse) != 0, lane.next_hop,
                                   snapshot.tenants[lane.tenant].route_generation);
    }

    // A rule's next hop goes before the route, but the router's own addresses stay its own. A next hop of the other
    // family is none for this packet.
    [[gnu::noinline]] static bool is_overridden(const Snapshot& snapshot, const auto& lane,
                                                const net::Address& destination) noexcept {
        const route::NextHopKind kind = snapshot.next_hops[lane.next_hop].kind;
        if (kind == route::NextHopKind::local || kind == route::NextHopKind::broadcast) return false;
        return snapshot.next_hops[lane.policy_hop].via.is_v4() == destination.is_v4();
    }

    // A packet that another rule than its session's may have judged: where rules name next hops, the session does not
    // remember its.
    static bool stands_apart(const Snapshot& snapshot, const auto& lane) noexcept {
        if (snapshot.tenants[lane.tenant].policy_hops == nullptr) return false;
        return (lane.flags & kLaneVerdictKnown) == 0 && (lane.flags & (kLaneStale | kLaneBypass)) != kLaneStale;
    }

    template <class Burst>
    [[gnu::noinline]] static void count_leaks(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
        for (const auto i : burst.live()) {
            auto&& lane = burst.lane(i);
            if (is_leak(snapshot.next_hops[lane.next_hop], lane.tenant)) worker.tenants[lane.tenant].leaked_out.add(1);
        }
    }

    // What lane.next_hop leads to, when it is no way out itself: another tenant's route, a member of a group. A route
    // that leads on from the other tenant to a third one is none.
    [[gnu::noinline]] static std::uint16_t resolve(WorkerState& worker, const Snapshot& snapshot, const auto& lane,
                                                   const net::Address& destination) noexcept {
        std::uint16_t index = lane.next_hop;
        if (snapshot.next_hops[index].kind == route::NextHopKind::leak) {
            const std::uint16_t other = snapshot.next_hops[index].tenant;
            const route::FibView* fib = other < snapshot.tenants.size() ? snapshot.tenants[other].fib : nullptr;
            if (fib == nullptr) return kNoNextHop;
            const net::Address* one = &destination;
            fib->lookup({&one, 1}, {&index, 1});
            if (snapshot.next_hops[index].kind == route::NextHopKind::leak) return kNoNextHop;
        }
        if (snapshot.next_hops[index].kind != route::NextHopKind::group) return index;
        return member(worker, *snapshot.groups[snapshot.next_hops[index].group], lane);
    }

    // A session stays with the member that it has had, while that one is up: buckets may move, sessions don't.
    static std::uint16_t member(WorkerState& worker, const route::Group& group, const auto& lane) noexcept {
        if (lane.session != kNoSession) {
            const session::HotEntry& entry = worker.sessions->hot(lane.session);
            const std::uint16_t had = entry.next_hop[(lane.flags & kLaneReverse) != 0 ? 1 : 0];
            const auto index = static_cast<std::uint16_t>(had & ~session::kOldNextHop);
            if (index != kNoNextHop && group.has(index)) return index;
        }
        return group.pick(lane.hash);
    }

    // A memo hit that is derived anew: what the memo would have said.
    static void compare(WorkerState& worker, const session::HotEntry& entry, bool reverse, std::uint16_t generation,
                        std::uint16_t next_hop) noexcept {
        const std::uint16_t known = entry.next_hop[reverse ? 1 : 0];
        if (static_cast<std::int16_t>(known) > 0 && entry.route_generation == generation && known != next_hop)
            worker.memo.shadow_mismatch.add(1);
    }

    // Dropped; the slow path says so to the sender where RFC 1812 4.3.2.7 and RFC 4443 2.4(e) let it. What they forbid
    // and can be told here doesn't take the others' rate; group addresses and martians have not come this far.
    template <class Burst>
    [[gnu::cold, gnu::noinline]] static bool answer(Burst& burst, auto i, PuntReason reason) noexcept {
        const bool silent =
            (burst.lane(i).flags & kLaneIcmpError) != 0 || (burst.key(i).match_flags & net::kLaterFragment) != 0;
        return silent ? burst.drop(i, traits_of(reason).drop) : burst.punt(i, reason);
    }

    // IPv4 that may be cut goes on, and the TX stage cuts it. The only look of this stage at a packet.
    template <class Burst>
    [[gnu::cold, gnu::noinline]] static bool too_long(Burst& burst, auto i) noexcept {
        auto&& lane = burst.lane(i);
        if ((lane.flags & kLaneIpv6) != 0 ||
            !may_fragment_ip4(rte_pktmbuf_mtod_offset(lane.mbuf, const std::uint8_t*, lane.l3_offset)))
            return answer(burst, i, PuntReason::mtu_exceeded);
        lane.flags |= kLanePieces;
        burst.note_pieces();
        return true;
    }

    template <class Burst>
    [[gnu::cold, gnu::noinline]] static bool refuse(WorkerState& worker, const Snapshot& snapshot, Burst& burst, auto i,
                                                    const route::NextHop& next_hop) noexcept {
        auto&& lane = burst.lane(i);
        switch (next_hop.kind) {
            case route::NextHopKind::wire:
                // A memo says the session's verdict; where a frame leaves says the port that it came in by, since two
                // pairs of one tenant share its sessions.
                lane.next_hop = snapshot.ports[lane.in_port].wire_next_hop;
                if (lane.next_hop == kNoNextHop) return burst.drop(i, DropReason::no_route);  // a pair's no more
                burst.note_wire();
                return true;
            case route::NextHopKind::unresolved:
                // A connected network as a whole is no next hop to remember: its hosts get their own as they are found,
                // and no generation says so.
                if (lane.session != kNoSession && next_hop.via == net::Address{})
                    worker.sessions->hot(lane.session).next_hop[(lane.flags & kLaneReverse) != 0] = kNoNextHop;
                // It has waited once, and its neighbor has gone again.
                if ((lane.flags & kLaneRetried) != 0) return burst.drop(i, DropReason::no_neighbor);
                return burst.punt(i, PuntReason::no_neighbor);
            case route::NextHopKind::local:
                if (is_echo_request(burst.key(i))) return burst.punt(i, PuntReason::echo);
                if (snapshot.tenants[lane.tenant].twins) return burst.punt(i, twin_reason(burst.key(i)));
                return answer(burst, i, PuntReason::local);
            case route::NextHopKind::no_route:
                return answer(burst, i, PuntReason::no_route);
            default:
                return burst.drop(i, reason_of(next_hop.kind));
        }
    }

    // Whole ones only: nothing here puts fragments together.
    static bool is_echo_request(const net::FlowKey& key) noexcept {
        if ((key.match_flags & (net::kL4Known | net::kFragment)) != net::kL4Known) return false;
        return (key.proto == net::kProtoIcmp && key.icmp_type == 8) ||
               (key.proto == net::kProtoIcmp6 && key.icmp_type == 128);
    }

    static DropReason reason_of(route::NextHopKind kind) noexcept {
        switch (kind) {
            case route::NextHopKind::drop:
                return DropReason::route_drop;
            case route::NextHopKind::local:
                return DropReason::local;
            case route::NextHopKind::broadcast:
                return DropReason::broadcast;
            case route::NextHopKind::unresolved:
                return DropReason::no_neighbor;
            case route::NextHopKind::no_route:
            case route::NextHopKind::forward:
            case route::NextHopKind::wire:
            case route::NextHopKind::group:
            case route::NextHopKind::leak:
                break;
        }
        return DropReason::no_route;
    }
};

}  // namespace cachewire::pipeline::stages
