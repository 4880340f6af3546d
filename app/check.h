#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// `cachewire check FILE [--json]`: is this file right? Needs no EAL, no port and no privileges.
#include <string>

namespace cachewire::app {

// Diagnostics on stderr and a summary on stdout; with `json` one object on stdout instead:
// {"ok": false, "file": ..., "diagnostics": [{"severity", "file", "line", "column", "key", "message"}, ...]}
// Returns the exit status: 0 right, 1 not.
int run_check(const std::string& file, bool json);

}  // namespace cachewire::app
