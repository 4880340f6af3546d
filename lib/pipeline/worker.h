#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// One poll-mode worker: the loop around Front and Back. Everything it writes is in its WorkerState; what the control
// plane tells it is one phase word on a line of its own.
#include <atomic>
#include <memory>
#include <vector>

#include "pipeline/dispatch.h"
#include "pipeline/snapshot_reader.h"
#include "pipeline/worker_state.h"
#include "session/request.h"

namespace cachewire::pipeline {

class Worker {
  public:
    // running: receive and forward. draining: receive nothing, send what is held. stopped: drop what is still held and
    // return.
    enum class Phase : int { running, draining, stopped };

    using RxQueues = std::vector<RxQueue>;
    Worker(std::unique_ptr<WorkerState> state, RxQueues rx_queues, SnapshotReader reader);

    // On the worker's lcore; returns once stopped.
    void run() noexcept;
    // What run() does, for those who drive a worker themselves (benchmarks): begin(), then one iteration a call. False:
    // the phase is stopped.
    void begin() noexcept;
    bool iterate() noexcept;

    // Control thread, which is the slow path's too: once stopped is set nobody but the worker touches its queues.
    void set_phase(Phase phase) noexcept { phase_.store(phase, std::memory_order_release); }
    // Other queues to poll, from the next iteration on. Ports that are new stand in the published snapshot before, and
    // what is returned has to stay until the grace period is over.
    [[nodiscard]] std::unique_ptr<const RxQueues> set_rx_queues(RxQueues queues);
    // A step of this one at the end of each iteration, until null comes.
    void set_move(BucketMove* move) noexcept { move_.store(move, std::memory_order_release); }
    // For the slow path.
    [[nodiscard]] PuntRing& punted() noexcept { return state_->to_slow_path; }
    [[nodiscard]] ReturnRing& returns() noexcept { return state_->from_slow_path; }

    // What control asks and this worker answers.
    [[nodiscard]] session::Mailbox& mailbox() noexcept { return mailbox_; }

    // Once every worker has returned: drops what the others still had for this one.
    void drop_handed() noexcept { pipeline::drop_handed(*state_); }

    [[nodiscard]] const WorkerState& state() const noexcept { return *state_; }
    // For who calls set_rx_queues(), or keeps it from being called.
    [[nodiscard]] const RxQueues& rx_queues() const noexcept { return *owned_queues_; }

  private:
    unsigned receive(const Snapshot& snapshot, const RxQueue& queue, std::uint64_t budget) noexcept;
    unsigned receive_all(const Snapshot& snapshot, const RxQueues& queues) noexcept;
    void rest() noexcept;
    void expire_sessions(const Snapshot& snapshot, std::uint64_t now) noexcept;
    void account_iteration(std::uint64_t begin, unsigned packets) noexcept;

    std::unique_ptr<WorkerState> state_;
    std::unique_ptr<const RxQueues> owned_queues_;
    SnapshotReader reader_;
    std::uint64_t next_expiry_tsc_ = 0;
    std::uint64_t expiry_interval_ = 0;
    std::uint64_t burst_budget_ = 0;  // TSC cycles
    std::uint64_t awake_window_ = 0;  // TSC cycles
    unsigned awake_queues_ = 0;       // of the iteration before: those that have packets
    std::uint64_t last_iteration_tsc_ = 0;
    unsigned empty_iterations_ = 0;
    bool moved_ = false;
    session::Mailbox mailbox_;
    // control: rw; worker: ro
    alignas(base::kCacheLine) std::atomic<Phase> phase_{Phase::running};
    std::atomic<const RxQueues*> rx_queues_;
    std::atomic<BucketMove*> move_{nullptr};
};

}  // namespace cachewire::pipeline
