#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// How much a worker takes from one receive queue before the others have their turn. A worker that polls several queues
// lets the packets of all others wait while it works on a burst, so a queue that is flooded gives smaller ones: where
// most of a full burst was refused or new, or it took longer than the budget, the next one is half as long, otherwise
// twice, up to the configured burst. Such a queue is served more slowly for it, so nothing of this while no other queue
// has packets: bench noisy.
#include <algorithm>
#include <cstdint>

#include "pipeline/burst.h"

namespace cachewire::pipeline {

class QueueShare {
  public:
    static constexpr unsigned kLeast = 4;  // below that a burst's fixed costs are more than its packets'
    // A burst of 32 memo hits takes 1.5 to 3 us, one of new sessions through 10 000 rules about 10 us.
    static constexpr std::uint64_t kBudgetsPerSecond = 250000;

    [[nodiscard]] unsigned limit() const noexcept { return limit_; }
    // Of a burst that was as long as it might be. `refused`: packets that were dropped, or began or wanted a session.
    void adapt(unsigned packets, std::uint64_t refused, std::uint64_t cycles, std::uint64_t budget) noexcept {
        const bool flooded = 2 * refused > packets || cycles > budget;
        limit_ = static_cast<std::uint8_t>(flooded ? std::max(packets / 2, kLeast) : std::min(2 * packets, kMaxLanes));
    }

    void note_packets(std::uint64_t now_tsc) noexcept { last_packets_tsc_ = now_tsc; }
    // Whether it had packets within the last `window` cycles.
    [[nodiscard]] bool is_awake(std::uint64_t now_tsc, std::uint64_t window) const noexcept {
        return now_tsc - last_packets_tsc_ < window;
    }

  private:
    std::uint64_t last_packets_tsc_ = 0;
    std::uint8_t limit_ = kMaxLanes;
};

}  // namespace cachewire::pipeline
