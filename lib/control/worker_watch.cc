// SPDX-License-Identifier: BSD-3-Clause
#include "control/worker_watch.h"

#include <fmt/format.h>

namespace cachewire::control {

void WorkerWatch::look(const std::vector<Beat>& workers, std::uint64_t now_ms) {
    states_.resize(workers.size(), {0, now_ms});
    for (std::size_t i = 0; i < workers.size(); ++i) {
        State& state = states_[i];
        const std::uint64_t ms = now_ms - state.since_ms;
        if (workers[i].iterations != state.iterations) {
            if (state.stalled)
                say_(fmt::format("the worker on lcore {} comes round again after {} ms", workers[i].lcore, ms));
            state = {workers[i].iterations, now_ms, false};
        } else if (!state.stalled && ms >= kStalledMs) {
            state.stalled = true;
            say_(fmt::format(
                "the worker on lcore {} has not come round for {} ms: its queues and what others hand to it "
                "fill up",
                workers[i].lcore, ms));
        }
    }
}

}  // namespace cachewire::control
