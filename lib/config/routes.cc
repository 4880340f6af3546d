// SPDX-License-Identifier: BSD-3-Clause
// Static neighbours and static routes.
#include <map>

#include <fmt/format.h>

#include "config/gateways.h"
#include "config/sections.h"

namespace cachewire::config {
namespace {

constexpr Key kNeighbor[] = {{"tenant"}, {"address"}, {"mac"}, {"interface"}};
constexpr Key kRoute[] = {{"tenant"}, {"prefix"}, {"via"}, {"action"}, {"file"}, {"format"}};
enum class RouteAction { drop };
constexpr Choice<RouteAction> kRouteActions[] = {{"drop", RouteAction::drop}};

using Seen = std::vector<std::map<net::Prefix, Origin>>;  // by tenant

void add_neighbor(Loading& loading, const MapReader& map, std::size_t tenant, const net::ParsedAddress& address) {
    Reporter& reporter = loading.reporter;
    const auto value = map.get("interface");
    const auto interface = resolve_link(loading, value);
    const auto mac = read_mac(reporter, map.require("mac"));
    if (value && !interface) return;
    if (interface && loading.config.interfaces[*interface].tenant != tenant) {
        reporter.error(*value, fmt::format("interface '{}' is not of tenant '{}'", value->node->text,
                                           loading.config.tenants[tenant].name));
        return;
    }
    if (const auto problem = gateway_problem(loading, tenant, address, interface); !problem.empty()) {
        reporter.error(*map.get("address"), problem);
        return;
    }
    if (mac) loading.config.neighbors.push_back({tenant, address.address, *mac, interface});
}

// What has a prefix: `via` or `action`, exactly one of them.
void read_single_route(Loading& loading, const MapReader& map, std::optional<std::size_t> tenant, Seen& seen) {
    Reporter& reporter = loading.reporter;
    const auto prefix_value = map.require("prefix");
    const auto prefix = read_prefix(reporter, prefix_value);
    const auto action_value = map.get("action");
    const auto via_value = action_value ? map.get("via") : map.require("via");
    if (const auto format = map.get("format")) reporter.error(*format, "belongs to `file`; allowed: beside `file`");
    RouteAction action{};
    if (action_value && via_value)
        reporter.error(*via_value, "a route that drops leads nowhere; allowed: `via` or `action: drop`");
    const bool drop = read_choice(reporter, action_value, action, kRouteActions);
    if (!tenant || !prefix) {
        // A next hop by itself still says whether it is one.
        if (via_value && via_value->node->kind == Node::Kind::scalar) read_address(reporter, via_value);
        return;
    }
    const auto [other, fresh] = seen[*tenant].try_emplace(*prefix, origin(*prefix_value->node));
    if (!fresh)
        reporter.error(*prefix_value, fmt::format("a second route to {}; the first stands in {}",
                                                  net::to_string(*prefix), reporter.say(other->second, *prefix_value)));
    if (drop && !via_value) loading.config.routes.push_back({*tenant, *prefix, {}, true});
    if (action_value || !via_value) return;
    auto vias = read_vias(loading, *via_value, *tenant, *prefix);
    if (!vias.empty()) loading.config.routes.push_back({*tenant, *prefix, std::move(vias), false});
}

void read_route(Loading& loading, const Value& item, std::optional<std::size_t> inside, Seen& seen) {
    const MapReader map(loading.reporter, item, kRoute);
    if (!map.valid()) return;
    const auto tenant = read_owner(loading, map, inside);
    if (!map.get("file")) return read_single_route(loading, map, tenant, seen);
    for (const char* key : {"prefix", "action"})
        if (const auto value = map.get(key))
            loading.reporter.error(*value, "the routes come from `file`; allowed: one of both");
    if (tenant) read_route_file(loading, map, *tenant);
}

// A prefix that stands in two places of one tenant, files included, is two minds about one route.
void refuse_repetitions(Loading& loading, const Seen& seen) {
    for (std::size_t i = 0; i < loading.config.route_files.size(); ++i) {
        const RouteFile& file = loading.config.route_files[i];
        Reporter own(file.path);
        const auto find = [&](const RouteFile& in, const net::Prefix& prefix) {
            const auto at = std::lower_bound(in.routes->begin(), in.routes->end(), prefix,
                                             [](const FileRoute& r, const net::Prefix& p) { return r.prefix < p; });
            return at != in.routes->end() && at->prefix == prefix ? &*at : nullptr;
        };
        for (const auto& [prefix, origin] : seen[file.tenant]) {
            const FileRoute* here = find(file, prefix);
            if (here != nullptr)
                own.error(here->line, 1, "",
                          fmt::format("a second route to {}; the first stands in {}:{}", net::to_string(prefix),
                                      loading.reporter.path(origin.file), origin.line));
        }
        for (std::size_t j = 0; j < i; ++j) {
            const RouteFile& other = loading.config.route_files[j];
            if (other.tenant != file.tenant) continue;
            for (const FileRoute& route : *file.routes) {
                const FileRoute* there = find(other, route.prefix);
                if (there != nullptr)
                    own.error(route.line, 1, "",
                              fmt::format("a second route to {}; the first stands in {}:{}",
                                          net::to_string(route.prefix), other.path, there->line));
            }
        }
        loading.reporter.absorb(std::move(own));
    }
}

}  // namespace

void read_neighbors(Loading& loading, const MapReader& top) {
    Reporter& reporter = loading.reporter;
    std::vector<std::map<std::pair<net::Address, std::string>, Origin>> seen(loading.config.tenants.size());
    for (const Value& item : read_list(reporter, top.get("neighbors"))) {
        const MapReader map(reporter, item, kNeighbor);
        const auto tenant = read_tenant_reference(loading, map);
        const auto address_value = map.require("address");
        const auto address = read_address(reporter, address_value);
        if (!tenant || !address) {
            read_mac(reporter, map.require("mac"));
            continue;
        }
        // Each link has link-local addresses of its own.
        const auto interface = map.get("interface");
        const std::string link = is_link_local(address->address) && interface ? interface->node->text : "";
        const auto [other, fresh] = seen[*tenant].try_emplace({address->address, link}, origin(*address_value->node));
        if (fresh) {
            add_neighbor(loading, map, *tenant, *address);
        } else {
            reporter.error(*address_value,
                           fmt::format("a second neighbour {}; the first stands in {}",
                                       net::to_string(address->address), reporter.say(other->second, *address_value)));
            read_mac(reporter, map.require("mac"));
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
    refuse_repetitions(loading, seen);
}

}  // namespace cachewire::config
