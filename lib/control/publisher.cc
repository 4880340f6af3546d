// SPDX-License-Identifier: BSD-3-Clause
#include "control/publisher.h"

#include <cstdlib>
#include <stdexcept>

#include "base/cache_line.h"
#include "base/error.h"

namespace cachewire::control {

Publisher::Publisher(unsigned max_workers) {
    const std::size_t size = rte_rcu_qsbr_get_memsize(max_workers);
    const std::size_t rounded = (size + base::kCacheLine - 1) / base::kCacheLine * base::kCacheLine;
    qsbr_.reset(static_cast<rte_rcu_qsbr*>(std::aligned_alloc(base::kCacheLine, rounded)));
    if (qsbr_ == nullptr) throw base::MachineError("no memory for the workers' grace period counters");
    base::check(-rte_rcu_qsbr_init(qsbr_.get(), max_workers), "rte_rcu_qsbr_init");
}

Publisher::~Publisher() = default;

pipeline::SnapshotReader Publisher::add_worker() {
    const unsigned id = workers_++;
    if (rte_rcu_qsbr_thread_register(qsbr_.get(), id) != 0)
        throw base::MachineError("more workers than the publisher was made for");
    return {current_, qsbr_.get(), id};
}

void Publisher::publish(std::unique_ptr<const pipeline::Snapshot> snapshot, std::function<void()> after_grace) {
    if (!can_publish()) throw std::logic_error("publish while can_publish() is false");
    current_.store(snapshot.get(), std::memory_order_release);
    // The token is taken after the store: a worker that reports it has loaded the pointer anew.
    waiting_.push_back({std::move(owned_), rte_rcu_qsbr_start(qsbr_.get()), std::move(after_grace)});
    owned_ = std::move(snapshot);
}

void Publisher::start_grace_period(std::function<void()> after_grace) {
    waiting_.push_back({nullptr, rte_rcu_qsbr_start(qsbr_.get()), std::move(after_grace)});
}

std::size_t Publisher::reap() {
    while (!waiting_.empty() && rte_rcu_qsbr_check(qsbr_.get(), waiting_.front().token, false) == 1) {
        auto after_grace = std::move(waiting_.front().after_grace);
        waiting_.pop_front();
        if (after_grace) after_grace();
    }
    return waiting_.size();
}

}  // namespace cachewire::control
