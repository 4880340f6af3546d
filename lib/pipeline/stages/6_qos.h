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

struct Qos {
    static constexpr StageId kId = StageId::qos;
    static constexpr FieldSet kReads = field::tenant | field::frame_length | field::l3_length;
    static constexpr FieldSet kWrites = field::colour;

    template <class Burst>
    static void process(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
        bool any = false;
        for (const auto i : burst.live()) {
            auto&& lane = burst.lane(i);
            lane.colour = static_cast<std::uint8_t>(qos::Colour::green);
            any |= is_policed(snapshot.tenants[lane.tenant]);
        }
        if (!any) return;
        burst.filter([&](auto i) {
            auto&& lane = burst.lane(i);
            const Tenant& tenant = snapshot.tenants[lane.tenant];
            const bool conforms =
                passes(worker, snapshot, tenant.policer_in, lane) && passes(worker, snapshot, tenant.policer_out, lane);
            return conforms || burst.drop(i, DropReason::policer);
        });
    }

  private:
    static bool is_policed(const Tenant& tenant) noexcept {
        return tenant.policer_in != kNoPolicer || tenant.policer_out != kNoPolicer;
    }

    static bool passes(WorkerState& worker, const Snapshot& snapshot, std::uint16_t policer, auto& lane) noexcept {
        if (policer == kNoPolicer) return true;
        return qos::police(worker.policers[policer], snapshot.policers[policer], worker.now_tsc, lane.frame_length,
                           lane.l3_length) != qos::Colour::red;
    }
};

}  // namespace cachewire::pipeline::stages
