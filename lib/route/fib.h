#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// One VRF's forwarding table for both families: destination -> next hop index.
//
// Workers see a FibView: an immutable look-up that the snapshot points to. Vrf (control plane only) holds the routes
// and two copies of each large table (left-right): a batch of changes goes to the idle copy, is published with the next
// snapshot, and is replayed on the other copy after the grace period. rte_fib 22.11 zeroes and reuses second-level
// groups under readers, so changing the copy that workers read is no option. Small families (compact_limit routes or
// fewer) use an immutable sorted array of ranges, rebuilt per batch: a few KiB in place of 32 MiB a copy.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "net/prefix.h"

namespace cachewire::route {

inline constexpr std::size_t kMaxBulk = 256;

class FibView {
  public:
    virtual ~FibView() = default;
    // destinations.size() == next_hops.size() <= kMaxBulk, families may be mixed; 0 where no route matches.
    // The one virtual call a burst costs is per bulk, not per packet.
    virtual void lookup(std::span<const net::Address* const> destinations,
                        std::span<std::uint16_t> next_hops) const noexcept = 0;
};

struct RouteEntry {
    net::Prefix prefix;
    std::uint16_t next_hop;
};

struct RouteChange {
    net::Prefix prefix;
    std::optional<std::uint16_t> next_hop;  // nullopt: withdraw
};

struct FibStats {
    std::size_t routes_v4 = 0, routes_v6 = 0;
    std::size_t memory_bytes = 0;         // FIBs, and the map of routes behind them
    bool fib_v4 = false, fib_v6 = false;  // rte_fib; else the compact form
};

class Vrf {
  public:
    struct Options {
        std::size_t compact_limit = 1024;   // routes a family before rte_fib takes over
        std::size_t max_routes = 1u << 20;  // a family
        // At most so many second-level groups (of 256 entries), for prefixes longer than 24 bits. Copies begin small
        // and grow with the table up to here. IPv4: two-byte entries, so never over 32767; IPv6: two-byte entries up to
        // 32767, four-byte ones beyond.
        std::uint32_t tbl8_groups_v4 = 1u << 15;
        std::uint32_t tbl8_groups_v6 = 1u << 17;
        int socket_id = -1;
    };
    Vrf(std::string name, const Options& options);
    ~Vrf();
    Vrf(const Vrf&) = delete;
    Vrf& operator=(const Vrf&) = delete;

    // Applies a batch to the idle copy and returns the view to publish. All or nothing: on an error (full table, next
    // hop not in 1-kMaxNextHops, host bits) throws base::MachineError and what workers read, and routes(), are as
    // before. Withdrawing what is not there changes nothing; of several changes to one prefix the last counts; a batch
    // that changes nothing returns the view that is published already. The previous view stays valid until
    // grace_period_over() is called, and changes must not be applied again before that (std::logic_error).
    std::shared_ptr<const FibView> apply(std::span<const RouteChange> batch);
    // In place of publishing what apply() returned: everything is as before it. The caller lets go of that view first,
    // else a large table's idle copy is built again from nothing by the next batch.
    void abandon();
    // Every worker has passed a quiescent state since the last view was published: replay on the other copy.
    void grace_period_over();
    [[nodiscard]] bool waiting_for_grace_period() const noexcept;

    // What the last apply() returned, or an empty table's view before the first; never null.
    [[nodiscard]] std::shared_ptr<const FibView> view() const noexcept;
    [[nodiscard]] const std::map<net::Prefix, std::uint16_t>& routes() const noexcept;
    // Longest match by walking the route map: slow, for explain and telemetry. nullopt: no route.
    [[nodiscard]] std::optional<RouteEntry> lookup(const net::Address& address) const;
    [[nodiscard]] FibStats stats() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace cachewire::route
