#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A whole run: configuration, EAL, ports, workers, control loop. Returns the exit status; throws base::Error.
#include "app/arguments.h"

namespace cachewire::app {

int run(const RunArguments& arguments);

}  // namespace cachewire::app
