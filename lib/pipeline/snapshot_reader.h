#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A worker's end of the publication: takes the current snapshot once per iteration and reports quiescent at its end.
// Between the two the snapshot can't be freed. The other end is control::Publisher.
//
// take() is an acquire load that pairs with the publisher's release store, so whatever the snapshot points to is seen
// whole. quiescent() of rte_rcu_qsbr has a release fence: no read of the old snapshot moves past it.
#include <atomic>

#include <rte_rcu_qsbr.h>

#include "pipeline/snapshot.h"

namespace cachewire::pipeline {

class SnapshotReader {
  public:
    SnapshotReader(const std::atomic<const Snapshot*>& current, rte_rcu_qsbr* qsbr, unsigned thread_id) noexcept
        : current_(&current), qsbr_(qsbr), thread_id_(thread_id) {}

    void online() const noexcept { rte_rcu_qsbr_thread_online(qsbr_, thread_id_); }
    void offline() const noexcept { rte_rcu_qsbr_thread_offline(qsbr_, thread_id_); }
    [[nodiscard]] const Snapshot& take() const noexcept { return *current_->load(std::memory_order_acquire); }
    void quiescent() const noexcept { rte_rcu_qsbr_quiescent(qsbr_, thread_id_); }

  private:
    const std::atomic<const Snapshot*>* current_;
    rte_rcu_qsbr* qsbr_;
    unsigned thread_id_;
};

}  // namespace cachewire::pipeline
