#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A load's outcome for programs: `cachewire check --json` and the control socket's `reload` answer with the same
// object.

#include "base/json.h"
#include "config/load.h"

namespace cachewire::config {

// {"severity": "error", "file": ..., "line": 3, "column": 5, "key": "ports[0].mtu", "message": ...}
nlohmann::ordered_json to_json(const Diagnostic& diagnostic);
nlohmann::ordered_json to_json(const std::vector<Diagnostic>& diagnostics);

}  // namespace cachewire::config
