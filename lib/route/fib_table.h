#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// One rte_fib or rte_fib6 that is changed only while nobody reads it. What its own bookkeeping gets wrong (22.11.11) is
// worked around here, and a change that did not take is reported as such, because the library says 0 for some that
// failed. After a false the table is in an unknown state and has to be thrown away: a failed change has written part of
// its range while the RIB kept the old next hop, so writing the old one again would be taken for "nothing to do".
#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "route/end_routes.h"
#include "route/family.h"
#include "route/fib.h"

namespace cachewire::route {

// DPDK's lists of FIBs, RIBs and mempools are by name, one name space a process.
inline std::string unique_fib_name() {
    static std::atomic<unsigned> number{0};
    return "cwfib" + std::to_string(number.fetch_add(1, std::memory_order_relaxed));
}

template <class F>
class FibTable {
  public:
    // Room for `routes` prefixes and `groups` second-level groups. Throws base::MachineError when there is no memory.
    FibTable(unsigned routes, std::uint32_t groups, int socket)
        : memory_bytes_(F::memory_bytes(routes, groups)),
          fib_(F::create(unique_fib_name().c_str(), socket, routes + 1 + EndRoutes::kPieces, groups)) {
        if (fib_ == nullptr) {
            throw base::MachineError(std::string(F::kName) + " FIB: no memory for " +
                                     std::to_string(memory_bytes_ >> 20) + " MiB; give EAL more (-m, huge pages)");
        }
        // The default route is always there, as next hop 0 when there is none. So every prefix has a parent, and adding
        // a default route is a replacement like any other.
        F::add(fib_, everything(), 0);
    }
    ~FibTable() { F::free(fib_); }
    FibTable(const FibTable&) = delete;
    FibTable& operator=(const FibTable&) = delete;

    // Adds or replaces.
    [[nodiscard]] bool set(const net::Prefix& prefix, std::uint16_t next_hop) {
        if constexpr (F::kFamily == net::Family::ip4)
            if (const unsigned k = end_.note(prefix, next_hop); k != 0) return write_end(k);
        return write(prefix, next_hop);
    }

    [[nodiscard]] bool remove(const net::Prefix& prefix) {
        if (prefix.length == 0) return write(prefix, 0);
        if constexpr (F::kFamily == net::Family::ip4)
            if (const unsigned k = end_.note(prefix, std::nullopt); k != 0) return write_end(k);
        return F::remove(fib_, prefix) == 0;
    }

    // n <= kMaxBulk.
    void lookup(typename F::Lookup* addresses, std::uint64_t* next_hops, unsigned n) const noexcept {
        F::lookup(fib_, addresses, next_hops, n);
    }

    [[nodiscard]] std::size_t memory_bytes() const noexcept { return memory_bytes_; }

  private:
    [[nodiscard]] bool write(const net::Prefix& prefix, std::uint16_t next_hop) {
        if (prefix.length > 24 && F::exact(fib_, prefix) == nullptr) {
            if (!add_long(prefix, next_hop)) return false;
        }
        // A replacement that finds no free group returns 0 and keeps the old next hop in the RIB.
        return F::add(fib_, prefix, next_hop) == 0 && holds(prefix, next_hop);
    }

    // The pieces from the k-th on, as they have to be now.
    [[nodiscard]] bool write_end(unsigned k) {
        for (; k <= 32; ++k) {
            const std::optional<std::uint16_t> wanted = end_.piece(k);
            if (wanted && !write(EndRoutes::piece_prefix(k), *wanted)) return false;
            if (!wanted && end_.written[k] && F::remove(fib_, EndRoutes::piece_prefix(k)) != 0) return false;
            end_.written[k] = wanted.has_value();
        }
        return true;
    }

    static net::Prefix everything() {
        net::Prefix p;
        p.family = F::kFamily;
        if constexpr (F::kFamily == net::Family::ip4) p.address = net::Address::from_v4(0);
        return p;
    }

    bool holds(const net::Prefix& prefix, std::uint16_t next_hop) {
        const auto* node = F::exact(fib_, prefix);
        return node != nullptr && F::next_hop(node) == next_hop;
    }

    std::uint64_t parent_next_hop(const net::Prefix& prefix) {
        auto* node = F::longest(fib_, prefix.address);
        while (node != nullptr && F::depth(node) >= prefix.length) node = F::parent(node);
        return node == nullptr ? 0 : F::next_hop(node);
    }

    // First half of adding a prefix that may need second-level groups; set() then puts the right next hop in place of
    // this one. Both libraries keep a count of reserved groups that only the first add of a prefix moves:
    //  IPv4: an add that repeats the parent's next hop is not counted but its removal is, so the count falls below zero
    //  and
    //        every later long prefix is refused. Adding with another next hop is always counted.
    //  IPv6: an add is counted as if it shared no group with its neighbours (20 /48s under one /32 use up 64 groups
    //  that
    //        are not in use), and removal never gives anything back. An add that repeats the parent's next hop is not
    //        counted; the replacement after it takes what it really needs.
    bool add_long(const net::Prefix& prefix, std::uint16_t next_hop) {
        const std::uint64_t parent = parent_next_hop(prefix);
        if constexpr (F::kFamily == net::Family::ip4) {
            return parent != next_hop || F::add(fib_, prefix, parent ^ 1) == 0;
        } else {
            return F::add(fib_, prefix, parent) == 0;
        }
    }

    std::size_t memory_bytes_;
    typename F::Fib* fib_;
    EndRoutes end_;
};

}  // namespace cachewire::route
