#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// `cachewire plan FILE [--topology X.xml] [--json]`: which CPUs the lcores should run on, for this machine or any other; and
// at start, what the arrangement that was asked for costs.
#include <string>
#include <vector>

#include "config/config.h"

namespace cachewire::app {

struct PlanArguments {
    std::string file;
    std::string topology;  // empty: this machine
    bool json = false;
};

// A picture and the EAL arguments on stdout. Returns the exit status: 1 when `workers.placement: strict` can't be had.
int run_plan(const PlanArguments& arguments);

// After EAL's start. `placement: warn` says what the chosen lcores cost, `strict` throws base::Error (configuration).
void judge_placement(const config::Config& config, unsigned main, const std::vector<unsigned>& workers);

}  // namespace cachewire::app
