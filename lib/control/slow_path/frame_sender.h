#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The way out of the slow path: frames of our own and packets that were held go to a worker's queue, which only the
// control thread fills. What a full queue doesn't take waits here: own frames up to a bound, held packets always, since
// a ledger counts them.
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "control/slow_path/own_interfaces.h"
#include "pipeline/punt.h"

struct rte_mbuf;
struct rte_mempool;

namespace cachewire::control {

class FrameSender {
  public:
    static constexpr std::size_t kMaxWaiting = 4096;

    FrameSender(const std::vector<pipeline::ReturnRing*>& workers, rte_mempool* pool);
    ~FrameSender();
    FrameSender(const FrameSender&) = delete;
    FrameSender& operator=(const FrameSender&) = delete;

    // A buffer with these bytes and room for any Ethernet header before them; nullptr: the pool is empty.
    rte_mbuf* make(std::span<const std::uint8_t> bytes) noexcept;
    // A whole frame by an interface, with `payload` behind its EtherType. False: not sent.
    bool send(const OwnInterface& by, const net::Mac& to, std::uint16_t ether_type,
              std::span<const std::uint8_t> payload, unsigned worker = 0);
    // Takes the mbuf. `worker`: of a held packet the one that holds it.
    void give(unsigned worker, const pipeline::Return& what);
    // What waited; then all of it is the workers' to see.
    void publish() noexcept;

    [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }

  private:
    struct Worker {
        pipeline::ReturnRing* ring;
        std::deque<pipeline::Return> waiting;
    };
    std::vector<Worker> workers_;
    rte_mempool* pool_;
    std::uint64_t refused_ = 0;
};

}  // namespace cachewire::control
