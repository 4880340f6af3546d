#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The rings between workers, made before they run and gone after they have returned; and which worker polls which
// receive queue. Each worker's incoming rings lie together, on its socket.
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/huge_array.h"
#include "pipeline/worker.h"

namespace cachewire::control {

struct PortQueues {
    std::uint16_t port = 0;  // index in the snapshot
    std::uint16_t ethdev = 0;
    std::uint16_t rx = 1, tx = 1;
};

// Every queue to one worker, in turn. With fewer queues than workers some get none, and live on what is handed to them.
std::vector<std::vector<pipeline::RxQueue>> assign_queues(std::span<const PortQueues> ports, unsigned workers);

class HandoffMesh {
  public:
    // With one worker nothing is made. Throws base::MachineError.
    void connect(std::span<pipeline::WorkerState* const> workers, std::span<const PortQueues> ports,
                 const pipeline::Owners& owners);

    // For a port that no published snapshot has, and none had under another number of TX queues: nobody looks at its
    // place.
    void add_port(std::span<pipeline::WorkerState* const> workers, const PortQueues& port);

    // What is linked at this place, if anything is, is for so many TX queues.
    [[nodiscard]] bool fits(std::uint16_t port, std::uint16_t tx) const {
        const auto known = linked_.find(port);
        return known == linked_.end() || known->second == tx;
    }

    [[nodiscard]] std::size_t bytes() const noexcept;
    // The most mbufs that lie in rings, as a pool has to reckon with.
    static std::size_t mbufs(std::size_t workers, std::size_t ports) noexcept;

  private:
    std::vector<base::HugeArray> memory_;
    std::map<std::uint16_t, std::uint16_t> linked_;  // port -> TX queues that its rings are for
};

}  // namespace cachewire::control
