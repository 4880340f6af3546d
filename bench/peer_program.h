#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A program with its children, in a process group of its own; ended with this object.
#include <cstdint>
#include <string>

#include <sys/types.h>

namespace cachewire::bench {

class PeerProgram {
  public:
    // Its output goes to `folder`/log and its temporary files to `folder`.
    PeerProgram(const std::string& command, const std::string& folder);
    ~PeerProgram();
    PeerProgram(const PeerProgram&) = delete;
    PeerProgram& operator=(const PeerProgram&) = delete;

    [[nodiscard]] bool has_ended();
    [[nodiscard]] std::string last_words() const;
    // How long the thread that has run longest was on a CPU, in ns: the one that forwards, as it never sleeps.
    [[nodiscard]] std::uint64_t busiest_thread_ns() const;

  private:
    pid_t pid_;
    std::string log_;
    bool ended_ = false;
};

}  // namespace cachewire::bench
