#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Where routes lead: what an address has to be to be a next hop, and the forms that `via` has.
#include <optional>
#include <string>
#include <vector>

#include "config/sections.h"

namespace cachewire::config {

inline constexpr std::size_t kMaxVias = 64;
inline constexpr unsigned kMaxWeight = 255;
inline constexpr unsigned kMaxWeightSum = 1024;  // so many buckets has a group, and each member one at least

// Why this address can't be a next hop of the tenant, on `interface` where one is named; empty when it can.
std::string gateway_problem(const Loading& loading, std::size_t tenant, const net::ParsedAddress& address,
                            std::optional<std::size_t> interface);

// An interface by name that neighbours can be behind: no loopback.
std::optional<std::size_t> resolve_link(Loading& loading, const std::optional<Value>& value);

// `via` of a route to `prefix` in `tenant`: an address, a map, or a list of them. Empty, and reported, when it is
// wrong.
std::vector<RouteVia> read_vias(Loading& loading, const Value& value, std::size_t tenant, const net::Prefix& prefix);

// The tenant that a route or neighbour belongs to: of the object that it stands in, or written.
std::optional<std::size_t> read_owner(Loading& loading, const MapReader& map, std::optional<std::size_t> inside);

// `file` of the route list: reads it and puts it into the configuration.
void read_route_file(Loading& loading, const MapReader& map, std::size_t tenant);

}  // namespace cachewire::config
