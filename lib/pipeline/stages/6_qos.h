#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Class and rate. A packet that no rule has classed is classed by its DSCP, else by its VLAN priority, and leaves with
// what its class says. Then the policers, a pass for each place where one may stand: what conforms goes on, what
// doesn't passes, gets another DSCP or is dropped, as its policer says. A place where nobody has one costs a test a
// burst.
//
// Lines touched: a policer's state and profile, the tenant's, interface's or next hop's that names it, all of them few
// and in L1; the header line of packets that get another DSCP (parse read it); of sessions with a bucket of their own
// that one's, 32 bytes beside the entry, fetched before the pass.
#include <algorithm>
#include <cstdint>

#include "net/marking.h"
#include "pipeline/pipeline.h"
#include "pipeline/snapshot.h"
#include "pipeline/worker_state.h"
#include "qos/burst_meter.h"
#include "qos/session_meter.h"

#include <rte_mbuf.h>

namespace cachewire::pipeline::stages {

// RX begins every lane as green, and this stage has nothing to add to that.
static_assert(static_cast<std::uint8_t>(qos::Colour::green) == 0);
static_assert(kNoPolicer == qos::BurstMeter::kNone);

struct Qos {
    static constexpr StageId kId = StageId::qos;
    static constexpr FieldSet kReads = field::mbuf | field::offsets | field::tenant | field::key | field::frame_length |
                                       field::l3_length | field::verdict | field::next_hop | field::session;
    static constexpr FieldSet kWrites = field::colour;

    template <class Burst>
    static void process(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
        if (snapshot.classes) classify(snapshot, burst);
        police(worker, snapshot, burst);
    }

    // Rates alone, for what has no header to be classed by.
    template <class Burst>
    static void police(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
        if (snapshot.policer_places == 0) return;  // lanes begin green
        pass<PolicerPlace::interface_in>(worker, snapshot, burst);
        pass<PolicerPlace::tenant_in>(worker, snapshot, burst);
        pass<PolicerPlace::rule>(worker, snapshot, burst);
        pass<PolicerPlace::traffic_class>(worker, snapshot, burst);
        pass<PolicerPlace::tenant_out>(worker, snapshot, burst);
        pass<PolicerPlace::interface_out>(worker, snapshot, burst);
    }

  private:
    // Each packet by its own header: a flow may change its DSCP, and a session remembers only what a rule said.
    template <class Burst>
    [[gnu::noinline]] static void classify(const Snapshot& snapshot, Burst& burst) noexcept {
        for (const auto i : burst.live()) {
            auto&& lane = burst.lane(i);
            const net::FlowKey& key = burst.key(i);
            if (lane.traffic_class == 0) lane.traffic_class = snapshot.class_of_dscp[key.dscp & 63];
            if (lane.traffic_class == 0) lane.traffic_class = snapshot.class_of_pcp[key.pcp & 7];
            const std::uint8_t dscp = snapshot.traffic_classes[lane.traffic_class].dscp;
            if (dscp != kKeepDscp && dscp != key.dscp) mark(lane, dscp);
        }
    }

    static void mark(auto& lane, std::uint8_t dscp) noexcept {
        net::set_dscp(rte_pktmbuf_mtod_offset(lane.mbuf, std::uint8_t*, lane.l3_offset), (lane.flags & kLaneIpv6) != 0,
                      dscp);
    }

    template <PolicerPlace Place>
    [[gnu::always_inline]] static std::uint16_t policer_at(const Snapshot& snapshot, const Tenant* tenants,
                                                           const auto& lane) noexcept {
        switch (Place) {
            case PolicerPlace::interface_in:
                return lane.in_interface == kNoInterface ? kNoPolicer
                                                         : snapshot.interfaces[lane.in_interface].policer_in;
            case PolicerPlace::tenant_in:
                return tenants[lane.tenant].policer_in;
            case PolicerPlace::rule:
                return lane.policer;
            case PolicerPlace::traffic_class:
                return snapshot.traffic_classes[lane.traffic_class].policer;
            case PolicerPlace::tenant_out:
                return tenants[lane.tenant].policer_out;
            case PolicerPlace::interface_out:
                return snapshot.interfaces[snapshot.next_hops[lane.next_hop].interface].policer_out;
        }
    }

    template <PolicerPlace Place, class Burst>
    static void pass(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
        if (!snapshot.polices(Place)) return;
        if constexpr (beside_of(Place) != kNoBeside)
            if (snapshot.polices_sessions(Place)) return pass_by_session<Place>(worker, snapshot, burst);
        qos::BurstMeter meter(worker.policers, snapshot.policers.data(), worker.now_tsc);
        police<Place>(
            snapshot, burst,
            meter, [&](const auto& lane, std::uint16_t policer, auto&& incoming) __attribute__((always_inline)) {
                return meter.police(policer, lane.frame_length, lane.l3_length, incoming);
            });
    }

    // Some policer has a bucket for each session. Packets without a session have the attachment's.
    template <PolicerPlace Place, class Burst>
    [[gnu::noinline]] static void pass_by_session(WorkerState& worker, const Snapshot& snapshot,
                                                  Burst& burst) noexcept {
        auto* const buckets = reinterpret_cast<qos::SessionBucket*>(worker.sessions->beside(beside_of(Place)));
        const auto has_own = [&](const auto& lane, std::uint16_t policer) {
            return policer != kNoPolicer && buckets != nullptr && snapshot.policers[policer].per_session &&
                   lane.session != kNoSession;
        };
        // Buckets lie apart from all else of a session, and nobody has asked for these lines yet.
        for (const auto i : burst.live()) {
            auto&& lane = burst.lane(i);
            if (has_own(lane, policer_at<Place>(snapshot, snapshot.tenants.data(), lane)))
                base::prefetch_write(&buckets[lane.session]);
        }
        qos::BurstMeter meter(worker.policers, snapshot.policers.data(), worker.now_tsc);
        police<Place>(snapshot, burst, meter, [&](const auto& lane, std::uint16_t policer, auto&& incoming) {
            if (!has_own(lane, policer)) return meter.police(policer, lane.frame_length, lane.l3_length, incoming);
            return qos::police_session(buckets[lane.session], worker.policers, policer, snapshot.policers[policer],
                                       worker.now_tsc, lane.frame_length, lane.l3_length, incoming);
        });
    }

    // Each packet that meets a policer gets `colour_of(lane, policer, incoming)`, and what that means.
    template <PolicerPlace Place, class Burst, class ColourOf>
    [[gnu::always_inline]] static void police(const Snapshot& snapshot, Burst& burst, const qos::BurstMeter& meter,
                                              ColourOf&& colour_of) noexcept {
        // What the loop below writes could be this, for all the compiler knows.
        const Tenant* const tenants = snapshot.tenants.data();
        burst.filter([&](auto i) __attribute__((always_inline)) {
            auto&& lane = burst.lane(i);
            const std::uint16_t policer = policer_at<Place>(snapshot, tenants, lane);
            if (policer == kNoPolicer) return true;
            const qos::Colour colour = colour_of(lane, policer, [&] { return incoming_colour(lane, burst.key(i)); });
            return colour == qos::Colour::green || act(burst, i, meter.action(policer, colour), colour);
        });
    }

    // The worse of what it came with (RFC 2597) and what a policer before has said.
    static qos::Colour incoming_colour(const auto& lane, const net::FlowKey& key) noexcept {
        const unsigned precedence = net::drop_precedence(key.dscp);
        return static_cast<qos::Colour>(std::max<unsigned>(lane.colour, precedence == 0 ? 0 : precedence - 1));
    }

    template <class Burst>
    [[gnu::noinline]] static bool act(Burst& burst, auto i, const qos::ColourAction& action,
                                      qos::Colour colour) noexcept {
        auto&& lane = burst.lane(i);
        lane.colour = std::max(lane.colour, static_cast<std::uint8_t>(colour));
        if (action.kind == qos::ColourAction::Kind::drop) return burst.drop(i, DropReason::policer);
        if (action.kind == qos::ColourAction::Kind::remark) mark(lane, action.dscp);
        return true;
    }
};

}  // namespace cachewire::pipeline::stages
