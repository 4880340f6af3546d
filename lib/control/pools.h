#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Buffers for packets. One pool is made at the start, for the ports that are there then. What a port that comes later
// needs for its rings comes out of what ports that went have left there, else it gets a pool of its own, which the next
// one takes over when it goes: EAL's memory is not given back before the end. Control thread only, under the lock.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/config.h"

struct rte_mempool;

namespace cachewire::control {

class Pools {
  public:
    // Throws base::MachineError naming the memory needed.
    Pools(const config::Config& config, unsigned workers);

    [[nodiscard]] rte_mempool* main() const noexcept { return pools_.front().pool; }
    // For a port that comes while workers run; throws base::MachineError.
    rte_mempool* take(const config::Config& config, const config::Port& port);
    // The port is closed.
    void give_back(rte_mempool* pool, const config::Port& port) noexcept;

    // Over all of them.
    [[nodiscard]] std::uint64_t size() const noexcept;
    [[nodiscard]] std::uint64_t free() const noexcept;

  private:
    struct Pool {
        rte_mempool* pool;
        std::size_t spare;  // mbufs that no port's rings are reckoned with; of one made for a port: all or none
    };

    unsigned workers_;
    std::vector<Pool> pools_;  // the first is the one made at the start
};

}  // namespace cachewire::control
