// SPDX-License-Identifier: BSD-3-Clause
#include "control/routes.h"

#include <cstring>
#include <optional>

namespace cachewire::control {

namespace {

net::Prefix host_prefix(const net::Address& address) {
    const bool v4 = address.is_v4();
    return {address, static_cast<std::uint8_t>(v4 ? 32 : 128), v4 ? net::Family::ip4 : net::Family::ip6};
}

// MAC addresses and tags as they go out. Two tags leave as 802.1ad outside 802.1Q, which is what receivers of QinQ
// expect.
void write_l2_header(route::NextHop& hop, const config::Interface& interface, const net::Mac& source,
                     const net::Mac& destination) {
    std::uint8_t* out = hop.l2_header.data();
    std::memcpy(out, destination.bytes.data(), 6);
    std::memcpy(out + 6, source.bytes.data(), 6);
    std::uint8_t* tag = out + 12;
    const auto push_tag = [&tag](std::uint16_t tpid, std::uint16_t vlan) {
        *tag++ = static_cast<std::uint8_t>(tpid >> 8);
        *tag++ = static_cast<std::uint8_t>(tpid);
        *tag++ = static_cast<std::uint8_t>(vlan >> 8);
        *tag++ = static_cast<std::uint8_t>(vlan);
    };
    if (interface.vlan != 0) push_tag(interface.inner_vlan != 0 ? 0x88a8 : 0x8100, interface.vlan);
    if (interface.inner_vlan != 0) push_tag(0x8100, interface.inner_vlan);
    hop.l2_length = static_cast<std::uint8_t>(tag - out + 2);
}

class RoutePlan {
  public:
    RoutePlan(const config::Config& config, std::size_t tenant, Registry& registry, pipeline::Snapshot& snapshot)
        : config_(config),
          tenant_(tenant),
          slot_(registry.tenants.get(config.tenants[tenant].name)),
          registry_(registry),
          snapshot_(snapshot) {}

    RouteTable build() {
        for (const auto& interface : config_.interfaces)
            if (interface.tenant == tenant_) add_connected(interface);
        for (const auto& neighbor : config_.neighbors)
            if (neighbor.tenant == tenant_) add_neighbor(neighbor);
        for (const auto& route : config_.routes)
            if (route.tenant == tenant_) add_static(route);
        return std::move(routes_);
    }

  private:
    std::uint16_t next_hop(const NextHopKey& key, const route::NextHop& content) {
        const std::uint16_t index = registry_.next_hops.get(key);
        if (snapshot_.next_hops.size() <= index) snapshot_.next_hops.resize(index + 1u);
        snapshot_.next_hops[index] = content;
        return index;
    }

    std::uint16_t special(NextHopUse use, route::NextHopKind kind, std::uint16_t interface = pipeline::kNoInterface) {
        route::NextHop hop;
        hop.kind = kind;
        hop.interface = interface;
        return next_hop({slot_, interface, use, {}}, hop);
    }

    // Own addresses go first: they beat every other host route of the same address.
    void add_connected(const config::Interface& interface) {
        const std::uint16_t index = registry_.interfaces.get(interface.name);
        for (const auto& own : interface.addresses) {
            routes_[host_prefix(own.address)] = special(NextHopUse::local, route::NextHopKind::local);
            add_broadcasts(own.prefix);
            routes_.try_emplace(own.prefix, special(NextHopUse::glean, route::NextHopKind::unresolved, index));
        }
    }

    // RFC 1812 4.2.3.1: the all-ones and the obsolete all-zeros host address of a network with room for both.
    void add_broadcasts(const net::Prefix& network) {
        if (network.family != net::Family::ip4 || network.length > 30) return;
        const std::uint32_t first = network.address.v4();
        const std::uint32_t last = first | (network.length == 0 ? 0xffffffffu : (1u << (32 - network.length)) - 1);
        const std::uint16_t hop = special(NextHopUse::broadcast, route::NextHopKind::broadcast);
        routes_.try_emplace(host_prefix(net::Address::from_v4(first)), hop);
        routes_.try_emplace(host_prefix(net::Address::from_v4(last)), hop);
    }

    const config::Interface* interface_towards(const net::Address& address) const {
        const config::Interface* best = nullptr;
        unsigned best_length = 0;
        for (const auto& interface : config_.interfaces) {
            if (interface.tenant != tenant_) continue;
            for (const auto& own : interface.addresses) {
                if (!own.prefix.contains(address) || (best != nullptr && own.prefix.length < best_length)) continue;
                best = &interface;
                best_length = own.prefix.length;
            }
        }
        return best;
    }

    // The next hop for one neighbour's address: forwarding where its MAC is known, unresolved otherwise, one index for
    // both.
    std::uint16_t neighbor_hop(const config::Interface& interface, const net::Address& address,
                               std::optional<net::Mac> mac) {
        const std::uint16_t index = registry_.interfaces.get(interface.name);
        const pipeline::Interface& egress = snapshot_.interfaces[index];
        route::NextHop hop;
        hop.kind = mac ? route::NextHopKind::forward : route::NextHopKind::unresolved;
        hop.port = egress.port;
        hop.interface = index;
        hop.mtu = egress.mtu;
        hop.via = address;
        write_l2_header(hop, interface, egress.mac, mac.value_or(net::Mac{}));
        return next_hop({slot_, index, NextHopUse::neighbor, address}, hop);
    }

    std::optional<net::Mac> static_mac(const net::Address& address) const {
        for (const auto& neighbor : config_.neighbors)
            if (neighbor.tenant == tenant_ && neighbor.address == address) return neighbor.mac;
        return std::nullopt;
    }

    void add_neighbor(const config::Neighbor& neighbor) {
        const config::Interface* interface = interface_towards(neighbor.address);
        if (interface == nullptr) return;  // config has refused it
        routes_.try_emplace(host_prefix(neighbor.address), neighbor_hop(*interface, neighbor.address, neighbor.mac));
    }

    void add_static(const config::Route& route) {
        if (route.drop) {
            routes_.try_emplace(route.prefix, special(NextHopUse::drop, route::NextHopKind::drop));
            return;
        }
        const config::Interface* interface = interface_towards(*route.via);
        if (interface == nullptr) return;  // config has refused it
        routes_.try_emplace(route.prefix, neighbor_hop(*interface, *route.via, static_mac(*route.via)));
    }

    const config::Config& config_;
    std::size_t tenant_;
    std::uint16_t slot_;
    Registry& registry_;
    pipeline::Snapshot& snapshot_;
    RouteTable routes_;
};

}  // namespace

RouteTable desired_routes(const config::Config& config, std::size_t tenant, Registry& registry,
                          pipeline::Snapshot& snapshot) {
    return RoutePlan(config, tenant, registry, snapshot).build();
}

std::vector<route::RouteChange> route_changes(const RouteTable& have, const RouteTable& want) {
    std::vector<route::RouteChange> changes;
    for (const auto& [prefix, hop] : have)
        if (!want.contains(prefix)) changes.push_back({prefix, std::nullopt});
    for (const auto& [prefix, hop] : want) {
        const auto it = have.find(prefix);
        if (it == have.end() || it->second != hop) changes.push_back({prefix, hop});
    }
    return changes;
}

}  // namespace cachewire::control
