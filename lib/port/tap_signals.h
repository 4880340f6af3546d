#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// net_tap asks Linux for a real-time signal with each frame, so that an empty poll costs no system call. The signals
// wake whichever thread has not blocked them: one TCP stream took 3 s of CPU in 8 from the main lcore and EAL's
// threads, which Linux's end of the TAP could have used (946-1143 Mbit/s; 1960-2200 without, dpdk-testpmd 1285-1307).
// While one of these lives the driver finds every such signal in use and goes without: a poll is a read then, as it is
// on AF_XDP. Main thread only.
#include <array>
#include <csignal>

namespace cachewire::port {

class NoTapSignals {
  public:
    NoTapSignals() noexcept;
    ~NoTapSignals();
    NoTapSignals(const NoTapSignals&) = delete;
    NoTapSignals& operator=(const NoTapSignals&) = delete;

  private:
    std::array<bool, NSIG + 1> ours_{};  // by number
};

}  // namespace cachewire::port
