#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The shipped pipeline on two ring ports in this process: a configuration text goes through the real loader and
// snapshot builder, frames go in at `west` and come out at `east`. The bench plays the wire outside of the measured
// time.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "control/publisher.h"
#include "control/route_feed.h"
#include "control/snapshot_builder.h"
#include "pipeline/worker.h"
#include "slices.h"
#include "support/ring_port.h"
#include "traffic.h"

namespace cachewire::bench {

class Rig {
  public:
    // `frames`: what travels, a mbuf each, all in flight at once. The configuration names the ports west and east;
    // `name` is the rig's own among the rigs of the process.
    // `vary` changes the frames before each slice.
    using Frames = bench::Frames;
    Rig(const std::string& name, const std::string& config_text, Frames frames, std::function<void(Frames&)> vary = {});

    // Offers every frame once, measures the worker's code until all of them are sent, puts them back. Throws
    // std::runtime_error when one is missing: a bench that loses packets measures nothing.
    Slice io();        // receive, send
    Slice pipeline();  // the worker's whole iteration
    Slice by_stage();  // the same stages one by one, for callgrind: collect what is under measured_by_stage
    // Any other forwarder from west to east; `step` handles a burst.
    Slice other(const std::function<void()>& step) { return run(step); }
    [[nodiscard]] std::uint16_t west() const noexcept { return west_.id(); }
    [[nodiscard]] std::uint16_t east() const noexcept { return east_.id(); }
    [[nodiscard]] const pipeline::Snapshot& snapshot() const noexcept { return *publisher_.current(); }
    [[nodiscard]] pipeline::WorkerState& state() noexcept { return *state_; }
    // From here on none of the frames may come out: all are dropped, and others take their place.
    void expect_drops() noexcept { all_dropped_ = true; }
    // What frame `i` of the last slice looked like when it came out.
    [[nodiscard]] std::vector<std::uint8_t> frame(unsigned i) const;
    [[nodiscard]] const pipeline::RxQueue& queue() const noexcept { return worker_->rx_queues()[0]; }

    // Before each slice from now on so many bytes are read, so that frames and mbufs wait where DMA leaves them: not in
    // L1 or L2. 0: none, they stay where refill() has left them.
    void evict(std::size_t bytes) { evicting_.assign(bytes, 1); }

    // Routes that change while the worker runs: a flush goes through the publisher, as control's does. Not measured.
    [[nodiscard]] control::RouteFeed& routes() noexcept { return routes_; }
    [[nodiscard]] const control::Registry& registry() const noexcept { return builder_->registry(); }

    [[nodiscard]] const pipeline::WorkerState& worker() const noexcept { return worker_->state(); }

  private:
    Slice run(const std::function<void()>& step);
    void refill();
    void take_mbufs();
    void collect();

    Frames frames_;
    std::function<void(Frames&)> vary_;
    rte_mempool* pool_;
    test::RingPort west_, east_;
    std::unique_ptr<control::SnapshotBuilder> builder_;
    control::Publisher publisher_{1};
    control::RouteFeed routes_;
    pipeline::WorkerState* state_ = nullptr;  // worker_'s
    std::unique_ptr<pipeline::Worker> worker_;
    std::vector<std::uint8_t> evicting_;
    bool all_dropped_ = false;
    std::vector<rte_mbuf*> mbufs_;
};

}  // namespace cachewire::bench
