// SPDX-License-Identifier: BSD-3-Clause
// Static neighbours and static routes: both lead to an address that has to be on a connected network of the tenant.
#include <map>
#include <set>

#include <fmt/format.h>

#include "config/sections.h"

namespace cachewire::config {
namespace {

constexpr Key kNeighbor[] = {{"tenant"}, {"address"}, {"mac"}, {"interface", kLater}};
constexpr Key kRoute[] = {
    {"tenant"},         {"prefix"},       {"via"},           {"action", kLater}, {"interface", kLater},
    {"weight", kLater}, {"file", kLater}, {"format", kLater}};

// Reports an address that is one of ours or on none of our networks.
bool is_reachable(Loading& loading, const Value& value, std::size_t tenant, const net::ParsedAddress& address) {
    const std::string text = net::to_string(address.address);
    const std::string& name = loading.config.tenants[tenant].name;
    if (const auto own = loading.own[tenant].find(address.address); own != loading.own[tenant].end()) {
        loading.reporter.error(value, fmt::format("{} is an address of our own, in line {}", text, own->second));
        return false;
    }
    if (loading.networks[tenant].is_broadcast(address)) {
        loading.reporter.error(
            value, fmt::format("{} is a network's own or its broadcast address; allowed: a host's address", text));
        return false;
    }
    if (!loading.interfaces_are_right || loading.networks[tenant].contains(address)) return true;
    loading.reporter.error(value, fmt::format("{} is on no connected network of tenant '{}'", text, name));
    return false;
}

// A gateway, when the value is one; lists and maps are forms that a later version brings.
std::optional<net::ParsedAddress> read_via(Reporter& reporter, const std::optional<Value>& value) {
    if (value && (value->node->kind == Node::Kind::sequence || value->node->kind == Node::Kind::map)) {
        reporter.error(*value, "several next hops, or one with options, are not supported yet; allowed: one address");
        return std::nullopt;
    }
    return read_address(reporter, value);
}

using Seen = std::vector<std::map<net::Prefix, unsigned>>;  // by tenant: prefix -> line

void read_route(Loading& loading, const Value& item, std::optional<std::size_t> inside, Seen& seen) {
    Reporter& reporter = loading.reporter;
    const MapReader map(reporter, item, kRoute);
    const bool has_later_form = map.has_later_keys();
    auto tenant = inside;
    if (!inside) {
        tenant = read_tenant_reference(loading, map);
    } else if (const auto written = map.get("tenant")) {
        const auto named = loading.tenants.resolve(reporter, written);
        if (named && named != inside) {
            reporter.error(*written, fmt::format("stands in tenant '{}'; allowed: that name, or none",
                                                 loading.config.tenants[*inside].name));
        }
    }
    const auto prefix_value = has_later_form ? map.get("prefix") : map.require("prefix");
    const auto via_value = has_later_form ? map.get("via") : map.require("via");
    const auto prefix = read_prefix(reporter, prefix_value);
    const auto via = read_via(reporter, via_value);
    if (tenant && prefix) {
        const auto [other, fresh] = seen[*tenant].try_emplace(*prefix, prefix_value->node->line);
        if (!fresh)
            reporter.error(*prefix_value, fmt::format("a second route to {}; the first stands in line {}",
                                                      net::to_string(*prefix), other->second));
    }
    if (prefix && via && prefix->family != via->family) {
        reporter.error(*via_value, fmt::format("{} and {} are of different families", net::to_string(*prefix),
                                               net::to_string(via->address)));
        return;
    }
    if (!tenant || !via || !is_reachable(loading, *via_value, *tenant, *via) || !prefix) return;
    loading.config.routes.push_back({*tenant, *prefix, via->address, false});
}

}  // namespace

void read_neighbors(Loading& loading, const MapReader& top) {
    Reporter& reporter = loading.reporter;
    std::vector<std::map<net::Address, unsigned>> seen(loading.config.tenants.size());
    for (const Value& item : read_list(reporter, top.get("neighbors"))) {
        const MapReader map(reporter, item, kNeighbor);
        const auto tenant = read_tenant_reference(loading, map);
        const auto address_value = map.require("address");
        const auto address = read_address(reporter, address_value);
        const auto mac = read_mac(reporter, map.require("mac"));
        if (!tenant || !address) continue;
        const auto [other, fresh] = seen[*tenant].try_emplace(address->address, address_value->node->line);
        if (!fresh) {
            reporter.error(*address_value, fmt::format("a second neighbour {}; the first stands in line {}",
                                                       net::to_string(address->address), other->second));
        } else if (is_reachable(loading, *address_value, *tenant, *address) && mac) {
            loading.config.neighbors.push_back({*tenant, address->address, *mac});
        }
    }
}

void read_routes(Loading& loading, const MapReader& top) {
    Seen seen(loading.config.tenants.size());
    for (const Nested& nested : loading.nested) {
        for (const Value& item : nested.routes) read_route(loading, item, nested.tenant, seen);
    }
    for (const Value& item : read_list(loading.reporter, top.get("routes")))
        read_route(loading, item, std::nullopt, seen);
}

}  // namespace cachewire::config
