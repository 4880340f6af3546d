#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A forwarder as one writes it first, for scenarios: packets one at a time, headers parsed where they lie, one table of
// flows and one set of counters for all lcores, behind a lock and with atomics, nothing fetched ahead. It judges flows
// by the shipped lists and routes and sends the same bytes. Receives and sends in bursts, all the same, and its table
// is rte_hash: it is slow by its order of memory accesses and not by bad code.
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include <rte_hash.h>
#include <rte_mbuf.h>
#include <rte_spinlock.h>

#include "base/cache_line.h"
#include "net/flow_key.h"
#include "pipeline/snapshot.h"
#include "pipeline/worker_state.h"

namespace cachewire::bench::naive {

inline constexpr unsigned kBurst = 32;

struct alignas(base::kCacheLine) Flow {
    std::uint64_t packets, bytes, last_seen;
    std::uint16_t next_hop;
    bool permit;
};

struct alignas(base::kCacheLine) TenantCounters {
    std::atomic<std::uint64_t> packets{0}, bytes{0};
};

// What one packet is, while it is worked on.
struct Packet {
    rte_mbuf* mbuf = nullptr;
    std::uint32_t ip_offset = 0;
    net::FlowKey key;
    const Flow* flow = nullptr;
    bool alive = true;
};

// What all lcores share.
class Forwarder {
  public:
    // As many flows as `capacity`. Tenant of VLAN: the slot in the snapshot.
    // `name` is its own in the process.
    Forwarder(const std::string& name, const pipeline::Snapshot& snapshot, unsigned capacity, std::uint16_t west,
              std::uint16_t east);
    ~Forwarder();
    Forwarder(const Forwarder&) = delete;
    Forwarder& operator=(const Forwarder&) = delete;

    // A burst from west to east. `kApart`: each step in a function of its own, for callgrind.
    template <bool kApart>
    void in_place() noexcept;
    // The shipped receive and parse stages, into the descriptor, then each packet by this table.
    template <bool kApart>
    void after_descriptor(pipeline::WorkerState& worker, const pipeline::RxQueue& queue) noexcept;

    // Steps; names are those of the shipped stages that do the like.
    struct Parse {
        static void process(Forwarder& shared, Packet& packet) noexcept;
    };
    struct Session {
        static void process(Forwarder& shared, Packet& packet) noexcept;
    };
    struct Count {
        static void process(Forwarder& shared, Packet& packet) noexcept;
    };
    struct Tx {
        static void process(Forwarder& shared, Packet& packet) noexcept;
    };

  private:
    template <bool kApart>
    void finish(Packet& packet) noexcept;
    void send() noexcept;
    Flow* begin_flow(const net::FlowKey& key, const net::FlowKey& canonical) noexcept;

    const pipeline::Snapshot& snapshot_;
    std::uint16_t west_, east_;
    std::array<std::uint16_t, 4096> tenant_of_vlan_{};
    rte_spinlock_t lock_ = RTE_SPINLOCK_INITIALIZER;
    rte_hash* table_ = nullptr;
    std::vector<Flow> flows_;
    std::vector<TenantCounters> counters_;
    std::array<rte_mbuf*, kBurst> sending_;
    std::uint16_t to_send_ = 0;
};

}  // namespace cachewire::bench::naive
