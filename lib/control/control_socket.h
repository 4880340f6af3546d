#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The socket for what changes anything: a UNIX stream socket, mode 0660, beside DPDK's telemetry socket in
// <runtime dir>/<file prefix>/cachewire_control. One JSON object a line in, one a line out:
//   {"command": "reload", "dry_run": true}   ->   {"ok": true, ...} or {"ok": false, "error": "...", "diagnostics":
//   [...]}
// Served by the control thread from its poll loop, so commands never run beside each other; one that takes several
// turns of it (add_long) keeps its own client waiting and no other. Slow or idle clients cost a file descriptor and
// nothing else: reads and writes never block, lines over 64 KiB are refused, at the 33rd client the one that was silent
// for longest is told and closed, one command of each client is run a turn.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>

#include "base/json.h"

namespace cachewire::control {

class ControlSocket {
  public:
    using Json = nlohmann::ordered_json;
    using Command = std::function<Json(const Json& request)>;
    // An answer that is perhaps not there yet: asked for each turn, until there is one.
    using Pending = std::function<std::optional<Json>()>;
    using LongCommand = std::function<Pending(const Json& request)>;

    // Takes the place of a dead socket, never of a live one (base::MachineError).
    explicit ControlSocket(std::string path);
    ~ControlSocket();
    ControlSocket(const ControlSocket&) = delete;
    ControlSocket& operator=(const ControlSocket&) = delete;

    void add(const std::string& command, Command handler);
    void add_long(const std::string& command, LongCommand handler);

    // For the owner's poll(): appends the descriptors to wait for; then handles what poll() reported in them, and looks
    // after answers that take several turns.
    void append_poll(std::vector<pollfd>& fds) const;
    void handle(const std::vector<pollfd>& fds);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace cachewire::control
