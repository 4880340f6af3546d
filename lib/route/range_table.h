#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Longest-prefix match for small families: the routes flattened into disjoint ranges, sorted by their first address,
// found by binary search. Immutable after construction, so any number of threads read it. 1000 routes are at most 2001
// ranges: 12 KiB (IPv4) or 36 KiB (IPv6) in place of a 32 MiB first level.
#include <cstdint>
#include <utility>
#include <vector>

namespace cachewire::route {

__extension__ using Uint128 = unsigned __int128;

// Key: an address as a host-order unsigned integer, std::uint32_t or Uint128.
template <class Key>
class RangeTable {
  public:
    struct Range {
        Key first, last;  // both inside
        std::uint16_t next_hop;
    };

    RangeTable() : firsts_{0}, next_hops_{0} {}

    // Routes in the order (address, length), as a sorted map gives them: a covering prefix comes before what it covers.
    explicit RangeTable(const std::vector<Range>& routes) {
        std::vector<std::pair<Key, std::uint16_t>> open;  // last address and next hop of the prefixes around this point
        begin_range(0, 0);
        const auto close = [&] {
            const Key last = open.back().first;
            open.pop_back();
            // Nothing begins after the last address there is.
            if (last != static_cast<Key>(~Key{0})) begin_range(last + 1, open.empty() ? 0 : open.back().second);
        };
        for (const Range& route : routes) {
            while (!open.empty() && open.back().first < route.first) close();
            begin_range(route.first, route.next_hop);
            open.emplace_back(route.last, route.next_hop);
        }
        while (!open.empty()) close();
        firsts_.shrink_to_fit();
        next_hops_.shrink_to_fit();
    }

    // 0 where no route matches. The loop's trip count depends on the size alone and its step is a conditional move.
    [[nodiscard]] std::uint16_t lookup(Key address) const noexcept {
        const Key* base = firsts_.data();
        for (std::size_t n = firsts_.size(); n > 1;) {
            const std::size_t half = n / 2;
            base = base[half] <= address ? base + half : base;
            n -= half;
        }
        return next_hops_[static_cast<std::size_t>(base - firsts_.data())];
    }

    [[nodiscard]] std::size_t size() const noexcept { return firsts_.size(); }
    [[nodiscard]] std::size_t memory_bytes() const noexcept {
        return firsts_.capacity() * sizeof(Key) + next_hops_.capacity() * sizeof(std::uint16_t);
    }

  private:
    void begin_range(Key first, std::uint16_t next_hop) {
        if (!firsts_.empty() && firsts_.back() == first) {  // a longer prefix with the same first address wins
            firsts_.pop_back();
            next_hops_.pop_back();
        }
        if (!firsts_.empty() && next_hops_.back() == next_hop) return;
        firsts_.push_back(first);
        next_hops_.push_back(next_hop);
    }

    std::vector<Key> firsts_;  // firsts_[0] is 0, so every address falls into a range
    std::vector<std::uint16_t> next_hops_;
};

}  // namespace cachewire::route
