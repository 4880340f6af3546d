#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The two sockets of a running cachewire, from a client's side: DPDK's telemetry socket for questions, the control
// socket for what changes anything. No EAL. Every call ends: by an answer, by a limit of time, or when `cancel_fd`
// becomes readable.
#include <stdexcept>
#include <string>
#include <vector>

#include "base/json.h"

namespace cachewire::client {

using Json = nlohmann::ordered_json;

// Nobody there: the text names the socket that was looked for, and the prefixes that do run. Exit status 3.
struct NotRunning : std::runtime_error {
    using std::runtime_error::runtime_error;
};
// The other side said no. Exit status 1.
struct Refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};
// This cachewire has no such endpoint or command. Exit status 2.
struct NotSupported : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Where EAL puts its sockets: $RUNTIME_DIRECTORY, /var/run for root, $XDG_RUNTIME_DIR, /tmp; then dpdk/PREFIX.
std::string runtime_dir(const std::string& file_prefix);
std::string telemetry_path(const std::string& file_prefix);
std::string control_path(const std::string& file_prefix);

// Prefixes on whose telemetry socket somebody listens: killed processes leave theirs behind.
std::vector<std::string> running_prefixes();

class Connection {
  public:
    // `type` is SOCK_SEQPACKET or SOCK_STREAM.
    Connection(const std::string& path, int type, int cancel_fd);
    ~Connection();
    Connection(Connection&& other) noexcept;
    Connection& operator=(Connection&&) = delete;

    void send(const std::string& bytes) const;
    // At most `capacity` bytes: one packet, or what a stream has. Empty: the other side closed.
    [[nodiscard]] std::string receive(std::size_t capacity, int timeout_s) const;

  private:
    int fd_;
    int cancel_fd_;
    std::string path_;
};

class TelemetryClient {
  public:
    explicit TelemetryClient(const std::string& path, int cancel_fd = -1);

    // The answer's value. Throws NotSupported where the endpoint does not exist, Refused for {"error": ...}.
    Json query(const std::string& endpoint, const std::string& parameters = "");
    // Every page of a list, merged, without "next". `selector` is what stands before CURSOR,N: a tenant, a list's name,
    // or nothing.
    Json query_list(const std::string& endpoint, const std::string& selector = "");

  private:
    Connection connection_;
    std::size_t max_output_bytes_ = 16384;
};

class ControlClient {
  public:
    explicit ControlClient(const std::string& path, int cancel_fd = -1);

    // One request, one answer; {"ok": false} is an answer.
    Json call(const Json& request);

  private:
    Connection connection_;
    std::string input_;
};

}  // namespace cachewire::client
