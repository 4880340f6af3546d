#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Hits by rule, on one worker. A rule's number is the control plane's, unique over all lists and while anybody holds
// it, so a session keeps the number of the rule that it came from whatever a reload does to the list. What a memo
// answers is counted in the session's hot entry and credited here when that is flushed: no packet of a session touches
// a line here, packets without one touch one.
//
// Memory comes in chunks. The control plane puts one in before it publishes a snapshot that names its numbers, and
// takes it out when no snapshot names them and held() says that no session does.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/counter.h"

namespace cachewire::session {

inline constexpr std::uint32_t kNoRuleId = 0xffffffff;

// worker: rw; telemetry: ro. In one line.
struct alignas(32) RuleHits {
    base::Counter packets, bytes, sessions;
};

class RuleCounters {
  public:
    static constexpr std::uint32_t kChunkBits = 8;
    static constexpr std::uint32_t kChunkRules = 1u << kChunkBits;
    static constexpr std::uint32_t kMaxChunks = 1u << 14;  // four million rules, older versions of lists included

    RuleCounters() : chunks_(kMaxChunks) {}

    // Worker. Numbers that have no chunk are not counted.
    void count(std::uint32_t rule, std::uint64_t packets, std::uint64_t bytes) noexcept {
        if (Chunk* chunk = chunk_of(rule)) {
            RuleHits& hits = chunk->hits[rule % kChunkRules];
            hits.packets.add(packets);
            hits.bytes.add(bytes);
        }
    }
    // A session comes to the rule, or leaves it. Where the rule is its replies' alone it is not one of the rule's.
    void hold(std::uint32_t rule, bool of_replies = false) noexcept {
        if (Chunk* chunk = chunk_of(rule)) {
            if (!of_replies) chunk->hits[rule % kChunkRules].sessions.add(1);
            chunk->held.store(chunk->held.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        }
    }
    // The same for one that another worker has counted.
    void hold_again(std::uint32_t rule) noexcept {
        if (Chunk* chunk = chunk_of(rule))
            chunk->held.store(chunk->held.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    void release(std::uint32_t rule) noexcept {
        // Release: who sees that nothing is held may free what was written before.
        if (Chunk* chunk = chunk_of(rule))
            chunk->held.store(chunk->held.load(std::memory_order_relaxed) - 1, std::memory_order_release);
    }

    // Control plane.
    void put(std::uint32_t chunk) { chunks_[chunk] = std::make_unique<Chunk>(); }
    void take(std::uint32_t chunk) noexcept { chunks_[chunk].reset(); }
    [[nodiscard]] std::uint32_t held(std::uint32_t chunk) const noexcept {
        return chunks_[chunk]->held.load(std::memory_order_acquire);
    }
    [[nodiscard]] const RuleHits& hits(std::uint32_t rule) const noexcept {
        return chunks_[rule >> kChunkBits]->hits[rule % kChunkRules];
    }

  private:
    struct Chunk {
        std::array<RuleHits, kChunkRules> hits;
        std::atomic<std::uint32_t> held{0};  // sessions; one writer, like the counters
    };
    [[nodiscard]] Chunk* chunk_of(std::uint32_t rule) const noexcept {
        const std::uint32_t chunk = rule >> kChunkBits;
        return chunk < kMaxChunks ? chunks_[chunk].get() : nullptr;
    }

    std::vector<std::unique_ptr<Chunk>> chunks_;
};

}  // namespace cachewire::session
