#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// One rate over several lcores. Each takes credit from the shared bucket in chunks and spends it alone, so that a
// packet costs no atomic operation; a line that others write is touched once a chunk.
//
// A bucket is one number, the time up to which its tokens are spent (GCRA, ITU-T I.371): what has come since is there
// to be taken, at most the burst. No number but that one has to agree with anything, so all is relaxed, and another
// rate after a reload leaves no debt behind.
//
// Bound: an lcore keeps at most one chunk, a 32nd of the burst and at most what the rate brings in a millisecond, so
// that n lcores together pass at most burst x (1 + n / 32) at once. Credit that has lain for as long as the bucket
// takes to fill is void: without it the bucket would be full, and it is.
//
// Written by all workers.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/cache_line.h"
#include "qos/policer.h"

namespace cachewire::qos {

inline constexpr unsigned kBytesShift = 56, kCyclesShift = 24;
__extension__ using Wide = unsigned __int128;

inline std::uint64_t bytes_in_cycles(const SharedRate& rate, std::uint64_t cycles) noexcept {
    return static_cast<std::uint64_t>(Wide{cycles} * rate.bytes_per_cycle >> kBytesShift);
}
// To the nearest, so that many chunks of one size add up.
inline std::uint64_t cycles_for_bytes(const SharedRate& rate, std::uint64_t bytes) noexcept {
    return static_cast<std::uint64_t>((Wide{bytes} * rate.cycles_per_byte + (Wide{1} << (kCyclesShift - 1))) >>
                                      kCyclesShift);
}

// Zero-filled: full. A line of its own.
struct alignas(base::kCacheLine) SharedBucket {
    std::atomic<std::uint64_t> paid_until_tsc[2]{};  // committed, excess
    std::atomic<std::uint64_t> overflow{0};          // srTCM's excess bucket: what the committed one had no room for
};

class SharedBuckets {
  public:
    explicit SharedBuckets(std::size_t buckets) : buckets_(std::make_unique<SharedBucket[]>(buckets)) {}

    // Credit of bucket 0 (committed) or 1 (excess): at least `need` bytes, at most `need` or a chunk, or nothing. A
    // share that is smaller than half a chunk is left to grow, so that an overloaded bucket is not asked for each
    // packet.
    std::uint64_t take(std::size_t bucket, unsigned which, const PolicerProfile& profile, std::uint64_t now_tsc,
                       std::uint64_t need) noexcept {
        SharedBucket& shared = buckets_[bucket];
        if (profile.type == MeterType::srtcm_2697) {
            settle(shared, profile, now_tsc);
            if (which == 1) return take_overflow(shared, profile, need);
        }
        const SharedRate& rate = profile.shared[which];
        const std::uint64_t most = std::max(need, rate.chunk_bytes), least = std::max(need, rate.chunk_bytes / 2);
        const std::uint64_t oldest = now_tsc > rate.burst_tsc ? now_tsc - rate.burst_tsc : 0;
        auto& paid_until = shared.paid_until_tsc[which];
        std::uint64_t before = paid_until.load(std::memory_order_relaxed);
        std::uint64_t n, after;
        do {
            const std::uint64_t from = std::max(before, oldest);
            if (from >= now_tsc) return 0;  // also where another lcore's clock is ahead
            const std::uint64_t there = std::min(bytes_in_cycles(rate, now_tsc - from), rate.burst_bytes);
            if (there < least) return 0;
            n = std::min(there, most);
            after = from + cycles_for_bytes(rate, n);
        } while (!paid_until.compare_exchange_weak(before, after, std::memory_order_relaxed));
        return n;
    }

  private:
    // RFC 2697 3: tokens that the full committed bucket can't take go to the excess bucket.
    static void settle(SharedBucket& shared, const PolicerProfile& profile, std::uint64_t now_tsc) noexcept {
        const SharedRate &rate = profile.shared[0], &excess = profile.shared[1];
        const std::uint64_t oldest = now_tsc > rate.burst_tsc ? now_tsc - rate.burst_tsc : 0;
        std::uint64_t before = shared.paid_until_tsc[0].load(std::memory_order_relaxed);
        // Only whole bytes move, or what is less would be lost each time.
        if (before >= oldest || bytes_in_cycles(rate, oldest - before) == 0) return;
        if (!shared.paid_until_tsc[0].compare_exchange_strong(before, oldest, std::memory_order_relaxed)) return;
        const std::uint64_t more = bytes_in_cycles(rate, std::min(oldest - before, excess.burst_tsc));
        std::uint64_t tokens = shared.overflow.load(std::memory_order_relaxed), after;
        do {
            after = std::min(tokens + more, excess.burst_bytes);
        } while (!shared.overflow.compare_exchange_weak(tokens, after, std::memory_order_relaxed));
    }

    static std::uint64_t take_overflow(SharedBucket& shared, const PolicerProfile& profile,
                                       std::uint64_t need) noexcept {
        const std::uint64_t most = std::max(need, profile.shared[1].chunk_bytes);
        std::uint64_t tokens = shared.overflow.load(std::memory_order_relaxed), n;
        do {
            if (tokens < need) return 0;
            n = std::min(tokens, most);
        } while (!shared.overflow.compare_exchange_weak(tokens, tokens - n, std::memory_order_relaxed));
        return n;
    }

    std::unique_ptr<SharedBucket[]> buckets_;
};

}  // namespace cachewire::qos
