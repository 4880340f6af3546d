#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The lanes that burst.punt() has taken off: into the slow path's queue, once a burst, each under what the ledger calls
// it. What the class's rate or the queue refuses becomes an ordinary drop.
#include <cstdint>

#include <rte_mbuf.h>

#include "pipeline/worker_state.h"

namespace cachewire::pipeline::stages {

struct Punt {
    template <class Burst>
    static void process(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
        if (burst.punted().empty()) [[likely]]
            return;
        hand_over_all(worker, snapshot, burst);
    }

  private:
    template <class Burst>
    [[gnu::noinline]] static void hand_over_all(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
        for (const auto& punted : burst.punted()) hand_over(worker, snapshot, burst, punted);
        worker.to_slow_path.publish();
        burst.clear_punted();
    }

    template <class Burst>
    static void hand_over(WorkerState& worker, const Snapshot& snapshot, Burst& burst,
                          const typename Burst::Punted& punted) noexcept {
        auto&& lane = burst.lane(punted.lane);
        const PuntTraits& traits = traits_of(punted.reason);
        const auto reason = static_cast<std::size_t>(punted.reason);
        const std::size_t klass = static_cast<std::size_t>(class_of(traits.klass, *lane.mbuf));
        if (!admit(worker, snapshot, lane.in_port, lane.tenant, klass)) {
            worker.punts.limited[reason].add(1);
            burst.drop(punted.lane, punted.drop);
            return;
        }
        const PuntRecord record = {.mbuf = lane.mbuf,
                                   .reason = punted.reason,
                                   .drop = punted.drop,
                                   .ip6 = (lane.flags & kLaneIpv6) != 0,
                                   .tenant = lane.tenant,
                                   .interface = lane.in_interface,
                                   .port = lane.in_port,
                                   .next_hop = lane.next_hop,
                                   .l3_offset = lane.l3_offset,
                                   .l3_length = lane.l3_length,
                                   .l4_offset = lane.l4_offset};
        if (!worker.to_slow_path.push(record)) {
            worker.punts.full[reason].add(1);
            burst.drop(punted.lane, traits.fate == PuntFate::dropped ? punted.drop : DropReason::punt_full);
            return;
        }
        worker.punts.taken[reason].add(1);
        switch (traits.fate) {
            case PuntFate::dropped:
                worker.tenants[lane.tenant].drops[static_cast<unsigned>(punted.drop)].add(1);
                ++worker.ledger.dropped;
                break;
            case PuntFate::punted:
                ++worker.ledger.punted;
                break;
            case PuntFate::held:
                ++worker.ledger.held;
                break;
        }
    }

    static bool admit(WorkerState& worker, const Snapshot& snapshot, std::uint16_t port, std::uint16_t tenant,
                      std::size_t klass) noexcept {
        if (klass < kFirstKernelClass)
            return worker.punt_meters[port][klass].admit(worker.now_tsc, worker.punt_intervals[klass],
                                                         kPuntRates[klass].burst);
        if (worker.kernel_meters == nullptr) return true;
        const std::size_t kernel = klass - kFirstKernelClass;
        const PuntInterval& rate = snapshot.kernel_punt[kernel];
        return worker.kernel_meters[tenant].classes[kernel].admit(worker.now_tsc, rate.tsc, rate.burst);
    }

    // The only look at the packet: its destination MAC's group bit, in the line that the parser has read.
    static PuntClass class_of(PuntClass klass, const rte_mbuf& mbuf) noexcept {
        if (klass != PuntClass::resolve_group) return klass;
        return (*rte_pktmbuf_mtod(&mbuf, const std::uint8_t*) & 1) != 0 ? klass : PuntClass::resolve_own;
    }
};

}  // namespace cachewire::pipeline::stages
