#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What telemetry and the control socket say about sessions. Counts are read from the workers' counters; sessions
// themselves are asked for (session_requests.h).
#include <cstdint>
#include <optional>
#include <vector>

#include "control/control_socket.h"
#include "control/workers.h"
#include "telemetry/endpoints.h"

namespace cachewire::control {

class Runtime;

// How fast the number of sessions grows, by tenant slot and in all: sampled by the control loop, smoothed over about
// ten seconds. Under the runtime's lock.
class SessionGrowth {
  public:
    // More often than once a second does nothing.
    void sample(const Workers& workers, std::size_t tenants, double now_s);
    // Seconds until `room` more sessions are there; nullopt: they don't get more.
    [[nodiscard]] std::optional<std::uint64_t> time_to_full_s(std::optional<std::size_t> tenant,
                                                              std::uint64_t room) const;

  private:
    struct Series {
        double active = 0, per_second = 0;
        bool known = false;
        void add(double now_active, double passed_s);
    };
    Series all_;
    std::vector<Series> tenants_;
    double last_s_ = -1;
};

// The handlers keep `runtime` and must be gone before it is.
void add_session_endpoints(telemetry::Endpoints& endpoints, Runtime& runtime);
// sessions_kill.
void add_session_commands(ControlSocket& socket, Runtime& runtime);

}  // namespace cachewire::control
