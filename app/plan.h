#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// `cachewire plan FILE [--topology X.xml] [--rate R --packet N] [--json]`: which CPUs the lcores should run on, for
// this machine or any other, and how many a rate needs; and at start, what the arrangement that was asked for costs.
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"

namespace cachewire::app {

struct PlanArguments {
    std::string file;
    std::string topology;  // empty: this machine
    // How many cores and how much memory a rate needs (sizing.h). Empty: not asked.
    std::string rate;           // "100Gbit" on the wire, or "20Mpps"
    unsigned packet_bytes = 0;  // L2 without FCS; for a rate in bits
    unsigned cycles = 0;        // a packet, as measured on the machine in question; 0: the built-in figure
    double clock_ghz = 0;       // its TSC; 0: the built-in figure's
    bool json = false;
};

// A picture and the EAL arguments on stdout. Returns the exit status: 1 when `workers.placement: strict` can't be had.
int run_plan(const PlanArguments& arguments);

// After EAL's start. `placement: warn` says what the chosen lcores cost, `strict` throws base::Error (configuration).
void judge_placement(const config::Config& config, unsigned main, const std::vector<unsigned>& workers,
                     std::optional<unsigned> scheduler);

}  // namespace cachewire::app
