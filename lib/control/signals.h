#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// SIGINT, SIGTERM and SIGHUP as a file descriptor for the control loop's poll(). They have to be blocked before EAL
// starts its threads, which inherit the mask; so main blocks them first and makes this object later.
#include <optional>

namespace cachewire::control {

class Signals {
  public:
    static void block();

    Signals();
    ~Signals();
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

    [[nodiscard]] int fd() const noexcept { return fd_; }
    // The next signal's number, without blocking.
    std::optional<int> next();

  private:
    int fd_;
};

}  // namespace cachewire::control
