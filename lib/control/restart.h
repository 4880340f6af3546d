#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Which changed keys a reload can't apply.
#include <string>
#include <vector>

#include "config/config.h"

namespace cachewire::control {

// Key paths of what differs and is fixed from start to end of a process; empty when `next` can be reloaded.
std::vector<std::string> needs_restart(const config::Config& running, const config::Config& next);

}  // namespace cachewire::control
