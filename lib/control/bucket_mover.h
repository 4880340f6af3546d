#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Moves buckets of the owner table, with their sessions, from one worker to another (pipeline/bucket_move.h): the
// control side, which says when the next step may begin. Control thread; nothing here waits.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/bucket_move.h"
#include "pipeline/worker.h"

namespace cachewire::control {

class BucketMover {
  public:
    using Workers = std::vector<std::unique_ptr<pipeline::Worker>>;
    struct Report {
        bool moved = false;  // false: `to` has no room for them
        std::uint32_t sessions = 0;
        std::uint32_t lost = 0;    // of these: `to` found no place after all
        std::uint32_t parked = 0;  // most packets that waited at a time
    };

    explicit BucketMover(const Workers& workers) : workers_(workers) {}

    // False: not yet, some worker may still look at the last one.
    bool start(const pipeline::BucketSet& buckets, unsigned from, unsigned to);
    // True: nothing is going on (any more).
    bool step();
    [[nodiscard]] bool busy() const noexcept { return busy_; }
    [[nodiscard]] const Report& last() const noexcept { return report_; }
    // "the worker on lcore 3", of those that have not done what the step wants.
    [[nodiscard]] std::string waits_for() const;

  private:
    using Stage = pipeline::BucketMove::Stage;
    void tell(Stage stage) noexcept;
    void end(bool moved);
    [[nodiscard]] bool is_done(unsigned worker) const noexcept;
    [[nodiscard]] bool has_room() const noexcept;
    [[nodiscard]] std::uint64_t iterations(unsigned worker) const noexcept;

    const Workers& workers_;
    std::unique_ptr<pipeline::BucketMove> move_;
    bool busy_ = false;
    Report report_;
    std::vector<std::uint64_t> released_at_;  // iterations of each worker when the last one was over
};

}  // namespace cachewire::control
