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

namespace cachewire::bench {

class Rig {
  public:
    // `frames`: what travels, a mbuf each, all in flight at once. The configuration names the ports west and east;
    // `name` is the rig's own among the rigs of the process.
    // `vary` changes the frames before each slice.
    using Frames = std::vector<std::vector<std::uint8_t>>;
    Rig(const std::string& name, const std::string& config_text, Frames frames, std::function<void(Frames&)> vary = {});

    // Offers every frame once, measures the worker's code until all of them are sent, puts them back. Throws
    // std::runtime_error when one is missing: a bench that loses packets measures nothing.
    Slice io();        // receive, send
    Slice pipeline();  // the worker's whole iteration

    // Routes that change while the worker runs: a flush goes through the publisher, as control's does. Not measured.
    [[nodiscard]] control::RouteFeed& routes() noexcept { return routes_; }
    [[nodiscard]] const control::Registry& registry() const noexcept { return builder_->registry(); }

    [[nodiscard]] const pipeline::WorkerState& worker() const noexcept { return worker_->state(); }

  private:
    Slice run(const std::function<void()>& step);
    void refill();
    void collect();

    Frames frames_;
    std::function<void(Frames&)> vary_;
    rte_mempool* pool_;
    test::RingPort west_, east_;
    std::unique_ptr<control::SnapshotBuilder> builder_;
    control::Publisher publisher_{1};
    control::RouteFeed routes_;
    std::unique_ptr<pipeline::Worker> worker_;
    std::vector<rte_mbuf*> mbufs_;
};

}  // namespace cachewire::bench
