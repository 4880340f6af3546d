#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The tenant's policers, first the one for what it sends in, then the one for what leaves. What goes on is green; red
// is dropped.
#include <cstdint>

#include "pipeline/pipeline.h"
#include "pipeline/snapshot.h"
#include "pipeline/worker_state.h"
#include "qos/policer.h"

namespace cachewire::pipeline::stages {

// RX begins every lane as green, and this stage has nothing to add to that.
static_assert(static_cast<std::uint8_t>(qos::Colour::green) == 0);

struct Qos {
    static constexpr StageId kId = StageId::qos;
    static constexpr FieldSet kReads = field::tenant | field::frame_length | field::l3_length;
    static constexpr FieldSet kWrites = field::colour;

    template <class Burst>
    static void process(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
        if (snapshot.policers.empty()) return;  // lanes begin green
        burst.filter([&](auto i) {
            auto&& lane = burst.lane(i);
            const Tenant& tenant = snapshot.tenants[lane.tenant];
            const bool conforms =
                passes(worker, snapshot, tenant.policer_in, lane) && passes(worker, snapshot, tenant.policer_out, lane);
            return conforms || burst.drop(i, DropReason::policer);
        });
    }

  private:
    static bool passes(WorkerState& worker, const Snapshot& snapshot, std::uint16_t policer, auto& lane) noexcept {
        if (policer == kNoPolicer) return true;
        return qos::police(worker.policers[policer], snapshot.policers[policer], worker.now_tsc, lane.frame_length,
                           lane.l3_length) != qos::Colour::red;
    }
};

}  // namespace cachewire::pipeline::stages
