#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Some buckets of the owner table, and every session in them, go from one worker to another while packets pass: none is
// lost, and none overtakes another of its session.
//
//   control   from                      to                            every worker
//   mark      notes its sessions there
//   park                                parks the buckets' packets,
//                                       gives `from` no more of them
//   pass                                                              gives them to `to`, and writes down how far its
//                                                                     ring to `from` is filled: the marker
//   (pass)    has taken all up to every
//             marker: gives its own to
//             `to`, hands out sessions
//             and first pieces, waits for
//             its frames to leave, says
//             that it was all
//   (pass)                              takes them in, then what it
//                                       has parked, in order: done
//
// `from` is the owner until it has seen every packet that was given to it, and `to` begins when it has every session.
// What lies in a ring in between was given by a worker before its marker. One move at a time; each step is a bounded
// part of an iteration. Frames of `from` are with the driver, or with who holds the TX queue, before `to` sends the
// next ones: where the two send by different queues of a device, their order beyond that is the device's.
//
//   written by   control   stage
//                from      marks, items in, its progress
//                to        items out, parked, its progress
//                each      its progress
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/cache_line.h"
#include "base/spsc_ring.h"
#include "pipeline/burst.h"
#include "pipeline/handoff.h"
#include "pipeline/owner.h"
#include "pipeline/snapshot.h"
#include "session/fragments.h"
#include "session/move.h"

namespace cachewire::pipeline {

struct WorkerState;

struct BucketSet {
    std::array<std::uint64_t, kOwnerBuckets / 64> words{};
    [[nodiscard]] bool has(unsigned bucket) const noexcept { return (words[bucket / 64] >> bucket % 64 & 1) != 0; }
    void add(unsigned bucket) noexcept { words[bucket / 64] |= std::uint64_t{1} << bucket % 64; }
};

struct MovedItem {
    enum class Kind : std::uint8_t { session, first_piece, end };
    Kind kind = Kind::end;
    session::MovedSession session;
    session::FragmentTable::Remembered piece;
};

struct BucketMove {
    enum class Stage : std::uint32_t { none, mark, park, pass, give_up };
    // A worker's answers.
    struct alignas(base::kCacheLine) Progress {
        std::atomic<Stage> done{Stage::none};    // release: what it says below is said
        std::atomic<std::uint32_t> marker{0};    // in its ring to `from`
        std::atomic<bool> finished{false};       // from: all is handed out; to: all is taken in and nothing parked
        std::atomic<std::uint32_t> sessions{0};  // from: marked, then handed out
        std::atomic<std::uint32_t> lost{0};      // to: found no room
        std::atomic<std::uint32_t> parked{0};    // to: most packets at a time
    };
    static constexpr std::uint32_t kParked = 8192;  // 1 MiB; as many more would be dropped as `handoff_full`
    static constexpr std::uint32_t kItems = 256;

    BucketMove(unsigned workers, std::uint32_t capacity)
        : marks((std::size_t{capacity} + 63) / 64), parked(kParked), progress(workers) {}

    BucketSet buckets;
    unsigned from = 0, to = 0;
    alignas(base::kCacheLine) std::atomic<Stage> stage{Stage::none};
    // from
    alignas(base::kCacheLine) std::vector<std::uint64_t> marks;
    std::uint32_t cursor = 0;
    enum class Leg : std::uint8_t { idle, sessions, pieces, frames, said } leg = Leg::idle;
    std::array<std::uint32_t, kMaxPorts> sends{};  // how far its rings to holders of TX queues are filled
    std::uint64_t unsent = 0;                      // bit by port: frames from before may be in the TX buffer
    std::uint32_t patience = 0;
    // to
    alignas(base::kCacheLine) std::vector<Handed> parked;
    std::uint32_t parked_begin = 0, parked_end = 0;
    bool has_all = false;
    base::SpscRing<MovedItem, kItems> items;
    std::vector<Progress> progress;  // by worker
};

// At the end of an iteration, behind TX. Returns how many packets and sessions it moved.
unsigned step_move(WorkerState& worker, const Snapshot& snapshot, BucketMove& move) noexcept;

// `to`: takes the lanes of the buckets out of the burst, for later.
void park_arrivals(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept;

// A worker that ends: what it has parked is dropped as `shutdown`.
void drop_parked(WorkerState& worker) noexcept;

}  // namespace cachewire::pipeline
