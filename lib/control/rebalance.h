#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// How the packets lie over the workers, and which buckets would have to go where. The decision is a function of
// numbers; who moves them is BucketMover.
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "pipeline/bucket_move.h"
#include "pipeline/owner.h"

namespace cachewire::control {

// Packets a second that each worker takes through its sessions, over the last second. Control thread; ten looks a
// second.
class WorkerLoad {
  public:
    void look(std::uint64_t now_ms, std::vector<std::uint64_t> packets);
    // By worker; empty before the second look.
    [[nodiscard]] std::vector<double> rates() const;

  private:
    struct Sample {
        std::uint64_t at_ms;
        std::vector<std::uint64_t> packets;
    };
    std::deque<Sample> samples_;
};

// A session that is worth a look of its own.
struct HeavySession {
    unsigned bucket;
    double rate;  // packets a second
};

struct Shift {
    unsigned from, to;
    pipeline::BucketSet buckets;
    unsigned count = 0;  // of buckets
    double rate = 0;     // what moves, as far as that is known
};

// From the busiest worker to the least busy one, so that the two come closest; nullopt: they lie within a tenth of what
// each should have, or nothing that moves would help. What no heavy session accounts for is taken as spread evenly over
// the worker's buckets. `granularity`: buckets that are the same modulo it move together.
std::optional<Shift> choose_shift(std::span<const double> rates, const pipeline::Owners& owners, unsigned granularity,
                                  std::span<const HeavySession> heavy);

// So many of `from`'s buckets, whichever; nullopt: it has none.
std::optional<Shift> any_buckets(const pipeline::Owners& owners, unsigned granularity, unsigned from, unsigned to,
                                 unsigned count);

void apply(const Shift& shift, pipeline::Owners& owners) noexcept;

}  // namespace cachewire::control
