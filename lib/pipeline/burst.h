#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The packets of one pass through the pipeline: descriptors and keys by lane, and the set of lanes still going. Lanes
// never move; a drop takes the lane out of the set and names its reason. One burst per worker, in L1 from RX to TX: 64
// lanes x (64 B + 48 B) = 7 KiB.
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>

#include "base/bits.h"
#include "pipeline/descriptor.h"
#include "pipeline/drop_reason.h"
#include "pipeline/punt.h"

namespace cachewire::pipeline {

inline constexpr unsigned kMaxLanes = 64;  // a configured burst over this runs in sub-bursts

// Lanes as bits of one word: a pass keeps it in a register and takes five instructions for its loop. A list of lane
// numbers took ten, and its bytes could be anything that a pass holds in registers, for all the compiler knows.
class LaneSet {
  public:
    using Index = std::size_t;  // of register width, so that addresses need no extension

    constexpr LaneSet() noexcept = default;
    constexpr explicit LaneSet(std::uint64_t bits) noexcept : bits_(bits) {}
    // Lanes 0 to n - 1.
    static constexpr LaneSet first(unsigned n) noexcept {
        return LaneSet(n == 0 ? 0 : ~std::uint64_t{0} >> (kMaxLanes - n));
    }

    class Iterator {
      public:
        using iterator_category = std::forward_iterator_tag;
        using value_type = Index;
        using difference_type = std::ptrdiff_t;
        using pointer = void;
        using reference = Index;
        constexpr Iterator() noexcept = default;
        constexpr explicit Iterator(std::uint64_t rest) noexcept : rest_(rest) {}
        constexpr Index operator*() const noexcept { return static_cast<Index>(__builtin_ctzll(rest_)); }
        constexpr Iterator& operator++() noexcept {
            rest_ &= rest_ - 1;
            return *this;
        }
        constexpr Iterator operator++(int) noexcept {
            const Iterator before = *this;
            ++*this;
            return before;
        }
        friend constexpr bool operator==(const Iterator&, const Iterator&) noexcept = default;

      private:
        std::uint64_t rest_ = 0;
    };
    // The loop of passes that all packets take.
    template <class Visit>
    [[gnu::always_inline]] constexpr void for_each(Visit&& visit) const noexcept {
        base::for_each_bit(bits_, visit);
    }
    [[nodiscard]] constexpr Iterator begin() const noexcept { return Iterator(bits_); }
    [[nodiscard]] constexpr Iterator end() const noexcept { return {}; }
    [[nodiscard]] constexpr unsigned size() const noexcept { return static_cast<unsigned>(std::popcount(bits_)); }
    // One past the last lane.
    [[nodiscard]] constexpr Index bound() const noexcept { return static_cast<Index>(std::bit_width(bits_)); }
    [[nodiscard]] constexpr bool empty() const noexcept { return bits_ == 0; }
    [[nodiscard]] constexpr bool contains(Index i) const noexcept { return (bits_ >> i & 1) != 0; }
    [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
    [[nodiscard]] constexpr LaneSet without(LaneSet other) const noexcept { return LaneSet(bits_ & ~other.bits_); }
    constexpr void add(Index i) noexcept { bits_ |= std::uint64_t{1} << i; }
    constexpr void add_if(Index i, bool condition) noexcept { bits_ |= std::uint64_t{condition} << i; }
    constexpr void remove(Index i) noexcept { bits_ &= ~(std::uint64_t{1} << i); }

  private:
    std::uint64_t bits_ = 0;
};
static_assert(kMaxLanes == 64);

// Where per-packet metadata lives. Stages reach it only through Burst::lane(), as `auto&& lane = burst.lane(i)`, so
// that another layout (mbuf_layout.h) can be measured in the same binary without a second copy of any stage.
struct LaneMetadata {
    [[nodiscard]] Lane& lane(LaneSet::Index i) noexcept { return lanes[i]; }
    std::array<Lane, kMaxLanes> lanes;
};

template <class Metadata>
class BasicBurst {
  public:
    using LaneIndex = LaneSet::Index;
    static constexpr bool kPrefetchesSessions = true;  // buckets and hot entries
    static constexpr bool kCountsInHotLine = true;     // a session's packets and bytes, until they are flushed

    [[nodiscard]] decltype(auto) lane(LaneIndex i) noexcept { return metadata_.lane(i); }
    [[nodiscard]] net::FlowKey& key(LaneIndex i) noexcept { return keys_[i]; }

    // Lanes still going, in arrival order.
    [[nodiscard]] LaneSet live() const noexcept { return live_; }
    [[nodiscard]] unsigned size() const noexcept { return live_.size(); }

    // Lanes that brought verdict and next hop from a fresh memo: list and FIB have nothing to do for them, and the next
    // hop's line is on its way.
    [[nodiscard]] LaneSet memoised() const noexcept { return memoised_; }
    void set_memoised(LaneSet lanes) noexcept { memoised_ = lanes; }

    // Somebody still goes on, or was dropped and not yet freed.
    [[nodiscard]] bool has_work() const noexcept { return !live_.empty() || (dropped_count_ | punted_count_) != 0; }

    // RX: n fresh lanes, all live.
    void begin(unsigned n) noexcept {
        assert(n <= kMaxLanes);
        live_ = LaneSet::first(n);
        memoised_ = {};
        dropped_count_ = 0;
        punted_count_ = 0;
        has_pieces_ = false;
        has_wire_ = false;
        raw_ = {};
    }

    // Some lane has kLanePieces.
    void note_pieces() noexcept { has_pieces_ = true; }
    [[nodiscard]] bool has_pieces() const noexcept { return has_pieces_; }
    // Some lane's next hop is the other port of a transparent pair.
    void note_wire() noexcept { has_wire_ = true; }
    [[nodiscard]] bool has_wire() const noexcept { return has_wire_; }
    // A pair's frame that is no IP: list, session and route have nothing to say of it. False, as drop().
    bool set_raw(LaneIndex i) noexcept {
        raw_.add(i);
        return false;
    }
    [[nodiscard]] LaneSet take_raw() noexcept { return std::exchange(raw_, LaneSet{}); }
    [[nodiscard]] bool has_raw() const noexcept { return !raw_.empty(); }
    // For a pass over other lanes than those that go on.
    LaneSet exchange_live(LaneSet lanes) noexcept { return std::exchange(live_, lanes); }

    // Keeps the lanes for which `keep(lane_index)` returns true, in order. A pass that may drop is one call of this;
    // the callee calls drop() before it returns false. Inlined by order: what `keep` captures is then registers and not
    // a closure in memory.
    template <class Keep>
    [[gnu::always_inline]] void filter(Keep&& keep) noexcept {
        filter(live_, keep);
    }
    // The same of some of them.
    template <class Keep>
    [[gnu::always_inline]] void filter(LaneSet some, Keep&& keep) noexcept {
        LaneSet kept = live_;
        some.for_each([&](LaneIndex i) __attribute__((always_inline)) {
            if (!keep(i)) kept.remove(i);
        });
        live_ = kept;
    }

    // TX: what is still live is `send(lane_index)`'s, or has been dropped by it.
    template <class Send>
    [[gnu::always_inline]] void send_all(Send&& send) noexcept {
        live_.for_each(send);
        live_ = {};
    }

    // Every mbuf leaves by TX, punt or here. Only notes the lane; `Drop` counts and frees once per burst.
    // Returns false, so that a filter can say `return burst.drop(i, DropReason::x);`.
    bool drop(LaneIndex i, DropReason reason) noexcept {
        dropped_[dropped_count_++] = {static_cast<std::uint8_t>(i), reason};
        return false;
    }

    struct Dropped {
        std::uint8_t lane;
        DropReason reason;
    };
    [[nodiscard]] std::span<const Dropped> dropped() const noexcept { return {dropped_.data(), dropped_count_}; }
    void clear_dropped() noexcept { dropped_count_ = 0; }

    // To the slow path, or dropped under `drop` when it does not take the packet; `Punt` decides once per burst. False,
    // as drop().
    bool punt(LaneIndex i, PuntReason reason, DropReason drop) noexcept {
        punted_[punted_count_++] = {static_cast<std::uint8_t>(i), reason, drop};
        return false;
    }
    bool punt(LaneIndex i, PuntReason reason) noexcept { return punt(i, reason, traits_of(reason).drop); }

    struct Punted {
        std::uint8_t lane;
        PuntReason reason;
        DropReason drop;
    };
    [[nodiscard]] std::span<const Punted> punted() const noexcept { return {punted_.data(), punted_count_}; }
    void clear_punted() noexcept { punted_count_ = 0; }

  private:
    Metadata metadata_;
    std::array<net::FlowKey, kMaxLanes> keys_;
    std::array<Dropped, kMaxLanes> dropped_;
    std::array<Punted, kMaxLanes> punted_;
    LaneSet live_;
    LaneSet memoised_;
    LaneSet raw_;
    unsigned dropped_count_ = 0;
    unsigned punted_count_ = 0;
    bool has_pieces_ = false;
    bool has_wire_ = false;
};

using Burst = BasicBurst<LaneMetadata>;

}  // namespace cachewire::pipeline
