#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The socket for what changes anything: a UNIX stream socket, mode 0660, beside DPDK's telemetry socket in
// <runtime dir>/<file prefix>/cachewire_control. One JSON object a line in, one a line out:
//   {"command": "reload", "dry_run": true}   ->   {"ok": true, ...} or {"ok": false, "error": "...", "diagnostics":
//   [...]}
// Served by the control thread from its poll loop, so commands never run beside each other. Slow or idle clients cost a
// file descriptor and nothing else: reads and writes never block, lines over 64 KiB are refused, at the 33rd client the
// one that was silent for longest is told and closed, one command of each client is run a turn.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <poll.h>

#include "base/json.h"

namespace cachewire::control {

class ControlSocket {
  public:
    using Json = nlohmann::ordered_json;
    using Command = std::function<Json(const Json& request)>;

    // Takes the place of a dead socket, never of a live one (base::MachineError).
    explicit ControlSocket(std::string path);
    ~ControlSocket();
    ControlSocket(const ControlSocket&) = delete;
    ControlSocket& operator=(const ControlSocket&) = delete;

    void add(const std::string& command, Command handler);

    // For the owner's poll(): appends the descriptors to wait for; then handles what poll() reported in them.
    void append_poll(std::vector<pollfd>& fds) const;
    void handle(const std::vector<pollfd>& fds);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace cachewire::control
