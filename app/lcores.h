#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Which of EAL's lcores become workers. The main lcore runs the control loop and never forwards.
#include <string>
#include <vector>

namespace cachewire::app {

struct Lcores {
    unsigned main;
    std::vector<unsigned> others;
};

// What EAL has, after rte_eal_init.
Lcores eal_lcores();

// `configured`: the file's `workers: lcores`, empty for auto. Throws base::Error, status configuration, that names the
// argument to change.
std::vector<unsigned> choose_workers(const Lcores& lcores, const std::vector<unsigned>& configured);

}  // namespace cachewire::app
