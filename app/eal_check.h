#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What a start would refuse of a file that the loader takes: EAL's options, how they go together with the ports'
// devices, and whether the workers' lcores are among EAL's. As far as the file alone says: the command line may say
// more.
#include <vector>

#include "config/config.h"
#include "config/load.h"

namespace cachewire::app {

std::vector<config::Diagnostic> check_eal(const config::Config& config);

}  // namespace cachewire::app
