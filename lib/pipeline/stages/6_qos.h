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
        const Policers policers{worker.policers.data(), snapshot.policers.data(), worker.now_tsc};
        burst.filter([&](auto i) {
            auto&& lane = burst.lane(i);
            const Tenant& tenant = tenants[lane.tenant];
            const bool conforms =
                passes(policers, tenant.policer_in, lane) && passes(policers, tenant.policer_out, lane);
            return conforms || burst.drop(i, DropReason::policer);
        });
    }

  private:
    struct Policers {
        qos::PolicerState* states;
        const qos::PolicerProfile* profiles;
        std::uint64_t now_tsc;
    };

    static bool passes(const Policers& policers, std::uint16_t policer, auto& lane) noexcept {
        if (policer == kNoPolicer) return true;
        return qos::police(policers.states[policer], policers.profiles[policer], policers.now_tsc, lane.frame_length,
                           lane.l3_length) != qos::Colour::red;
    }
};

}  // namespace cachewire::pipeline::stages
