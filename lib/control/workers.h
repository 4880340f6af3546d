#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The workers as the control plane handles them: made before the first packet, launched on their lcores, drained and
// joined.
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "config/config.h"
#include "control/handoff_mesh.h"
#include "control/publisher.h"
#include "control/scheduler_lcore.h"
#include "pipeline/worker.h"

namespace cachewire::control {

// By tenant slot: at what rate packets go to its twins.
using KernelMeters = std::shared_ptr<pipeline::TenantKernelMeters[]>;
KernelMeters make_kernel_meters();

// One worker's state on its socket: sessions, buckets, counters. Throws base::MachineError naming the memory needed.
// `quotas`, `policers`, `kernel_meters`: what the workers share; null: this worker is the only one. `policers` outlive
// it.
std::unique_ptr<pipeline::WorkerState> make_worker_state(unsigned lcore, std::uint32_t session_capacity,
                                                         std::shared_ptr<session::SharedQuotas> quotas = nullptr,
                                                         qos::SharedBuckets* policers = nullptr,
                                                         KernelMeters kernel_meters = nullptr);

class Workers {
  public:
    Workers() = default;
    ~Workers();  // stops and joins whatever still runs
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    void add(std::unique_ptr<pipeline::WorkerState> state, std::vector<pipeline::RxQueue> queues, Publisher& publisher);
    // After the last add(), before launch(): the rings between them.
    void connect(std::span<const PortQueues> ports, const pipeline::Owners& owners);
    // The same, for a configuration that has schedulers.
    void add_scheduler(const config::Config& config, const Registry& registry, unsigned lcore, Publisher& publisher);
    void launch();
    // Rings for a port that comes while they run; before the snapshot that has it is published.
    void add_port(const PortQueues& port) { mesh_.add_port(states_, port); }
    // Stops receiving, waits until everything held has left or `drain_ms` have passed, drops the rest by name, joins.
    // `serve` is called every millisecond meanwhile: the slow path gives back what it holds.
    void drain_and_join(unsigned drain_ms, const std::function<void()>& serve = {});

    [[nodiscard]] const std::vector<std::unique_ptr<pipeline::Worker>>& all() const noexcept { return workers_; }
    // Null: no port has one.
    [[nodiscard]] const pipeline::SchedulerWorker* scheduler() const noexcept {
        return scheduler_ ? &scheduler_->worker() : nullptr;
    }
    // Whoever takes snapshots: the workers, and the scheduler's lcore.
    struct Beat {
        unsigned lcore;
        std::uint64_t iterations;
    };
    [[nodiscard]] std::vector<Beat> beats() const;
    [[nodiscard]] const HandoffMesh& mesh() const noexcept { return mesh_; }

  private:
    void set_phase(pipeline::Worker::Phase phase) noexcept;

    std::vector<pipeline::WorkerState*> states_;  // as the workers own them
    HandoffMesh mesh_;                            // outlives the workers
    std::unique_ptr<SchedulerLcore> scheduler_;   // so does this
    std::vector<std::unique_ptr<pipeline::Worker>> workers_;
    bool launched_ = false;
};

// Sum of the workers' published lines: exact per worker at its last burst boundary.
pipeline::LedgerLine ledger_sum(const Workers& workers);
pipeline::LedgerLine sum_of(std::span<const pipeline::LedgerLine> lines);
std::uint64_t unaccounted(const pipeline::LedgerLine& line) noexcept;

}  // namespace cachewire::control
