#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What the control plane remembers from one snapshot to the next: indices, generations, compiled lists, each tenant's
// VRF, and what has been learned about neighbours. SnapshotBuilder works on a copy and keeps it only when the whole
// build succeeded.
#include <array>
#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "acl/classifier.h"
#include "control/index_map.h"
#include "control/rule_hits.h"
#include "net/flow_key.h"
#include "net/mac.h"
#include "pipeline/snapshot.h"
#include "route/fib.h"

namespace cachewire::control {

// glean: on the link, and the destination itself is the neighbour. group: `interface` is the group's number. leak:
// `interface` is the slot of the tenant whose routes decide. wire: `interface` is the one that stands for a port in a
// transparent pair, and the other port is where its frames go; of no tenant.
enum class NextHopUse : std::uint8_t { neighbor, drop, local, broadcast, glean, group, leak, wire };

// Identity of a next hop: its content (MAC, kind) may change under the same index without touching a route.
struct NextHopKey {
    std::uint16_t tenant = 0;
    std::uint16_t interface = 0;
    NextHopUse use = NextHopUse::neighbor;
    net::Address via{};
    friend auto operator<=>(const NextHopKey&, const NextHopKey&) = default;
};

// What is known of a neighbour. `failed`: asked for and silent; ECMP groups do without it.
struct NeighborBinding {
    std::optional<net::Mac> mac;
    bool failed = false;
    friend bool operator==(const NeighborBinding&, const NeighborBinding&) = default;
};

// Identity of an ECMP group: the tenant, and its members by next hop index, with their weights.
using GroupKey = std::pair<std::uint16_t, std::vector<std::pair<std::uint16_t, std::uint16_t>>>;

enum class PolicerUse : std::uint8_t {
    tenant_in,
    tenant_out,
    interface_in,
    interface_out,
    traffic_class,
    rule,
    shared
};

// Identity of a policer's attachment. `owner`: tenant slot, interface or class; rules go by LIST/RULE, the one bucket
// of a shared policer by that policer's name.
struct PolicerKey {
    PolicerUse use = PolicerUse::tenant_in;
    std::uint16_t owner = 0;
    std::string name;
    friend auto operator<=>(const PolicerKey&, const PolicerKey&) = default;
};

inline constexpr std::uint16_t kMaxPolicers = 16384;

struct Generations {
    std::uint16_t policy = 0;
    std::uint16_t route = 0;
    std::uint16_t list = 0;          // the policy generation when the list changed last
    std::uint16_t judged_route = 0;  // of lists that look at the egress: the route generation that `policy` stands for
};

// The configuration's routes of one tenant, sorted by prefix, each prefix once.
enum class RouteSource : std::uint8_t { connected, configured, kernel, neighbor };
struct ConfiguredRoute {
    net::Prefix prefix;
    std::uint16_t next_hop;
    RouteSource source;  // connected or configured
    friend bool operator==(const ConfiguredRoute&, const ConfiguredRoute&) = default;
};
using RouteTable = std::vector<ConfiguredRoute>;

// A transparent pair by its ports' indices.
using Pairs = std::vector<std::array<std::uint16_t, 2>>;

struct Registry {
    IndexMap<> ports{"port", 0, pipeline::kMaxPorts};
    IndexMap<> interfaces{"interface", 0, pipeline::kMaxInterfaces};
    IndexMap<> tenants{"tenant", 1, pipeline::kMaxTenants};  // slot 0 is "", what belongs to no tenant
    IndexMap<NextHopKey> next_hops{"next hop", 1, route::kMaxNextHops};
    IndexMap<GroupKey> groups{"ECMP group", 0, route::kMaxNextHops};
    IndexMap<PolicerKey> policers{"policer", 0, kMaxPolicers};
    IndexMap<> classes{"class", 1, pipeline::kMaxClasses};
    // What a tenant's rules call next hops, by Treatment::next_hop, where they name any; by tenant slot.
    std::map<std::uint16_t, std::shared_ptr<const std::vector<std::uint16_t>>> policy_hops;
    // All that rules have named since the start: sessions may hold them for good (`on_policy_change: keep`).
    std::set<std::uint16_t> kept_hops;
    std::map<std::uint16_t, Generations> generations;   // by tenant slot
    std::map<std::uint16_t, std::uint64_t> local_ends;  // as pipeline::Tenant's, by tenant slot; bits are only added
    std::map<std::string, std::shared_ptr<const acl::Classifier>> classifiers;  // by list name
    std::map<std::string, std::shared_ptr<const ListHits>> hits;                // by list name
    std::map<std::uint16_t, std::shared_ptr<route::Vrf>> vrfs;                  // by tenant slot
    std::map<std::uint16_t, std::shared_ptr<const RouteTable>> configured;      // by tenant slot
    std::vector<std::shared_ptr<const route::Group>> group_tables;              // by group
    std::map<NextHopKey, NeighborBinding> static_neighbors;                     // of the configuration
    std::map<NextHopKey, NeighborBinding> learned_neighbors;                    // see RouteFeed
    Pairs pairs;
};

}  // namespace cachewire::control
