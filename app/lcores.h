#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Which of EAL's lcores become workers. The main lcore runs the control loop and never forwards.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cachewire::app {

struct Lcores {
    unsigned main;
    std::vector<unsigned> others;
};

// What `-l`, `--lcores` (lists such as "0-3,5", and places such as "(0-3)@(0-1)") or `-c` (a mask) asks EAL for,
// sorted. nullopt: it can't be told, and EAL will judge it.
std::optional<std::vector<unsigned>> lcores_in_list(std::string_view text);
std::optional<std::vector<unsigned>> lcores_in_mask(std::string_view text);

// What EAL has, after rte_eal_init.
Lcores eal_lcores();

// `configured`: the file's `workers: lcores`, empty for auto. Throws base::Error, status configuration, that names the
// argument to change.
std::vector<unsigned> choose_workers(const Lcores& lcores, const std::vector<unsigned>& configured);

// The same where ports have schedulers, which have an lcore of their own: with auto the last one, else one that the
// list leaves.
struct Jobs {
    std::vector<unsigned> workers;
    std::optional<unsigned> scheduler;
};
Jobs share_out(const Lcores& lcores, const std::vector<unsigned>& configured, bool schedules);

}  // namespace cachewire::app
