// SPDX-License-Identifier: BSD-3-Clause
#include "control/lcore_usage.h"

#include <cerrno>
#include <mutex>

#include <rte_lcore.h>

#include "base/dpdk_compat.h"

namespace cachewire::control {

namespace {

// The callback has no argument of ours, and DPDK may call the last one for a while after it was taken back.
std::mutex usage_mutex;
const std::vector<std::unique_ptr<pipeline::Worker>>* usage_workers = nullptr;

[[maybe_unused]] int answer_usage(unsigned lcore, std::uint64_t& busy, std::uint64_t& total) {
    const std::lock_guard lock(usage_mutex);
    const auto usage = usage_workers != nullptr ? usage_of(*usage_workers, lcore) : std::nullopt;
    if (!usage) return -ENODEV;
    busy = usage->busy_cycles;
    total = usage->total_cycles;
    return 0;
}

void answer_for(const std::vector<std::unique_ptr<pipeline::Worker>>* workers) {
    const std::lock_guard lock(usage_mutex);
    usage_workers = workers;
}

}  // namespace

std::optional<LcoreUsage> usage_of(const std::vector<std::unique_ptr<pipeline::Worker>>& workers, unsigned lcore) {
    for (const auto& worker : workers)
        if (worker->state().lcore == lcore)
            return LcoreUsage{worker->state().loop.busy_cycles.read(), worker->state().loop.total_cycles.read()};
    return std::nullopt;
}

LcoreUsageAnswers::LcoreUsageAnswers(const std::vector<std::unique_ptr<pipeline::Worker>>& workers) {
    answer_for(&workers);
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
    rte_lcore_register_usage_cb([](unsigned lcore, rte_lcore_usage* usage) {
        std::uint64_t busy = 0, total = 0;
        const int rc = answer_usage(lcore, busy, total);
        usage->busy_cycles = busy;
        usage->total_cycles = total;
        return rc;
    });
#endif
}

LcoreUsageAnswers::~LcoreUsageAnswers() {
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
    rte_lcore_register_usage_cb(nullptr);
#endif
    answer_for(nullptr);
}

}  // namespace cachewire::control
