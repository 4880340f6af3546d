#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// One family of one VRF: what workers read (`current`), and for large families the second copy that the next batch
// changes.
//
//   batch:          prepare: the other copy catches up, takes the changes       -> staged
//                   commit:  staged becomes current, what was current becomes the other copy, which lacks these changes
//   grace period:   the other copy is read by nobody any more and takes the same changes
//   abandoned:      the staged copy takes the inverse changes and is the other copy again
//
// A copy whose update failed is thrown away, not repaired (see FibTable), and built again from the route map when it is
// needed. Copies are shared with views: one that a view still holds is never changed. Control thread only.
#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "route/fib_table.h"

namespace cachewire::route {

using RouteMap = std::map<net::Prefix, std::uint16_t>;

template <class F>
std::vector<typename RangeTable<typename F::Key>::Range> collect(const RouteMap& routes, std::size_t count) {
    using Key = typename F::Key;
    std::vector<typename RangeTable<Key>::Range> out;
    out.reserve(count);
    const auto take = [&](auto first, auto end) {
        for (; first != end; ++first) {
            const net::Prefix& p = first->first;
            if (p.family != F::kFamily) continue;
            const Key key = F::key(p.address);
            const Key host =
                p.length == 0 ? static_cast<Key>(~Key{0}) : static_cast<Key>((Key{1} << (F::kBits - p.length)) - 1);
            out.push_back({key, static_cast<Key>(key | host), first->second});
        }
    };
    // IPv4 routes stand together, under ::ffff:0:0/96; IPv6 ones before and after.
    const auto v4_begin = routes.lower_bound({net::Address::from_v4(0), 0, net::Family::ip4});
    const auto v4_end = routes.upper_bound({net::Address::from_v4(0xffffffff), 0xff, net::Family::ip6});
    if constexpr (F::kFamily == net::Family::ip4) {
        take(v4_begin, v4_end);
    } else {
        take(routes.begin(), v4_begin);
        take(v4_end, routes.end());
    }
    return out;
}

template <class F>
struct Tables {  // one of the two
    std::shared_ptr<const RangeTable<typename F::Key>> ranges;
    std::shared_ptr<FibTable<F>> table;
};

template <class F>
class LeftRight {
  public:
    struct Limits {
        std::size_t compact, routes;
        std::uint32_t groups;
        int socket;
    };

    LeftRight(std::string vrf, const Limits& limits) : vrf_(std::move(vrf)), limits_(limits) {
        limits_.groups = std::min(limits_.groups, F::kMaxGroups);
        current_.ranges = std::make_shared<const RangeTable<typename F::Key>>();
    }

    [[nodiscard]] const Tables<F>& current() const noexcept { return current_; }

    // `routes` is the map with the batch in it, `count` of them of this family. Throws base::MachineError; nothing that
    // current() gives has changed then.
    void prepare(const std::vector<RouteChange>& changes, const RouteMap& routes, std::size_t count) {
        touched_ = !changes.empty();
        if (!touched_) return;
        if (count > limits_.routes) {
            throw base::MachineError(where() + std::to_string(count) + " routes, at most " +
                                     std::to_string(limits_.routes) + " are allowed");
        }
        // Half the limit on the way down, so that a family at the limit does not change form with every batch.
        if (count <= (current_.table ? limits_.compact / 2 : limits_.compact)) {
            staged_.ranges = std::make_shared<const RangeTable<typename F::Key>>(collect<F>(routes, count));
            return;
        }
        if (catch_up() && replay(*other_, changes)) staged_.table = std::move(other_);
        other_.reset();
        if (!staged_.table) staged_.table = build(routes, count);
    }

    void commit(std::vector<RouteChange>&& changes) {
        if (!touched_) return;
        previous_ = std::move(current_);
        current_ = std::move(staged_);
        staged_ = {};
        other_ = previous_.table;
        behind_ = std::move(changes);
        committed_ = true;
    }

    // Undoes prepare(), and commit() where it followed. `inverse` restores what was there before the changes.
    void cancel(const std::vector<RouteChange>& inverse) {
        if (!touched_) return;
        std::shared_ptr<FibTable<F>> changed;
        if (committed_) {
            changed = std::move(current_.table);
            current_ = std::move(previous_);
            other_.reset();
        } else {
            changed = std::move(staged_.table);
        }
        previous_ = staged_ = {};
        touched_ = committed_ = false;
        if (!current_.table || !changed || changed.use_count() > 1 || !replay(*changed, inverse)) return;
        other_ = std::move(changed);
        behind_.clear();
    }

    // A large table gets its second copy here and not with its first change, which would have to wait for it: a full
    // table takes a second to fill. Without memory for it the next batch tries again, and says so.
    void grace_period_over(const RouteMap& routes, std::size_t count) {
        previous_ = {};
        touched_ = committed_ = false;
        if (!current_.table) other_.reset();
        if (catch_up() || other_ || !current_.table) return;
        try {
            other_ = build(routes, count);
            behind_.clear();
        } catch (const base::MachineError&) {
        }
    }

    [[nodiscard]] std::size_t memory_bytes() const noexcept {
        std::size_t bytes = current_.ranges ? current_.ranges->memory_bytes() : current_.table->memory_bytes();
        if (other_) bytes += other_->memory_bytes();
        return bytes;
    }

  private:
    [[nodiscard]] std::string where() const { return "routes of VRF " + vrf_ + ", " + F::kName + ": "; }

    // True when the other copy is there, unread and has every change but the coming ones. A view that is still held (a
    // snapshot not yet freed) only puts it off: the next batch tries again, and builds a new copy if it must.
    bool catch_up() {
        if (!other_ || other_.use_count() > 1) return false;
        if (!replay(*other_, behind_)) other_.reset();
        behind_.clear();
        return other_ != nullptr;
    }

    static bool replay(FibTable<F>& table, const std::vector<RouteChange>& changes) {
        return std::all_of(changes.begin(), changes.end(), [&](const RouteChange& c) {
            return c.next_hop ? table.set(c.prefix, *c.next_hop) : table.remove(c.prefix);
        });
    }

    // Second-level groups that the routes need: one for every distinct 24, 32, 40, ... bits above a longer prefix.
    static std::size_t groups_needed(const std::vector<typename RangeTable<typename F::Key>::Range>& routes) {
        using Key = typename F::Key;
        std::size_t needed = 0;
        Key last[F::kBits / 8]{};
        bool seen[F::kBits / 8]{};
        for (const auto& route : routes) {
            for (unsigned bits = 24; bits < F::kBits; bits += 8) {
                const unsigned shift = F::kBits - bits;
                // The prefix is longer than `bits` when it spans less than all that these bits leave open.
                if (route.last - route.first >= static_cast<Key>((Key{1} << shift) - 1)) break;
                const Key path = route.first >> shift;
                if (!seen[bits / 8] || last[bits / 8] != path) ++needed;
                seen[bits / 8] = true;
                last[bits / 8] = path;
            }
        }
        return needed;
    }

    std::shared_ptr<FibTable<F>> build(const RouteMap& routes, std::size_t count) const {
        const auto ranges = collect<F>(routes, count);
        const std::size_t needed = groups_needed(ranges);
        if (needed > limits_.groups) {
            throw base::MachineError(where() + std::to_string(needed) +
                                     " second-level groups needed for prefixes longer than 24 bits, at most " +
                                     std::to_string(limits_.groups) + " are allowed");
        }
        // Room to grow: half as many groups again, a quarter more routes. A batch that finds no room builds a larger
        // copy.
        const auto capacity = static_cast<unsigned>(
            std::min(limits_.routes, std::max<std::size_t>(4096, std::bit_ceil(count + count / 4))));
        std::size_t groups =
            std::min<std::size_t>(limits_.groups, std::max<std::size_t>(256, std::bit_ceil(needed + needed / 2)));
        for (;; groups = std::min<std::size_t>(limits_.groups, groups * 2)) {
            auto table = std::make_shared<FibTable<F>>(capacity, static_cast<std::uint32_t>(groups), limits_.socket);
            if (fill(*table, routes)) return table;
            if (groups == limits_.groups) break;
        }
        throw base::MachineError(where() + "DPDK's FIB is full at " + std::to_string(count) + " routes and " +
                                 std::to_string(groups) + " second-level groups");
    }

    static bool fill(FibTable<F>& table, const RouteMap& routes) {
        return std::all_of(routes.begin(), routes.end(), [&](const auto& route) {
            return route.first.family != F::kFamily || table.set(route.first, route.second);
        });
    }

    std::string vrf_;
    Limits limits_;
    Tables<F> current_, staged_, previous_;
    std::shared_ptr<FibTable<F>> other_;
    std::vector<RouteChange> behind_;  // what other_ lacks
    bool touched_ = false, committed_ = false;
};

}  // namespace cachewire::route
