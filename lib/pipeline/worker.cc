// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/worker.h"

#include <algorithm>

#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"
#include "pipeline/bucket_move.h"
#include "pipeline/expiry.h"
#include "pipeline/receive.h"
#include "pipeline/returns.h"
#include "pipeline/tx_flush.h"

namespace cachewire::pipeline {

namespace {

// Expiry looks at a few entries often: a table of up to 16 million is walked in about 3 s, and no call takes longer
// than a burst.
constexpr unsigned kExpiryPerSecond = 20000;
constexpr unsigned kExpirySteps = 65536;  // a round, where that gives a call no more and no less than
constexpr unsigned kExpiryLeast = 16;
constexpr unsigned kExpiryMost = 256;

// A queue that had no packet for a tenth of a second waits for nobody.
constexpr unsigned kAwakePerSecond = 10;

// `idle: adaptive`. So many empty iterations before the first sleep (about 0.1 ms); then sleeps that grow. The longest
// leaves half of 1024 descriptors free when 64-byte frames begin to come at 10 Gbit/s meanwhile.
constexpr unsigned kRestAfter = 2000;
constexpr unsigned kRestsEach = 16;
constexpr long kRestLeastNs = 4000;
constexpr unsigned kRestDoublings = 3;

}  // namespace

Worker::Worker(std::unique_ptr<WorkerState> state, RxQueues rx_queues, SnapshotReader reader)
    : state_(std::move(state)),
      owned_queues_(std::make_unique<const RxQueues>(std::move(rx_queues))),
      reader_(reader),
      expiry_interval_(base::tsc_hz() / kExpiryPerSecond),
      // Twice what a burst should take: one of hits takes that long where a flood keeps its sessions out of the caches.
      burst_budget_(2 * base::tsc_hz() / QueueShare::kBudgetsPerSecond),
      awake_window_(base::tsc_hz() / kAwakePerSecond),
      rx_queues_(owned_queues_.get()) {}

std::unique_ptr<const Worker::RxQueues> Worker::set_rx_queues(RxQueues queues) {
    auto next = std::make_unique<const RxQueues>(std::move(queues));
    rx_queues_.store(next.get(), std::memory_order_release);
    owned_queues_.swap(next);
    return next;
}

void Worker::run() noexcept {
    begin();
    if (state_->adaptive_idle) prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);  // this thread's: the default is 50 us
    while (iterate())
        if (state_->adaptive_idle) rest();
    for (std::uint16_t port = 0; port < kMaxPorts; ++port) drop_held(*state_, port, DropReason::shutdown);
    drop_parked(*state_);
    drop_punted(*state_);
    publish_iteration(*state_);
    reader_.offline();
}

void Worker::begin() noexcept {
    reader_.online();
    last_iteration_tsc_ = base::now_tsc();
}

bool Worker::iterate() noexcept {
    WorkerState& worker = *state_;
    const Phase phase = phase_.load(std::memory_order_acquire);
    const std::uint64_t begin = base::now_tsc();
    const std::uint32_t returned = returns_ready(worker);
    const bool others = worker.handoff.workers != 1;
    if (others) look_into_rings(worker);
    // Before the snapshot: whoever sees a port's queue has a snapshot with the port. One that has no port for it any
    // more says so (`attached`).
    const RxQueues& queues = *rx_queues_.load(std::memory_order_acquire);
    const Snapshot& snapshot = reader_.take();
    unsigned packets = 0;
    if (returned != 0) [[unlikely]]
        packets += take_returns(worker, snapshot, returned);
    if (others) packets += take_handed(worker, snapshot);
    if (phase == Phase::running) packets += receive_all(snapshot, queues);
    if (others) packets += take_sends(worker, snapshot);
    packets += flush_tx(worker, snapshot);
    if (BucketMove* const move = move_.load(std::memory_order_acquire); move != nullptr) [[unlikely]]
        packets += step_move(worker, snapshot, *move);
    // Not `begin`: a session that a packet of this iteration touched would lie in the future, which reads as long idle.
    const std::uint64_t now = std::max(begin, worker.now_tsc);
    expire_sessions(snapshot, now);
    mailbox_.serve(*worker.sessions, worker.outcomes, now);
    if (phase == Phase::stopped) return false;
    publish_iteration(worker);
    reader_.quiescent();
    account_iteration(begin, packets);
    moved_ = packets != 0;
    return true;
}

// Bursts are cut short only where somebody waits for them to end.
unsigned Worker::receive_all(const Snapshot& snapshot, const RxQueues& queues) noexcept {
    WorkerState& worker = *state_;
    const std::uint64_t budget = awake_queues_ > 1 ? burst_budget_ : 0;
    unsigned packets = 0, awake = 0;
    for (const RxQueue& queue : queues) {
        const unsigned received = worker.mbuf_burst != nullptr ? receive_by_mbuf(worker, snapshot, queue, budget)
                                                               : receive(snapshot, queue, budget);
        packets += received;
        QueueShare& share = worker.rx_shares[queue.port];
        if (received != 0) share.note_packets(worker.now_tsc);
        awake += share.is_awake(worker.now_tsc, awake_window_) ? 1 : 0;
    }
    awake_queues_ = awake;
    return packets;
}

unsigned Worker::receive(const Snapshot& snapshot, const RxQueue& queue, std::uint64_t budget) noexcept {
    return pipeline::receive(*state_, snapshot, queue, state_->burst, budget);
}

// The only system call of a worker, and only where it was asked for. Offline first, so that no reload waits for it.
void Worker::rest() noexcept {
    const bool held = state_->ledger.held != 0;
    empty_iterations_ = moved_ || held ? 0 : empty_iterations_ + 1;
    if (empty_iterations_ < kRestAfter) return;
    const unsigned doublings = std::min((empty_iterations_ - kRestAfter) / kRestsEach, kRestDoublings);
    const timespec nap = {0, kRestLeastNs << doublings};
    reader_.offline();
    nanosleep(&nap, nullptr);
    reader_.online();
    state_->loop.rests.add(1);
}

void Worker::expire_sessions(const Snapshot& snapshot, std::uint64_t now) noexcept {
    if (now < next_expiry_tsc_) return;
    next_expiry_tsc_ = now + expiry_interval_;
    const unsigned entries = std::clamp(state_->sessions->used_end() / kExpirySteps, kExpiryLeast, kExpiryMost);
    pipeline::expire_sessions(*state_, snapshot, now, entries);
}

// Busy are iterations that moved a packet; the gap is the time from one iteration's end to the next one's end.
void Worker::account_iteration(std::uint64_t begin, unsigned packets) noexcept {
    LoopCounters& loop = state_->loop;
    const std::uint64_t end = base::now_tsc();
    const std::uint64_t gap = end - last_iteration_tsc_;
    last_iteration_tsc_ = end;
    loop.iterations.add(1);
    loop.total_cycles.add(gap);
    if (packets != 0) loop.busy_cycles.add(end - begin);
    if (gap > loop.longest_gap_cycles.read()) loop.longest_gap_cycles.set(gap);
}

}  // namespace cachewire::pipeline
