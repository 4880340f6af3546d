#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What DPDK says of lcores (/eal/lcore/usage, rte_lcore_dump) from the workers' own counters. DPDK asks for them from
// 23.03 on; before that nothing is registered.
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pipeline/worker.h"

namespace cachewire::control {

struct LcoreUsage {
    std::uint64_t busy_cycles, total_cycles;
};

// nullopt: no worker runs there.
std::optional<LcoreUsage> usage_of(const std::vector<std::unique_ptr<pipeline::Worker>>& workers, unsigned lcore);

// Answers DPDK while it lives. One at a time; `workers` outlive it.
class LcoreUsageAnswers {
  public:
    explicit LcoreUsageAnswers(const std::vector<std::unique_ptr<pipeline::Worker>>& workers);
    ~LcoreUsageAnswers();
    LcoreUsageAnswers(const LcoreUsageAnswers&) = delete;
    LcoreUsageAnswers& operator=(const LcoreUsageAnswers&) = delete;
};

}  // namespace cachewire::control
