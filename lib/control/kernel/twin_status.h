#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What telemetry sees of the kernel's twins.
#include "telemetry/endpoints.h"

namespace cachewire::control {

class Runtime;

// The handlers keep `runtime` and must be gone before it is.
void add_twin_endpoints(telemetry::Endpoints& endpoints, Runtime& runtime);

}  // namespace cachewire::control
