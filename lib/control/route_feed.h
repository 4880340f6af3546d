#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Routes and neighbours at run time: what the slow path learns and what the kernel's routing daemons say, into the FIBs
// under traffic. Changes queue up and flush() publishes them in batches: a copy of the current snapshot with changed
// next hops, FIB views and route generations, so no worker waits and no packet is lost.
//
//   set_neighbor(bound)    -> content of one next hop, and a host route     }
//   set_neighbor(failed)   -> ECMP groups do without it                     }  flush(): one snapshot
//   set_route, withdraw    -> a change of one VRF's FIB                     }
//
// Preference: connected, the configuration's, the kernel's, a neighbour's. A route that a better source has for the
// same prefix waits behind it. A reload changes the configuration's routes and no others.
//
// At most kFlushesPerSecond flushes a second touch one VRF, because each makes its sessions look their next hop up
// again, and kFlushEveryMs lie between any two. A batch that does not fit into a VRF's FIB is refused as a whole,
// logged and counted; what was there stays, and the batch is tried again after a second, then less and less often.
// Control thread only, and flush() under the lock that readers of the registry take.
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "control/publisher.h"
#include "control/snapshot_builder.h"

namespace cachewire::control {

// One next hop: a neighbour on an interface of the tenant; without an address the destination itself is on that link;
// `local`, alone: an address of the router's.
struct FedVia {
    std::uint16_t interface = 0;  // index in the snapshot
    net::Address address{};
    std::uint16_t weight = 1;
    bool local = false;
    friend bool operator==(const FedVia&, const FedVia&) = default;
};

class RouteFeed {
  public:
    static constexpr std::uint64_t kFlushesPerSecond = 20;
    static constexpr std::uint64_t kFlushEveryMs = 10;
    static constexpr std::uint64_t kRetryFirstMs = 1000, kRetryLastMs = 60000;
    // Free next hop or group indices below which those that no route leads to are taken back. Neighbors come and go,
    // and there are 32766 for all.
    static constexpr std::size_t kReclaimBelow = 8192;
    static constexpr std::uint64_t kReclaimEveryMs = 1000;
    static constexpr std::size_t kMaxBatch = 8192;  // changes a VRF and flush: bounds how long a flush takes

    struct Stats {
        std::uint64_t flushes = 0;  // snapshots published
        std::uint64_t changed = 0;  // routes added, replaced or withdrawn
        std::uint64_t refused = 0;  // changes of batches that did not fit
        std::uint64_t pending = 0;
    };

    RouteFeed(SnapshotBuilder& builder, Publisher& publisher) : builder_(builder), publisher_(publisher) {}

    // Adds or replaces `source`'s route; several next hops make an ECMP group, none make a route that drops. `source`
    // is kernel or neighbor. Weights add up to at most route::Group::kBuckets (std::invalid_argument).
    void set_route(RouteSource source, std::uint16_t tenant, const net::Prefix& prefix, std::vector<FedVia> via);
    // What is not there is no error.
    void withdraw(RouteSource source, std::uint16_t tenant, const net::Prefix& prefix);
    // All of `source`, as when its daemon is gone.
    void withdraw_all(RouteSource source, std::uint16_t tenant);

    // What is known of a neighbour now. With a MAC address its next hop forwards and it gets a host route, unless it is
    // link-local; without, the next hop is unresolved and the host route goes. Static neighbours stay as configured.
    void set_neighbor(std::uint16_t tenant, std::uint16_t interface, const net::Address& address,
                      const NeighborBinding& binding);

    // Publishes what is pending and may be. True: a snapshot was published. Does nothing while the one before waits for
    // its grace period; call it in every round of the control loop.
    bool flush(std::uint64_t now_ms);

    [[nodiscard]] Stats stats() const noexcept;

  private:
    struct Change {
        net::Prefix prefix;
        bool withdraw = false;
        std::vector<FedVia> via;
    };
    struct Changes {  // of one source, in order
        std::vector<Change> all;
        std::size_t next = 0;
        // The last refused change of each prefix, until it is tried again or there is a newer one.
        std::map<net::Prefix, Change> refused;
        std::uint64_t retry_ms = 0;
        std::uint64_t retry_after_ms = kRetryFirstMs;
        [[nodiscard]] std::size_t left() const noexcept { return all.size() - next; }
    };
    struct Queue {
        std::map<NextHopKey, NeighborBinding> bindings;
        Changes kernel, neighbor;
        bool kernel_next = false;  // the sources take turns, so that one's full FIB is not the other's refusal
        std::optional<std::uint64_t> flushed_ms;
        std::optional<std::uint64_t> complained_ms;
        [[nodiscard]] Changes& of(RouteSource source) noexcept {
            return source == RouteSource::kernel ? kernel : neighbor;
        }
        [[nodiscard]] std::size_t left() const noexcept { return bindings.size() + kernel.left() + neighbor.left(); }
    };
    struct Work;

    void add(RouteSource source, std::uint16_t tenant, Change change);
    void retry(std::uint64_t now_ms);
    void reclaim(std::uint64_t now_ms, Work& work);
    void apply(std::uint16_t tenant, Queue& queue, Work& work);
    void apply_changes(std::uint16_t tenant, RouteSource source, Changes& changes, std::size_t count, Work& work);
    void bind(const NextHopKey& key, const NeighborBinding& binding, Work& work);
    std::uint16_t next_hop(std::uint16_t tenant, const Change& change, Work& work);

    SnapshotBuilder& builder_;
    Publisher& publisher_;
    std::map<std::uint16_t, Queue> queues_;  // by tenant slot
    Stats stats_;
    std::optional<std::uint64_t> reclaimed_ms_, flushed_ms_;
};

}  // namespace cachewire::control
