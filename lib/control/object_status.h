#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What telemetry and the control socket say about the configured objects: interfaces, tenants, policers, and the file
// itself.
#include "control/control_socket.h"
#include "telemetry/endpoints.h"

namespace cachewire::control {

class Runtime;

// The handlers keep `runtime` and must be gone before it is.
void add_object_endpoints(telemetry::Endpoints& endpoints, Runtime& runtime);
// config: the file in force, as text. Here and not on the telemetry socket, whose answers end at 16 KiB.
void add_config_command(ControlSocket& socket, Runtime& runtime);

}  // namespace cachewire::control
