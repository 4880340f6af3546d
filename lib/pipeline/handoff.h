#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// From the worker that received a packet to the one that owns its session, and from there to the one that holds the
// egress port's TX queue. A ring for each pair of workers, one producer and one consumer, nobody waits.
//
// The element is the descriptor: lane and key as the parser left them, with the mbuf's pointer in it, two lines in all.
// So the owner reads no header before its TX stage writes it, and while it copies an element it asks for what the
// stages will want: the mbuf's line, the header line (its address travels too, or it would cost a dependent miss).
//
//   fields written            by
//   HandoffRing's slots       the sender, one line of Lane and one of key, address, generation
//   Handoff, HandoffCounters  their worker alone; telemetry reads the counters
//
// Ledger: what lies in a ring is `held`. The sender's line says +1 when it puts a packet in, the owner's says -1 when
// it takes it, so each worker's line closes by itself and so does their sum; what the sender says is published before
// the packets are, so that a sum is never short of what was received.
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/cache_line.h"
#include "base/counter.h"
#include "base/spsc_ring.h"
#include "net/flow_key.h"
#include "pipeline/descriptor.h"
#include "pipeline/owner.h"

namespace cachewire::pipeline {

struct alignas(base::kCacheLine) Handed {
    Lane lane;
    net::FlowKey key;
    const void* frame;         // the headers' first byte, for the owner's prefetch
    std::uint64_t generation;  // of the configuration that lane and key were parsed by
};
static_assert(sizeof(Handed) == 2 * base::kCacheLine && offsetof(Handed, key) == base::kCacheLine);

struct BucketMove;

// 128 KiB: a millisecond of a million packets a second, or what an owner misses while the kernel runs something else.
inline constexpr std::uint32_t kHandoffSlots = 1024;
using HandoffRing = base::SpscRing<Handed, kHandoffSlots>;
// Finished frames for one TX queue.
inline constexpr std::uint32_t kSendSlots = 512;
using SendRing = base::SpscRing<rte_mbuf*, kSendSlots>;

// One other worker, as this one sees it. Null where there is none.
struct Peer {
    HandoffRing* out = nullptr;
    HandoffRing* in = nullptr;
    std::uint32_t ready = 0;  // in `in`, when this iteration began
};

// worker: rw; telemetry: ro
struct alignas(base::kCacheLine) HandoffCounters {
    base::Counter given, taken;              // packets for their owner
    base::Counter sends_given, sends_taken;  // frames for who holds the TX queue
};

struct Handoff {
    unsigned workers = 1;  // 1: there is no other, and nothing here is looked at
    Owners owners{};
    std::vector<Peer> peers;                      // by worker
    std::vector<SendRing*> send_out;              // by snapshot port; null: this worker has a queue of its own there
    std::vector<std::vector<SendRing*>> send_in;  // by snapshot port: what others send by a queue of this worker
    std::array<std::uint64_t, kMaxWorkers / 64>
        unpublished{};                    // peers whose `out` has elements that they can't see yet
    std::uint64_t unpublished_sends = 0;  // the same by port
    BucketMove* parking = nullptr;        // buckets that come to this worker, and whose sessions are not all here yet
    std::uint64_t in_rings = 0;           // given less taken, of both kinds; wraps

    void note_unpublished(unsigned peer) noexcept { unpublished[peer / 64] |= std::uint64_t{1} << (peer % 64); }
    // Behind the ledger's line.
    void publish() noexcept {
        for (; unpublished_sends != 0; unpublished_sends &= unpublished_sends - 1)
            send_out[static_cast<unsigned>(std::countr_zero(unpublished_sends))]->publish();
        for (unsigned word = 0; word < unpublished.size(); ++word) {
            for (std::uint64_t bits = unpublished[word]; bits != 0; bits &= bits - 1)
                peers[word * 64 + static_cast<unsigned>(std::countr_zero(bits))].out->publish();
            unpublished[word] = 0;
        }
    }
};

}  // namespace cachewire::pipeline
