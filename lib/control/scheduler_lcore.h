#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Makes the lcore that schedules (pipeline/scheduler_worker.h) from the configuration, and the rings to it. Made before
// the workers run, gone after they have returned: which port has a scheduler stays from start to end of a process.
#include <memory>
#include <span>

#include "base/huge_array.h"
#include "config/config.h"
#include "control/registry.h"
#include "pipeline/scheduler_worker.h"

namespace cachewire::control {

class SchedulerLcore {
  public:
    // `workers`: the states of all that will run; each gets its end of the rings. Throws base::MachineError.
    SchedulerLcore(const config::Config& config, const Registry& registry, unsigned lcore,
                   pipeline::SnapshotReader reader, std::span<pipeline::WorkerState* const> workers);

    [[nodiscard]] pipeline::SchedulerWorker& worker() noexcept { return *worker_; }
    [[nodiscard]] const pipeline::SchedulerWorker& worker() const noexcept { return *worker_; }

    // The most mbufs that wait in rings and queues, as a pool has to reckon with.
    static std::size_t mbufs(const config::Config& config, std::size_t workers) noexcept;

  private:
    base::HugeArray rings_;
    std::unique_ptr<pipeline::SchedulerWorker> worker_;
};

}  // namespace cachewire::control
