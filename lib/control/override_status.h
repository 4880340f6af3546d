#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What telemetry and the control socket say about overrides: /cachewire/override/list; memoize, block, unblock and
// log_level.
#include "control/control_socket.h"
#include "control/runtime.h"
#include "telemetry/endpoints.h"

namespace cachewire::control {

// How many there are.
std::uint64_t overrides_in_force(const Runtime::View& view);

// The handlers keep `runtime` and must be gone before it is.
void add_override_endpoints(telemetry::Endpoints& endpoints, Runtime& runtime);
void add_override_commands(ControlSocket& socket, Runtime& runtime);

}  // namespace cachewire::control
