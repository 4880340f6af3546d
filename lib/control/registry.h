#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What the control plane remembers from one snapshot to the next: indices, generations, compiled lists, and each
// tenant's VRF. SnapshotBuilder works on a copy and keeps it only when the whole build succeeded.
#include <compare>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "acl/classifier.h"
#include "control/index_map.h"
#include "net/flow_key.h"
#include "pipeline/snapshot.h"
#include "route/fib.h"

namespace cachewire::control {

enum class NextHopUse : std::uint8_t { neighbor, drop, local, broadcast, glean };

// Identity of a next hop: its content (MAC, kind) may change under the same index without touching a route.
struct NextHopKey {
    std::uint16_t tenant = 0;
    std::uint16_t interface = 0;
    NextHopUse use = NextHopUse::neighbor;
    net::Address via{};
    friend auto operator<=>(const NextHopKey&, const NextHopKey&) = default;
};

enum class Direction : std::uint8_t { in, out };

struct PolicerKey {
    std::uint16_t tenant = 0;
    Direction direction = Direction::in;
    friend auto operator<=>(const PolicerKey&, const PolicerKey&) = default;
};

inline constexpr std::uint16_t kMaxPolicers = 2 * pipeline::kMaxTenants;

struct Generations {
    std::uint16_t policy = 0;
    std::uint16_t route = 0;
};

struct Registry {
    IndexMap<> ports{"port", 0, pipeline::kMaxPorts};
    IndexMap<> interfaces{"interface", 0, pipeline::kMaxInterfaces};
    IndexMap<> tenants{"tenant", 1, pipeline::kMaxTenants};  // slot 0 is "", what belongs to no tenant
    IndexMap<NextHopKey> next_hops{"next hop", 1, route::kMaxNextHops};
    IndexMap<PolicerKey> policers{"policer", 0, kMaxPolicers};
    std::map<std::uint16_t, Generations> generations;                           // by tenant slot
    std::map<std::string, std::shared_ptr<const acl::Classifier>> classifiers;  // by list name
    std::map<std::uint16_t, std::shared_ptr<route::Vrf>> vrfs;                  // by tenant slot
};

}  // namespace cachewire::control
