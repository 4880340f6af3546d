#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The packets of one pass through the pipeline: descriptors and keys by lane, and the list of lanes still going. Lanes
// never move; a drop takes the lane off the list and names its reason. One burst per worker, in L1 from RX to TX: 64
// lanes x (64 B + 48 B) = 7 KiB.
#include <array>
#include <cassert>
#include <cstdint>
#include <span>

#include "pipeline/descriptor.h"
#include "pipeline/drop_reason.h"
#include "pipeline/punt.h"

namespace cachewire::pipeline {

inline constexpr unsigned kMaxLanes = 64;  // a configured burst over this runs in sub-bursts

// Where per-packet metadata lives. Stages reach it only through Burst::lane(), as `auto&& lane = burst.lane(i)`, so
// that another layout can be measured in the same binary without a second copy of any stage.
struct LaneMetadata {
    [[nodiscard]] Lane& lane(unsigned i) noexcept { return lanes[i]; }
    std::array<Lane, kMaxLanes> lanes;
};

template <class Metadata>
class BasicBurst {
  public:
    using LaneIndex = std::uint8_t;

    [[nodiscard]] decltype(auto) lane(LaneIndex i) noexcept { return metadata_.lane(i); }
    [[nodiscard]] net::FlowKey& key(LaneIndex i) noexcept { return keys_[i]; }

    // Lanes still going, in arrival order.
    [[nodiscard]] std::span<const LaneIndex> live() const noexcept { return {live_.data(), live_count_}; }
    [[nodiscard]] unsigned size() const noexcept { return live_count_; }

    // RX: n fresh lanes, all live.
    void begin(unsigned n) noexcept {
        assert(n <= kMaxLanes);
        for (unsigned i = 0; i < n; ++i) live_[i] = static_cast<LaneIndex>(i);
        live_count_ = n;
        dropped_count_ = 0;
        punted_count_ = 0;
    }

    // Keeps the lanes for which `keep(lane_index)` returns true, in order. A pass that may drop is one call of this;
    // the callee calls drop() before it returns false. Inlined by order: what `keep` captures is then registers and not
    // a closure in memory.
    template <class Keep>
    [[gnu::always_inline]] void filter(Keep&& keep) noexcept {
        const unsigned count = live_count_;
        unsigned kept = 0;
        for (unsigned k = 0; k < count; ++k) {
            const LaneIndex i = live_[k];
            live_[kept] = i;
            kept += keep(i) ? 1 : 0;
        }
        live_count_ = kept;
    }

    // Every mbuf leaves by TX, punt or here. Only notes the lane; `Drop` counts and frees once per burst.
    // Returns false, so that a filter can say `return burst.drop(i, DropReason::x);`.
    bool drop(LaneIndex i, DropReason reason) noexcept {
        dropped_[dropped_count_++] = {i, reason};
        return false;
    }

    struct Dropped {
        LaneIndex lane;
        DropReason reason;
    };
    [[nodiscard]] std::span<const Dropped> dropped() const noexcept { return {dropped_.data(), dropped_count_}; }
    void clear_dropped() noexcept { dropped_count_ = 0; }

    // To the slow path, or dropped under `drop` when it does not take the packet; `Punt` decides once per burst. False,
    // as drop().
    bool punt(LaneIndex i, PuntReason reason, DropReason drop) noexcept {
        punted_[punted_count_++] = {i, reason, drop};
        return false;
    }
    bool punt(LaneIndex i, PuntReason reason) noexcept { return punt(i, reason, traits_of(reason).drop); }

    struct Punted {
        LaneIndex lane;
        PuntReason reason;
        DropReason drop;
    };
    [[nodiscard]] std::span<const Punted> punted() const noexcept { return {punted_.data(), punted_count_}; }
    void clear_punted() noexcept { punted_count_ = 0; }

  private:
    Metadata metadata_;
    std::array<net::FlowKey, kMaxLanes> keys_;
    std::array<LaneIndex, kMaxLanes> live_;
    std::array<Dropped, kMaxLanes> dropped_;
    std::array<Punted, kMaxLanes> punted_;
    unsigned live_count_ = 0;
    unsigned dropped_count_ = 0;
    unsigned punted_count_ = 0;
};

using Burst = BasicBurst<LaneMetadata>;

}  // namespace cachewire::pipeline
