#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What the telemetry endpoints answer, computed from a Runtime. Names are the interface's.
#include "control/runtime.h"
#include "telemetry/endpoints.h"

namespace cachewire::control {

// The handlers keep `runtime` and must be gone before it is.
void add_endpoints(telemetry::Endpoints& endpoints, Runtime& runtime);

// Human text of the ledger, one line; printed at the end.
std::string ledger_text(const pipeline::LedgerLine& line);

}  // namespace cachewire::control
