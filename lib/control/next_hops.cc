// SPDX-License-Identifier: BSD-3-Clause
#include "control/next_hops.h"

#include <algorithm>
#include <cstring>

#include "session/entry.h"

namespace cachewire::control {

namespace {

// MAC addresses and tags as they go out. Two tags leave as 802.1ad outside 802.1Q, which is what receivers of QinQ
// expect.
void write_l2_header(route::NextHop& hop, const pipeline::Interface& interface, const net::Mac& destination) {
    std::uint8_t* out = hop.l2_header.data();
    std::memcpy(out, destination.bytes.data(), 6);
    std::memcpy(out + 6, interface.mac.bytes.data(), 6);
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

// Of an interface that is there and the tenant's. Without one there is no way out: no_route.
void write_egress(const Registry& registry, const NextHopKey& key, const pipeline::Snapshot& snapshot,
                  route::NextHop& hop) {
    if (key.interface >= snapshot.interfaces.size()) return;
    const pipeline::Interface& interface = snapshot.interfaces[key.interface];
    if (interface.tenant != key.tenant || interface.port == pipeline::kNoPort) return;
    const NeighborBinding* known = key.use == NextHopUse::neighbor ? find_binding(registry, key) : nullptr;
    const bool has_mac = known != nullptr && known->mac;
    hop.kind = has_mac ? route::NextHopKind::forward : route::NextHopKind::unresolved;
    hop.failed = known != nullptr && known->failed;
    hop.port = interface.port;
    hop.interface = key.interface;
    hop.tenant = interface.tenant;
    hop.mtu = interface.mtu;
    hop.via = key.via;
    write_l2_header(hop, interface, has_mac ? *known->mac : net::Mac{});
}

void write_wire(const NextHopKey& key, const pipeline::Snapshot& snapshot, route::NextHop& hop) {
    const auto& interfaces = snapshot.interfaces;
    if (key.interface >= interfaces.size() || interfaces[key.interface].wire_peer == pipeline::kNoInterface) return;
    hop.kind = route::NextHopKind::wire;
    hop.interface = interfaces[key.interface].wire_peer;
    hop.port = interfaces[hop.interface].port;
    hop.mtu = interfaces[hop.interface].mtu;
}

route::NextHop content(const Registry& registry, const NextHopKey& key, const pipeline::Snapshot& snapshot) {
    route::NextHop hop;
    hop.interface = key.interface;
    hop.tenant = key.tenant;
    switch (key.use) {
        case NextHopUse::neighbor:
        case NextHopUse::glean:
            write_egress(registry, key, snapshot, hop);
            break;
        case NextHopUse::drop:
            hop.kind = route::NextHopKind::drop;
            break;
        case NextHopUse::local:
            hop.kind = route::NextHopKind::local;
            break;
        case NextHopUse::broadcast:
            hop.kind = route::NextHopKind::broadcast;
            break;
        case NextHopUse::group:
            hop.kind = route::NextHopKind::group;
            hop.interface = pipeline::kNoInterface;
            hop.group = key.interface;
            break;
        case NextHopUse::wire:
            write_wire(key, snapshot, hop);
            break;
        case NextHopUse::leak:
            hop.kind = route::NextHopKind::leak;
            hop.interface = pipeline::kNoInterface;
            hop.tenant = key.interface;
            break;
    }
    return hop;
}

bool is_up(const pipeline::Snapshot& snapshot, std::uint16_t next_hop) {
    const route::NextHop& hop = snapshot.next_hops[next_hop];
    if (hop.kind != route::NextHopKind::forward && hop.kind != route::NextHopKind::unresolved) return false;
    return !hop.failed && hop.port < snapshot.ports.size() && snapshot.ports[hop.port].sends;
}

}  // namespace

net::Prefix host_prefix(const net::Address& address) {
    const bool v4 = address.is_v4();
    return {address, static_cast<std::uint8_t>(v4 ? 32 : 128), v4 ? net::Family::ip4 : net::Family::ip6};
}

const NeighborBinding* find_binding(const Registry& registry, const NextHopKey& key) {
    for (const auto* known : {&registry.static_neighbors, &registry.learned_neighbors})
        if (const auto it = known->find(key); it != known->end()) return &it->second;
    return nullptr;
}

void fill_next_hop(const Registry& registry, const NextHopKey& key, std::uint16_t index, pipeline::Snapshot& snapshot) {
    if (snapshot.next_hops.size() <= index) snapshot.next_hops.resize(index + 1u);
    snapshot.next_hops[index] = content(registry, key, snapshot);
}

void fill_next_hops(const Registry& registry, pipeline::Snapshot& snapshot) {
    snapshot.next_hops.resize(std::max<std::size_t>(snapshot.next_hops.size(), registry.next_hops.end()));
    for (const auto& [key, index] : registry.next_hops.all()) fill_next_hop(registry, key, index, snapshot);
}

void fill_groups(Registry& registry, pipeline::Snapshot& snapshot) {
    registry.group_tables.resize(registry.groups.end());
    for (const auto& [key, number] : registry.groups.all()) {
        std::vector<route::Member> members;
        for (const auto& [next_hop, weight] : key.second)
            members.push_back({next_hop, weight, is_up(snapshot, next_hop)});
        auto& table = registry.group_tables[number];
        if (table != nullptr && table->members() == members) continue;
        if (table != nullptr) ++registry.generations[key.first].route;
        table = std::make_shared<const route::Group>(std::move(members), table.get());
    }
    snapshot.groups = registry.group_tables;
}

void bump_lookers(Registry& registry, const std::map<std::uint16_t, Generations>& before) {
    for (const auto& [key, index] : registry.next_hops.all()) {
        if (key.use != NextHopUse::leak) continue;
        const auto now = registry.generations.find(key.interface);
        if (now == registry.generations.end()) continue;
        const auto then = before.find(key.interface);
        if (then != before.end() && then->second.route == now->second.route) continue;
        auto& looker = registry.generations[key.tenant].route;
        const auto looker_before = before.find(key.tenant);
        if (looker_before != before.end() && looker_before->second.route == looker) ++looker;
    }
}

void write_route_generations(Registry& registry, pipeline::Snapshot& snapshot) {
    for (auto& [slot, generations] : registry.generations) {
        if (slot >= snapshot.tenants.size()) continue;
        pipeline::Tenant& tenant = snapshot.tenants[slot];
        tenant.route_generation = generations.route;
        if (tenant.acl != nullptr && tenant.acl->uses_egress() && generations.judged_route != generations.route)
            ++generations.policy;
        generations.judged_route = generations.route;
        // Kept comparable: what is older than this is moved up to just before it (session::keep_generations_stale).
        if (static_cast<std::uint16_t>(generations.policy - generations.list) >= session::kGenerationRange)
            generations.list = static_cast<std::uint16_t>(generations.policy - session::kGenerationRange + 1);
        tenant.policy_generation = generations.policy;
        tenant.list_generation = generations.list;
    }
}

void note_local(Registry& registry, std::uint16_t tenant, const net::Prefix& prefix) {
    const bool is_one = prefix == host_prefix(prefix.address);
    registry.local_ends[tenant] |= is_one ? pipeline::end_bit(prefix.address) : ~std::uint64_t{0};
}

void write_local_ends(const Registry& registry, pipeline::Snapshot& snapshot) {
    for (std::size_t slot = 0; slot < snapshot.tenants.size(); ++slot) {
        const auto ends = registry.local_ends.find(static_cast<std::uint16_t>(slot));
        snapshot.tenants[slot].local_ends = ends == registry.local_ends.end() ? 0 : ends->second;
    }
}

NextHopKey group_key(Registry& registry, std::uint16_t tenant,
                     std::vector<std::pair<std::uint16_t, std::uint16_t>> members) {
    std::sort(members.begin(), members.end());
    return {tenant, registry.groups.get({tenant, std::move(members)}), NextHopUse::group, {}};
}

}  // namespace cachewire::control
