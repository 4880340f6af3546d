// SPDX-License-Identifier: BSD-3-Clause
#include "control/workers.h"

#include <rte_launch.h>
#include <rte_lcore.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "control/registry.h"

namespace cachewire::control {

namespace {

// A datagram's pieces arrive within milliseconds, and ids are used again soon (RFC 4963).
constexpr std::size_t kFragmentEntries = 4096;
constexpr std::uint64_t kFragmentSeconds = 5;

int worker_main(void* worker) {
    static_cast<pipeline::Worker*>(worker)->run();
    return 0;
}

int scheduler_main(void* worker) {
    static_cast<pipeline::SchedulerWorker*>(worker)->run();
    return 0;
}

}  // namespace

KernelMeters make_kernel_meters() { return KernelMeters(new pipeline::TenantKernelMeters[pipeline::kMaxTenants]); }

std::unique_ptr<pipeline::WorkerState> make_worker_state(unsigned lcore, std::uint32_t session_capacity,
                                                         std::shared_ptr<session::SharedQuotas> quotas,
                                                         qos::SharedBuckets* policers, KernelMeters kernel_meters) {
    auto state = std::make_unique<pipeline::WorkerState>();
    state->lcore = lcore;
    state->socket = static_cast<int>(rte_lcore_to_socket_id(lcore));
    state->sessions = std::make_unique<session::Table>(session_capacity, state->socket, base::tsc_hz(),
                                                       session::Timeouts{}, std::move(quotas));
    state->sessions->count_rules_in(&state->rules);
    state->fragments = session::FragmentTable(kFragmentEntries, kFragmentSeconds * base::tsc_hz());
    for (std::size_t i = 0; i < pipeline::kFirstKernelClass; ++i)
        state->punt_intervals[i] = base::tsc_hz() / pipeline::kPuntRates[i].per_second;
    state->kernel_meters = kernel_meters != nullptr ? std::move(kernel_meters) : make_kernel_meters();
    state->policers = qos::Policers(kMaxPolicers);
    state->policers.shared = policers;
    state->tenants = std::vector<pipeline::TenantCounters>(pipeline::kMaxTenants);
    return state;
}

Workers::~Workers() {
    if (launched_) drain_and_join(0);
}

void Workers::add(std::unique_ptr<pipeline::WorkerState> state, std::vector<pipeline::RxQueue> queues,
                  Publisher& publisher) {
    state->index = static_cast<unsigned>(workers_.size());
    states_.push_back(state.get());
    workers_.push_back(std::make_unique<pipeline::Worker>(std::move(state), std::move(queues), publisher.add_worker()));
}

void Workers::connect(std::span<const PortQueues> ports, const pipeline::Owners& owners) {
    mesh_.connect(states_, ports, owners);
}

void Workers::add_scheduler(const config::Config& config, const Registry& registry, unsigned lcore,
                            Publisher& publisher) {
    scheduler_ = std::make_unique<SchedulerLcore>(config, registry, lcore, publisher.add_worker(), states_);
}

std::vector<Workers::Beat> Workers::beats() const {
    std::vector<Beat> result;
    for (const auto& worker : workers_)
        result.push_back({worker->state().lcore, worker->state().loop.iterations.read()});
    if (scheduler_) result.push_back({scheduler_->worker().lcore(), scheduler_->worker().iterations()});
    return result;
}

void Workers::launch() {
    launched_ = true;  // first, so that the ones which run are joined when a later one can't be launched
    for (const auto& worker : workers_)
        base::check(rte_eal_remote_launch(worker_main, worker.get(), worker->state().lcore), "rte_eal_remote_launch");
    if (scheduler_)
        base::check(rte_eal_remote_launch(scheduler_main, &scheduler_->worker(), scheduler_->worker().lcore()),
                    "rte_eal_remote_launch");
}

void Workers::set_phase(pipeline::Worker::Phase phase) noexcept {
    for (const auto& worker : workers_) worker->set_phase(phase);
}

void Workers::drain_and_join(unsigned drain_ms, const std::function<void()>& serve) {
    if (!launched_) return;
    set_phase(pipeline::Worker::Phase::draining);
    // The published lines say "held" only at iteration ends, so two milliseconds pass before the first look.
    for (unsigned waited = 0; waited < drain_ms; ++waited) {
        usleep(1000);
        if (serve) serve();
        if (waited >= 2 && ledger_sum(*this).held == 0) break;
    }
    set_phase(pipeline::Worker::Phase::stopped);
    for (const auto& worker : workers_) rte_eal_wait_lcore(worker->state().lcore);
    for (const auto& worker : workers_) worker->drop_handed();
    if (scheduler_) {
        scheduler_->worker().stop();
        rte_eal_wait_lcore(scheduler_->worker().lcore());
    }
    launched_ = false;
}

pipeline::LedgerLine ledger_sum(const Workers& workers) {
    std::vector<pipeline::LedgerLine> lines;
    for (const auto& worker : workers.all()) lines.push_back(worker->state().published_ledger.read());
    if (workers.scheduler() != nullptr) lines.push_back(workers.scheduler()->published_ledger());
    return sum_of(lines);
}

pipeline::LedgerLine sum_of(std::span<const pipeline::LedgerLine> lines) {
    pipeline::LedgerLine sum;
    for (const pipeline::LedgerLine& line : lines) {
        sum.rx += line.rx;
        sum.tx += line.tx;
        sum.dropped += line.dropped;
        sum.punted += line.punted;
        sum.consumed += line.consumed;
        sum.originated += line.originated;
        sum.held += line.held;
    }
    // A line that was read later may already lack a packet from a ring which the one before doesn't count yet. Whoever
    // took it, it had been received.
    if (const auto held = static_cast<std::int64_t>(sum.held); held < 0) {
        sum.rx += static_cast<std::uint64_t>(-held);
        sum.held = 0;
    }
    return sum;
}

std::uint64_t unaccounted(const pipeline::LedgerLine& l) noexcept {
    return l.rx + l.originated - l.tx - l.dropped - l.punted - l.consumed - l.held;
}

}  // namespace cachewire::control
