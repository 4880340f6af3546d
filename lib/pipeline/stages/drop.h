#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The end of every packet that does not leave: counts the reason under the packet's tenant and frees the mbufs in bulk,
// once per burst. The deciding lines are the `burst.drop(i, DropReason::...)` in the other stages.
#include <array>

#include <rte_mbuf.h>

#include "pipeline/worker_state.h"
#include "port/free_mbufs.h"

namespace cachewire::pipeline::stages {

struct Drop {
    template <class Burst>
    static void process(WorkerState& worker, Burst& burst) noexcept {
        const auto dropped = burst.dropped();
        if (dropped.empty()) [[likely]]
            return;
        std::array<rte_mbuf*, kMaxLanes> mbufs;
        unsigned n = 0;
        for (const auto& d : dropped) {
            auto&& lane = burst.lane(d.lane);
            worker.tenants[lane.tenant].drops[static_cast<unsigned>(d.reason)].add(1);
            mbufs[n++] = lane.mbuf;
        }
        static_assert(kMaxLanes <= port::kMaxFree);
        port::free_mbufs({mbufs.data(), n});
        worker.ledger.dropped += n;
        burst.clear_dropped();
    }
};

}  // namespace cachewire::pipeline::stages
