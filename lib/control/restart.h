#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What a reload can't apply, and which ports it brings and takes away.
#include <cstddef>
#include <string>
#include <vector>

#include "config/config.h"

namespace cachewire::control {

// A key that differs and is fixed from start to end of a process, or until something else was done, and why.
struct Obstacle {
    std::string key;
    std::string why;
};

// Empty when `next` can be reloaded.
std::vector<Obstacle> obstacles(const config::Config& running, const config::Config& next);

// "key: why; key: why"
std::string to_string(const std::vector<Obstacle>& obstacles);

// Of what can be reloaded. A port that gets another device is in both lists.
struct PortPlan {
    std::vector<std::size_t> added;    // in next.ports
    std::vector<std::string> removed;  // names in running
};
PortPlan plan_ports(const config::Config& running, const config::Config& next);

}  // namespace cachewire::control
