#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Moves buckets of the owner table, with their sessions, from one worker to another (pipeline/bucket_move.h): the
// control side, which says when the next step may begin. Control thread; nothing here waits.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "control/publisher.h"
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

    // `publisher`: the one that the workers read from, and that outlives this.
    BucketMover(const Workers& workers, Publisher& publisher) : workers_(workers), publisher_(publisher) {}

    // False: not yet, some worker may still look at the last one. Asks the publisher, so that what waits for a grace
    // period may run in here.
    bool start(const pipeline::BucketSet& buckets, unsigned from, unsigned to);
    // True: nothing is going on (any more).
    bool step();
    [[nodiscard]] bool busy() const noexcept { return busy_; }
    // Packets wait for the next step.
    [[nodiscard]] bool parks() const noexcept {
        return busy_ && move_->stage.load(std::memory_order_relaxed) == Stage::park;
    }
    [[nodiscard]] const Report& last() const noexcept { return report_; }
    // "the worker on lcore 3", of those that have not done what the step wants.
    [[nodiscard]] std::string waits_for() const;

  private:
    using Stage = pipeline::BucketMove::Stage;
    void tell(Stage stage) noexcept;
    void end(bool moved);
    [[nodiscard]] bool is_done(unsigned worker) const noexcept;
    [[nodiscard]] bool has_room() const noexcept;

    const Workers& workers_;
    Publisher& publisher_;
    std::unique_ptr<pipeline::BucketMove> move_;  // until no worker can look at it any more
    bool busy_ = false;
    Report report_;
};

}  // namespace cachewire::control
