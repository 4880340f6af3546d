#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Notices a worker that has stopped coming round (the kernel runs something else there, a driver hangs) and says which,
// and for how long. Control thread, ten times a second.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cachewire::control {

class WorkerWatch {
  public:
    struct Beat {
        unsigned lcore;
        std::uint64_t iterations;
    };
    using Say = std::function<void(const std::string&)>;
    static constexpr std::uint64_t kStalledMs = 500;

    explicit WorkerWatch(Say say) : say_(std::move(say)) {}
    void look(const std::vector<Beat>& workers, std::uint64_t now_ms);

  private:
    struct State {
        std::uint64_t iterations = 0;
        std::uint64_t since_ms = 0;
        bool stalled = false;
    };
    Say say_;
    std::vector<State> states_;
};

}  // namespace cachewire::control
