#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What telemetry and the control socket say about the memo, and the alarm: a shadow check that differs is a fault of
// cachewire, so it is logged at once and stays visible.
#include <cstdint>
#include <vector>

#include "control/workers.h"
#include "telemetry/endpoints.h"

namespace cachewire::control {

class Runtime;

// Tells new mismatches from those already logged. Under the runtime's lock.
class MemoWatch {
  public:
    void look(const Workers& workers);

  private:
    std::vector<std::uint64_t> logged_;  // by worker
};

// The handler keeps `runtime` and must be gone before it is.
void add_memo_endpoints(telemetry::Endpoints& endpoints, Runtime& runtime);

}  // namespace cachewire::control
