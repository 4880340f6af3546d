#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What telemetry says about routes: how many, from where and at what cost; and where an address would go.
#include "telemetry/endpoints.h"

namespace cachewire::control {

class Runtime;

void add_route_endpoints(telemetry::Endpoints& endpoints, Runtime& runtime);

}  // namespace cachewire::control
