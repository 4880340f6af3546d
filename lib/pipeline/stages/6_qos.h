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
        // What the loop below writes could be any of these, for all the compiler knows.
        const Tenant* const tenants = snapshot.tenants.data();
        qos::BurstMeter in(worker.policers.data(), snapshot.policers.data(), worker.now_tsc);
        qos::BurstMeter out(worker.policers.data(), snapshot.policers.data(), worker.now_tsc);
        burst.filter([&](auto i) __attribute__((always_inline)) {
            auto&& lane = burst.lane(i);
            const Tenant& tenant = tenants[lane.tenant];
            const bool conforms = passes(in, out, tenant.policer_in, lane) && passes(out, in, tenant.policer_out, lane);
            return conforms || burst.drop(i, DropReason::policer);
        });
    }

  private:
    // `other` may have the bucket too, once attachments share one.
    [[gnu::always_inline]] static bool passes(qos::BurstMeter& meter, qos::BurstMeter& other, std::uint16_t policer,
                                              auto& lane) noexcept {
        if (policer == kNoPolicer) return true;
        other.release(policer);
        return meter.police(policer, lane.frame_length, lane.l3_length) != qos::Colour::red;
    }
};
static_assert(kNoPolicer == qos::BurstMeter::kNone);

}  // namespace cachewire::pipeline::stages
