// SPDX-License-Identifier: BSD-3-Clause
#include "control/routes.h"

#include <algorithm>
#include <optional>

#include "control/next_hops.h"

namespace cachewire::control {

namespace {

const config::Interface* interface_towards(const config::Config& config, std::size_t tenant,
                                           const net::Address& address) {
    const config::Interface* best = nullptr;
    unsigned best_length = 0;
    for (const auto& interface : config.interfaces) {
        if (interface.tenant != tenant) continue;
        for (const auto& own : interface.addresses) {
            if (!own.prefix.contains(address) || (best != nullptr && own.prefix.length < best_length)) continue;
            best = &interface;
            best_length = own.prefix.length;
        }
    }
    return best;
}

// nullopt: config has refused it.
std::optional<NextHopKey> neighbor_key(const config::Config& config, std::size_t tenant, const net::Address& address,
                                       std::optional<std::size_t> on, Registry& registry) {
    const config::Interface* interface = on ? &config.interfaces[*on] : interface_towards(config, tenant, address);
    if (interface == nullptr) return std::nullopt;
    return NextHopKey{registry.tenants.get(config.tenants[tenant].name), registry.interfaces.get(interface->name),
                      NextHopUse::neighbor, address};
}

class RoutePlan {
  public:
    RoutePlan(const config::Config& config, std::size_t tenant, Registry& registry)
        : config_(config),
          tenant_(tenant),
          slot_(registry.tenants.get(config.tenants[tenant].name)),
          registry_(registry) {}

    // Collected in the order of preference; the first of a prefix stays.
    RouteTable build() {
        for (const auto& interface : config_.interfaces)
            if (interface.tenant == tenant_) add_connected(interface);
        for (const auto& neighbor : config_.neighbors)
            if (neighbor.tenant == tenant_) add_neighbor(neighbor);
        for (const auto& interface : config_.interfaces)
            if (interface.tenant == tenant_) add_networks(interface);
        for (const auto& route : config_.routes)
            if (route.tenant == tenant_) add_static(route);
        for (const auto& file : config_.route_files)
            if (file.tenant == tenant_) add_file(file);
        std::stable_sort(routes_.begin(), routes_.end(),
                         [](const auto& a, const auto& b) { return a.prefix < b.prefix; });
        routes_.erase(std::unique(routes_.begin(), routes_.end(),
                                  [](const auto& a, const auto& b) { return a.prefix == b.prefix; }),
                      routes_.end());
        return std::move(routes_);
    }

  private:
    void add(const net::Prefix& prefix, std::uint16_t next_hop, RouteSource source) {
        routes_.push_back({prefix, next_hop, source});
    }

    std::uint16_t special(NextHopUse use, std::uint16_t interface = pipeline::kNoInterface) {
        return registry_.next_hops.get({slot_, interface, use, {}});
    }

    // Own addresses go first: they beat every other host route of the same address.
    void add_connected(const config::Interface& interface) {
        for (const auto& own : interface.addresses) {
            add(host_prefix(own.address), special(NextHopUse::local), RouteSource::connected);
            note_local(registry_, slot_, host_prefix(own.address));
            add_broadcasts(own.prefix);
        }
    }

    // RFC 1812 4.2.3.1: the all-ones and the obsolete all-zeros host address of a network with room for both.
    void add_broadcasts(const net::Prefix& network) {
        if (network.family != net::Family::ip4 || network.length > 30) return;
        const std::uint32_t first = network.address.v4();
        const std::uint32_t last = first | (network.length == 0 ? 0xffffffffu : (1u << (32 - network.length)) - 1);
        const std::uint16_t hop = special(NextHopUse::broadcast);
        add(host_prefix(net::Address::from_v4(first)), hop, RouteSource::connected);
        add(host_prefix(net::Address::from_v4(last)), hop, RouteSource::connected);
    }

    void add_networks(const config::Interface& interface) {
        const std::uint16_t index = registry_.interfaces.get(interface.name);
        for (const auto& own : interface.addresses)
            add(own.prefix, special(NextHopUse::glean, index), RouteSource::connected);
    }

    // A link-local address is on every link: no route leads there.
    void add_neighbor(const config::Neighbor& neighbor) {
        const auto key = neighbor_key(config_, tenant_, neighbor.address, neighbor.interface, registry_);
        if (!key || is_link_local(neighbor.address)) return;
        add(host_prefix(neighbor.address), registry_.next_hops.get(*key), RouteSource::connected);
    }

    // 0: config has refused it.
    std::uint16_t hop_of(const config::RouteVia& via) {
        const std::size_t owner = via.tenant.value_or(tenant_);
        if (via.address) {
            const auto key = neighbor_key(config_, owner, *via.address, via.interface, registry_);
            return key ? registry_.next_hops.get(*key) : std::uint16_t{0};
        }
        const std::uint16_t slot = registry_.tenants.get(config_.tenants[owner].name);
        if (via.interface) {
            const std::uint16_t index = registry_.interfaces.get(config_.interfaces[*via.interface].name);
            return registry_.next_hops.get({slot, index, NextHopUse::glean, {}});
        }
        return registry_.next_hops.get({slot_, slot, NextHopUse::leak, {}});
    }

    std::uint16_t hop_of(const std::vector<config::RouteVia>& vias) {
        if (vias.size() == 1) return hop_of(vias[0]);
        std::vector<std::pair<std::uint16_t, std::uint16_t>> members;
        for (const auto& via : vias)
            if (const std::uint16_t hop = hop_of(via); hop != 0) members.emplace_back(hop, via.weight);
        return members.empty() ? std::uint16_t{0}
                               : registry_.next_hops.get(group_key(registry_, slot_, std::move(members)));
    }

    void add_static(const config::Route& route) {
        const std::uint16_t hop = route.drop ? special(NextHopUse::drop) : hop_of(route.via);
        if (hop != 0) add(route.prefix, hop, RouteSource::configured);
    }

    void add_file(const config::RouteFile& file) {
        std::vector<std::uint16_t> hops;
        for (const auto& via : file.vias) hops.push_back(hop_of(via));
        const std::uint16_t drop = special(NextHopUse::drop);
        routes_.reserve(routes_.size() + file.routes->size());
        for (const auto& route : *file.routes) {
            const std::uint16_t hop = route.via == config::kFileDrop ? drop : hops[route.via];
            if (hop != 0) add(route.prefix, hop, RouteSource::configured);
        }
    }

    const config::Config& config_;
    std::size_t tenant_;
    std::uint16_t slot_;
    Registry& registry_;
    RouteTable routes_;
};

}  // namespace

std::uint16_t gateway_hop(const config::Config& config, std::size_t tenant, const net::Address& address,
                          Registry& registry) {
    const auto key = neighbor_key(config, tenant, address, std::nullopt, registry);
    return key ? registry.next_hops.get(*key) : std::uint16_t{0};
}

void enter_static_neighbors(const config::Config& config, Registry& registry) {
    registry.static_neighbors.clear();
    for (const auto& neighbor : config.neighbors) {
        const auto key = neighbor_key(config, neighbor.tenant, neighbor.address, neighbor.interface, registry);
        if (key) registry.static_neighbors[*key] = {neighbor.mac, false};
    }
}

RouteTable configured_routes(const config::Config& config, std::size_t tenant, Registry& registry) {
    return RoutePlan(config, tenant, registry).build();
}

const ConfiguredRoute* find_route(const RouteTable* table, const net::Prefix& prefix) {
    if (table == nullptr) return nullptr;
    const auto at = std::lower_bound(table->begin(), table->end(), prefix,
                                     [](const ConfiguredRoute& r, const net::Prefix& p) { return r.prefix < p; });
    return at != table->end() && at->prefix == prefix ? &*at : nullptr;
}

std::vector<route::RouteChange> route_changes(const RouteTable* have, const RouteTable& want, const FedTable& fed) {
    static const RouteTable kNone;
    const RouteTable& old = have != nullptr ? *have : kNone;
    std::vector<route::RouteChange> changes;
    if (old.empty()) changes.reserve(want.size());
    auto a = old.begin();
    auto b = want.begin();
    while (a != old.end() || b != want.end()) {
        if (b == want.end() || (a != old.end() && a->prefix < b->prefix)) {
            const auto in = fed.find(a->prefix);
            const std::uint16_t hop = in == fed.end() ? std::uint16_t{0} : in->second.best();
            changes.push_back({a->prefix, hop == 0 ? std::nullopt : std::optional(hop)});
            ++a;
            continue;
        }
        const bool same = a != old.end() && a->prefix == b->prefix;
        if (!same || a->next_hop != b->next_hop) changes.push_back({b->prefix, b->next_hop});
        if (same) ++a;
        ++b;
    }
    return changes;
}

}  // namespace cachewire::control
