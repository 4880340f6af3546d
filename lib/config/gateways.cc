// SPDX-License-Identifier: BSD-3-Clause
#include "config/gateways.h"

#include <algorithm>

#include <fmt/format.h>

namespace cachewire::config {
namespace {

constexpr Key kVia[] = {{"address"}, {"interface"}, {"tenant"}, {"weight"}};

// An interface by name, which has to be this tenant's.
std::optional<std::size_t> read_interface_of(Loading& loading, const std::optional<Value>& value, std::size_t tenant) {
    const auto index = resolve_link(loading, value);
    if (!index) return std::nullopt;
    const std::size_t owner = loading.config.interfaces[*index].tenant;
    if (owner == tenant || !loading.interfaces_are_right) return index;
    loading.reporter.error(*value,
                           fmt::format("interface '{}' belongs to tenant '{}'; allowed: one of tenant '{}'",
                                       loading.config.interfaces[*index].name, loading.config.tenants[owner].name,
                                       loading.config.tenants[tenant].name));
    return std::nullopt;
}

bool is_gateway(Loading& loading, const Value& value, std::size_t tenant, const net::ParsedAddress& address,
                std::optional<std::size_t> interface, const net::Prefix& prefix) {
    if (prefix.family != address.family) {
        loading.reporter.error(value, fmt::format("{} and {} are of different families", net::to_string(prefix),
                                                  net::to_string(address.address)));
        return false;
    }
    const std::string problem = gateway_problem(loading, tenant, address, interface);
    if (!problem.empty()) loading.reporter.error(value, problem);
    return problem.empty();
}

// {address, interface, tenant, weight}
std::optional<RouteVia> read_via_map(Loading& loading, const Value& value, std::size_t tenant,
                                     const net::Prefix& prefix) {
    Reporter& reporter = loading.reporter;
    const std::size_t errors_before = reporter.errors();
    const MapReader map(reporter, value, kVia);
    RouteVia via;
    read_number(reporter, map.get("weight"), via.weight, 1, kMaxWeight);
    std::size_t owner = tenant;
    if (const auto other = map.get("tenant")) {
        via.tenant = loading.tenants.resolve(reporter, other);
        if (via.tenant && loading.config.tenants[tenant].sessions != SessionMode::none &&
            loading.config.tenants[*via.tenant].sessions == SessionMode::none)
            reporter.error(*other,
                           fmt::format("tenant '{}' has no sessions, so replies would not find those of tenant '{}'; "
                                       "allowed: a tenant with `sessions`",
                                       loading.config.tenants[*via.tenant].name, loading.config.tenants[tenant].name));
        if (via.tenant == tenant) reporter.error(*other, "the route's own tenant; allowed: another one, or none");
        owner = via.tenant.value_or(tenant);
    }
    const auto interface = map.get("interface");
    if (reporter.errors() == errors_before) via.interface = read_interface_of(loading, interface, owner);
    const auto address_value = map.get("address");
    const auto address = read_address(reporter, address_value);
    if (!address_value && !interface && !map.get("tenant") && map.valid())
        reporter.error(value, "leads nowhere; allowed: an `address`, an `interface` or a `tenant`");
    if (reporter.errors() != errors_before) return std::nullopt;
    if (!address) return via;
    via.address = address->address;
    if (!is_gateway(loading, *address_value, owner, *address, via.interface, prefix)) return std::nullopt;
    return via;
}

std::optional<RouteVia> read_via(Loading& loading, const Value& value, std::size_t tenant, const net::Prefix& prefix) {
    if (value.node->kind == Node::Kind::map) return read_via_map(loading, value, tenant, prefix);
    const auto address = read_address(loading.reporter, value);
    if (!address || !is_gateway(loading, value, tenant, *address, {}, prefix)) return std::nullopt;
    RouteVia via;
    via.address = address->address;
    return via;
}

bool is_same_place(const RouteVia& a, const RouteVia& b) {
    return a.address == b.address && a.interface == b.interface && a.tenant == b.tenant;
}

}  // namespace

std::optional<std::size_t> resolve_link(Loading& loading, const std::optional<Value>& value) {
    const auto index = loading.interfaces.resolve(loading.reporter, value);
    if (!index || !loading.config.interfaces[*index].is_loopback()) return index;
    loading.reporter.error(*value,
                           fmt::format("'{}' is a loopback: nobody is behind it; allowed: an interface of a port",
                                       loading.config.interfaces[*index].name));
    return std::nullopt;
}

std::string gateway_problem(const Loading& loading, std::size_t tenant, const net::ParsedAddress& address,
                            std::optional<std::size_t> interface) {
    const std::string text = net::to_string(address.address);
    if (const auto own = loading.own[tenant].find(address.address); own != loading.own[tenant].end())
        return fmt::format("{} is an address of our own, in {}:{}", text, loading.reporter.path(own->second.file),
                           own->second.line);
    if (loading.networks[tenant].is_broadcast(address))
        return fmt::format("{} is a network's own or its broadcast address; allowed: a host's address", text);
    if (is_link_local(address.address)) {
        if (interface || !loading.interfaces_are_right) return "";
        return fmt::format("{} is a link-local address, which every link may have; allowed: beside `interface`", text);
    }
    if (!loading.interfaces_are_right) return "";
    if (interface) {
        const Interface& on = loading.config.interfaces[*interface];
        if (std::any_of(on.addresses.begin(), on.addresses.end(),
                        [&](const InterfaceAddress& own) { return own.prefix.contains(address.address); }))
            return "";
        return fmt::format("{} is on no network of interface '{}'", text, on.name);
    }
    if (loading.networks[tenant].contains(address)) return "";
    return fmt::format("{} is on no connected network of tenant '{}'", text, loading.config.tenants[tenant].name);
}

void check_rule_next_hops(Loading& loading) {
    for (const auto& [value, acl, address] : loading.rule_next_hops) {
        for (std::size_t tenant = 0; tenant < loading.config.tenants.size(); ++tenant) {
            if (loading.config.tenants[tenant].acl != acl) continue;
            const std::string problem = gateway_problem(loading, tenant, address, std::nullopt);
            if (problem.empty()) continue;
            loading.reporter.error(value, problem);
            break;
        }
    }
}

std::vector<RouteVia> read_vias(Loading& loading, const Value& value, std::size_t tenant, const net::Prefix& prefix) {
    Reporter& reporter = loading.reporter;
    if (value.node->kind != Node::Kind::sequence) {
        auto via = read_via(loading, value, tenant, prefix);
        return via ? std::vector<RouteVia>{*via} : std::vector<RouteVia>{};
    }
    const auto items = read_list(reporter, value);
    const std::size_t errors_before = reporter.errors();
    std::vector<RouteVia> vias;
    unsigned weights = 0;
    if (items.empty()) reporter.error(value, "no next hop; allowed: at least one");
    if (items.size() > kMaxVias) {
        reporter.error(value, fmt::format("{} next hops; allowed: at most {}", items.size(), kMaxVias));
        return {};
    }
    for (const Value& item : items) {
        const auto via = read_via(loading, item, tenant, prefix);
        if (!via) continue;
        if (items.size() > 1 && !via->address)
            reporter.error(item, "among several next hops without an address; allowed: `address`");
        if (std::any_of(vias.begin(), vias.end(), [&](const RouteVia& other) { return is_same_place(*via, other); }))
            reporter.error(item, "the same next hop twice; allowed: once, with a `weight`");
        vias.push_back(*via);
        weights += via->weight;
    }
    if (weights > kMaxWeightSum)
        reporter.error(value, fmt::format("weights of {} in all; allowed: at most {}", weights, kMaxWeightSum));
    return reporter.errors() == errors_before ? vias : std::vector<RouteVia>{};
}

std::optional<std::size_t> read_owner(Loading& loading, const MapReader& map, std::optional<std::size_t> inside) {
    if (!inside) return read_tenant_reference(loading, map);
    const auto written = map.get("tenant");
    const auto named = loading.tenants.resolve(loading.reporter, written);
    if (named && named != inside) {
        loading.reporter.error(*written, fmt::format("stands in tenant '{}'; allowed: that name, or none",
                                                     loading.config.tenants[*inside].name));
    }
    return inside;
}

}  // namespace cachewire::config
