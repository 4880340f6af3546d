#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Publishes snapshots to workers and frees old ones after the grace period. Control thread only; workers hold a
// SnapshotReader. Never blocks: at most kMaxWaiting old snapshots wait, and while that many do can_publish() is false.
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "pipeline/snapshot_reader.h"

namespace cachewire::control {

class Publisher {
  public:
    static constexpr std::size_t kMaxWaiting = 8;

    explicit Publisher(unsigned max_workers);
    ~Publisher();
    Publisher(const Publisher&) = delete;
    Publisher& operator=(const Publisher&) = delete;

    // One for each worker, before it runs.
    pipeline::SnapshotReader add_worker();

    [[nodiscard]] bool can_publish() const noexcept { return waiting_.size() < kMaxWaiting; }
    // `after_grace` runs in reap() once no worker can see the snapshot that this one replaces.
    void publish(std::unique_ptr<const pipeline::Snapshot> snapshot, std::function<void()> after_grace = {});
    // For what workers reach by another pointer than the snapshot's, once they have been given another: reap() is 0
    // when each has come round since, and `after_grace` runs in the one that sees it.
    void start_grace_period(std::function<void()> after_grace = {});
    // Frees what no worker can see any more; returns how many grace periods are not over.
    std::size_t reap();
    [[nodiscard]] const pipeline::Snapshot* current() const noexcept {
        return current_.load(std::memory_order_relaxed);
    }

  private:
    struct Waiting {
        std::unique_ptr<const pipeline::Snapshot> snapshot;  // null: start_grace_period's
        std::uint64_t token;
        std::function<void()> after_grace;
    };
    struct QsbrDelete {
        void operator()(rte_rcu_qsbr* qsbr) const noexcept { std::free(qsbr); }
    };

    std::unique_ptr<rte_rcu_qsbr, QsbrDelete> qsbr_;
    unsigned workers_ = 0;
    std::unique_ptr<const pipeline::Snapshot> owned_;
    std::atomic<const pipeline::Snapshot*> current_{nullptr};
    std::deque<Waiting> waiting_;
};

}  // namespace cachewire::control
