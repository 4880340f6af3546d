#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What telemetry and cwctl see of the slow path: neighbors, and what was punted, answered and refused.
#include "control/control_socket.h"
#include "telemetry/endpoints.h"

namespace cachewire::control {

class Runtime;

// The handlers keep `runtime` and must be gone before it is.
void add_neighbor_endpoints(telemetry::Endpoints& endpoints, Runtime& runtime);
void add_neighbor_commands(ControlSocket& socket, Runtime& runtime);

}  // namespace cachewire::control
