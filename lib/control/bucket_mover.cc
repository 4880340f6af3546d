// SPDX-License-Identifier: BSD-3-Clause
#include "control/bucket_mover.h"

#include <cassert>

#include <fmt/format.h>

namespace cachewire::control {

bool BucketMover::start(const pipeline::BucketSet& buckets, unsigned from, unsigned to) {
    assert(!busy_ && from != to && from < workers_.size() && to < workers_.size());
    if (move_ != nullptr) publisher_.reap();
    if (move_ != nullptr) return false;
    const auto capacity = static_cast<std::uint32_t>(workers_[from]->state().sessions->stats().capacity);
    move_ = std::make_unique<pipeline::BucketMove>(static_cast<unsigned>(workers_.size()), capacity);
    move_->buckets = buckets;
    move_->from = from;
    move_->to = to;
    busy_ = true;
    tell(Stage::mark);
    for (const auto& worker : workers_) worker->set_move(move_.get());
    return true;
}

void BucketMover::tell(Stage stage) noexcept { move_->stage.store(stage, std::memory_order_release); }

// What the step that was told last wants of this worker.
bool BucketMover::is_done(unsigned worker) const noexcept {
    const pipeline::BucketMove::Progress& theirs = move_->progress[worker];
    const bool from = worker == move_->from, to = worker == move_->to;
    switch (const Stage stage = move_->stage.load(std::memory_order_relaxed)) {
        case Stage::none:
            return true;
        case Stage::mark:
        case Stage::give_up:
            return !from || theirs.done.load(std::memory_order_acquire) == stage;
        case Stage::park:
            return !to || theirs.done.load(std::memory_order_acquire) == stage;
        case Stage::pass:
            return from || to ? theirs.finished.load(std::memory_order_acquire)
                              : theirs.done.load(std::memory_order_acquire) == stage;
    }
    return true;
}

bool BucketMover::has_room() const noexcept {
    const session::Table::Stats there = workers_[move_->to]->state().sessions->stats();
    const std::uint64_t comes = move_->progress[move_->from].sessions.load(std::memory_order_relaxed);
    return there.active + there.companions + comes <= there.capacity;
}

bool BucketMover::step() {
    if (!busy_) return true;
    for (unsigned w = 0; w < workers_.size(); ++w)
        if (!is_done(w)) return false;
    switch (move_->stage.load(std::memory_order_relaxed)) {
        case Stage::mark:
            tell(has_room() ? Stage::park : Stage::give_up);
            return false;
        case Stage::park:
            tell(Stage::pass);
            return false;
        case Stage::pass:
            end(true);
            return true;
        default:
            end(false);
            return true;
    }
}

void BucketMover::end(bool moved) {
    report_.moved = moved;
    report_.sessions = move_->progress[move_->from].sessions.load(std::memory_order_relaxed);
    report_.lost = move_->progress[move_->to].lost.load(std::memory_order_relaxed);
    report_.parked = move_->progress[move_->to].parked.load(std::memory_order_relaxed);
    for (const auto& worker : workers_) worker->set_move(nullptr);
    publisher_.start_grace_period([this] { move_.reset(); });
    busy_ = false;
}

std::string BucketMover::waits_for() const {
    std::string names;
    if (busy_)
        for (unsigned w = 0; w < workers_.size(); ++w)
            if (!is_done(w)) names += fmt::format("{}{}", names.empty() ? "" : ", ", workers_[w]->state().lcore);
    return names.empty() ? "nobody" : "the worker on lcore " + names;
}

}  // namespace cachewire::control
