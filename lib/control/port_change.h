#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The ports that one reload brings and takes away, and what it changes of those that stay. All or nothing: what was
// opened is closed again unless the new snapshot was published.
//
//   open()      new devices, which takes its time              }
//   prepare()   their facts for the snapshot, devices changed  }  undone by the destructor
//   link()      rings between workers                          }
//   finish()    published: workers poll what is new, what went is left to be closed after the grace period
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "control/pools.h"
#include "control/ports.h"
#include "control/restart.h"
#include "control/snapshot_builder.h"
#include "control/workers.h"

namespace cachewire::control {

using RxQueues = pipeline::Worker::RxQueues;

// Open, and in no snapshot any more: closed when no worker has an older one.
struct LeavingPort {
    std::unique_ptr<port::EthPort> port;
    config::Port from;
};

// What devices counted that a reload closed, by the port's name: a port that comes back under it counts on.
using ClosedPorts = std::map<std::string, port::PortStats>;

class PortChange {
  public:
    struct Parts {  // of the Runtime
        Ports& ports;
        Pools& pools;
        Workers& workers;
        SnapshotBuilder& builder;
        // Waits until every worker has been in the control plane's present; empty, or which one stalls.
        std::function<std::string()> quiesce;
    };
    using OldQueues = std::vector<std::unique_ptr<const RxQueues>>;

    PortChange(Parts parts, const config::Config& running, const config::Config& next);
    ~PortChange();
    PortChange(const PortChange&) = delete;
    PortChange& operator=(const PortChange&) = delete;

    // All throw base::MachineError. From prepare() on under the lock.
    void open();
    void prepare(SnapshotBuilder::Pass& pass, bool dry_run);
    void link(const SnapshotBuilder::Pass& pass);
    // `old_queues`: to be kept for the grace period.
    std::vector<LeavingPort> finish(OldQueues& old_queues);

    [[nodiscard]] const PortPlan& plan() const noexcept { return plan_; }

  private:
    struct Added {
        std::unique_ptr<port::EthPort> port;
        const config::Port* from;
        std::uint16_t index = 0;
    };
    void stop_polling(const std::string& name);
    void undo() noexcept;
    std::unique_ptr<port::EthPort> take_out(const std::string& name);

    Parts parts_;
    const config::Config& running_;
    const config::Config& next_;
    PortPlan plan_;
    std::vector<Added> added_;
    SnapshotBuilder::PortInfos infos_before_;
    std::vector<RxQueues> queues_before_, queues_;  // by worker
    OldQueues old_queues_;
    bool prepared_ = false, changed_ = false, done_ = false;
};

}  // namespace cachewire::control
