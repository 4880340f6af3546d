#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// One worker, one snapshot and one burst for tests of a single stage: lanes are filled by hand and no mbuf exists,
// because the stages between parse and TX look at none.
#include <algorithm>
#include <memory>

#include "pipeline/snapshot.h"
#include "pipeline/worker_state.h"
#include "support/eal.h"

namespace cachewire::test {

inline constexpr std::uint64_t kRigHz = 1'000'000'000;
inline constexpr std::uint16_t kTrack = 1, kCache = 2;  // tenants by the mode that tests give them

struct StageRig {
    StageRig() {
        ensure_eal();
        worker->sessions = std::make_unique<session::Table>(1024, -1, kRigHz, session::Timeouts{});
        worker->now_tsc = 1000 * kRigHz;
        snapshot.tenants.resize(4);
    }

    // A fresh burst of these packets, one lane each.
    void begin(const std::vector<net::FlowKey>& keys) {
        pipeline::Burst& burst = worker->burst;
        burst.begin(static_cast<unsigned>(keys.size()));
        for (unsigned i = 0; i < keys.size(); ++i) {
            const auto l = static_cast<pipeline::Burst::LaneIndex>(i);
            burst.key(l) = keys[i];
            burst.lane(l) = {};
            burst.lane(l).tenant = keys[i].tenant;
            burst.lane(l).hash = net::flow_hash(keys[i], snapshot.hash_seed);
            burst.lane(l).session = pipeline::kNoSession;
            burst.lane(l).frame_length = 100;
            burst.lane(l).l3_length = 86;
        }
    }

    template <class Stage>
    void run() {
        Stage::process(*worker, snapshot, worker->burst);
    }

    [[nodiscard]] bool is_live(unsigned lane) const {
        const auto live = worker->burst.live();
        return std::find(live.begin(), live.end(), lane) != live.end();
    }

    // The reason a lane was dropped or (with "punt ") punted for; a lane that is neither of these nor live is lost, and
    // two at once are no better.
    [[nodiscard]] std::string fate(unsigned lane) const {
        std::string fate = is_live(lane) ? "live" : "";
        for (const auto& dropped : worker->burst.dropped()) {
            if (dropped.lane == lane) fate += pipeline::kDropReasonTexts[static_cast<unsigned>(dropped.reason)].name;
        }
        for (const auto& punted : worker->burst.punted())
            if (punted.lane == lane) fate += std::string("punt ") + pipeline::traits_of(punted.reason).name;
        return fate.empty() ? "lost" : fate;
    }

    std::unique_ptr<pipeline::WorkerState> worker = std::make_unique<pipeline::WorkerState>();
    pipeline::Snapshot snapshot;
};

}  // namespace cachewire::test
