#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Which worker a session belongs to: a pure function of the symmetric hash over the tuple (the keyed one; a Toeplitz
// hash where devices place packets by it), the same for both directions and in every tenant. The table is the same on
// every worker, but for the moment in which buckets move (bucket_move.h).
#include <array>
#include <cassert>
#include <cstdint>

#include "net/flow_hash.h"

namespace cachewire::pipeline {

inline constexpr unsigned kMaxWorkers = 128;
// Four times the workers there may be, so that at most a fifth of the traffic lies on the wrong side of a rounding; 512
// bytes are 8 lines, which stay in L1.
inline constexpr unsigned kOwnerBits = net::kOwnerHashBits;
inline constexpr unsigned kOwnerBuckets = 1u << kOwnerBits;
using Owners = std::array<std::uint8_t, kOwnerBuckets>;

// The hash's upper bits. A session table's tags and a group's members are chosen by lower ones.
constexpr unsigned owner_bucket(std::uint32_t hash) noexcept { return hash >> (32 - kOwnerBits); }

// `granularity`: a power of two; where a device's table is smaller than ours, buckets that it doesn't tell apart have
// one owner.
constexpr Owners spread_owners(unsigned workers, unsigned granularity = kOwnerBuckets) noexcept {
    assert(workers != 0 && workers <= kMaxWorkers);
    Owners owners{};
    for (unsigned bucket = 0; bucket < kOwnerBuckets; ++bucket)
        owners[bucket] = static_cast<std::uint8_t>(bucket % granularity % workers);
    return owners;
}

// Which worker holds a port's TX queue, and which queue worker `worker` sends by. A queue has one sender: where a
// device has fewer queues than there are workers, the others hand their frames to the one that holds it. Ports begin at
// different workers, so that many ports of one queue each don't all end at the first.
struct TxPlace {
    unsigned holder;
    std::uint16_t queue;
    friend bool operator==(const TxPlace&, const TxPlace&) = default;
};
constexpr TxPlace tx_place(unsigned worker, unsigned port, unsigned txq, unsigned workers) noexcept {
    const unsigned turn = (worker + workers - port % workers) % workers;
    const unsigned queue = turn % txq;
    return {(queue + port) % workers, static_cast<std::uint16_t>(queue)};
}

}  // namespace cachewire::pipeline
