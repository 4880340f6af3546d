// SPDX-License-Identifier: BSD-3-Clause
#include "control/route_status.h"

#include <fmt/format.h>

#include "control/names.h"
#include "control/next_hops.h"
#include "control/runtime.h"
#include "telemetry/page.h"

namespace cachewire::control {

namespace {

using telemetry::BadQuery;
using telemetry::Json;
using View = Runtime::View;

struct Sums {
    std::uint64_t v4 = 0, v6 = 0, connected = 0, configured = 0, kernel = 0, neighbor = 0, bytes = 0;
    bool fib_v4 = false, fib_v6 = false;

    void add(const View& v, std::uint16_t slot, const route::Vrf& vrf) {
        const route::FibStats stats = vrf.stats();
        v4 += stats.routes_v4;
        v6 += stats.routes_v6;
        bytes += stats.memory_bytes;
        fib_v4 |= stats.fib_v4;
        fib_v6 |= stats.fib_v6;
        const auto table = v.registry.configured.find(slot);
        if (table != v.registry.configured.end() && table->second != nullptr)
            for (const ConfiguredRoute& route : *table->second)
                ++(route.source == RouteSource::connected ? connected : configured);
        if (const auto fed = v.fed_routes.find(slot); fed != v.fed_routes.end()) {
            for (const auto& [prefix, route] : fed->second) {
                kernel += route.kernel != 0;
                neighbor += route.neighbor != 0;
            }
        }
    }
};

std::uint64_t route_generation(const View& v, std::uint16_t slot) {
    return slot < v.snapshot.tenants.size() ? v.snapshot.tenants[slot].route_generation : 0;
}

Json route_stats(const View& v, std::string_view tenant) {
    Sums sums;
    for (const auto& [slot, vrf] : v.registry.vrfs)
        if (tenant.empty() || slot == tenant_slot(v.registry, tenant)) sums.add(v, slot, *vrf);
    if (!tenant.empty()) static_cast<void>(tenant_slot(v.registry, tenant));
    const RouteFeed::Stats feed = v.route_feed.stats();
    Json answer = {{"routes_v4", sums.v4},      {"routes_v6", sums.v6},  {"connected", sums.connected},
                   {"static", sums.configured}, {"kernel", sums.kernel}, {"neighbor", sums.neighbor},
                   {"memory_bytes", sums.bytes}};
    if (!tenant.empty()) {
        answer["form_v4"] = sums.fib_v4 ? "fib" : "ranges";
        answer["form_v6"] = sums.fib_v6 ? "fib" : "ranges";
        std::uint64_t leaked_out = 0, leaked_in = 0;
        for (const auto& worker : v.workers.all()) {
            const auto& counters = worker->state().tenants[tenant_slot(v.registry, tenant)];
            leaked_out += counters.leaked_out.read();
            leaked_in += counters.leaked_in.read();
        }
        answer["leaked_out"] = leaked_out;
        answer["leaked_in"] = leaked_in;
        answer["generation"] = route_generation(v, tenant_slot(v.registry, tenant));
        return answer;
    }
    answer["vrfs"] = std::uint64_t{v.registry.vrfs.size()};
    answer["next_hops"] = std::uint64_t{v.registry.next_hops.all().size()};
    answer["next_hops_limit"] = std::uint64_t{route::kMaxNextHops} - 1;
    answer["groups"] = std::uint64_t{v.registry.groups.all().size()};
    answer["changes"] = feed.changed;
    answer["changes_refused"] = feed.refused;
    answer["changes_pending"] = feed.pending;
    answer["publications"] = feed.flushes;
    return answer;
}

std::string via_text(const route::NextHop& hop) { return hop.via == net::Address{} ? "" : net::to_string(hop.via); }

std::string members_text(const View& v, const route::Group& group) {
    std::string text;
    for (const route::Member& member : group.members())
        text += fmt::format("{}{} weight {}{}", text.empty() ? "" : ", ",
                            via_text(v.snapshot.next_hops[member.next_hop]), member.weight, member.up ? "" : " down");
    return text;
}

const char* action_of(const route::NextHop& hop) {
    switch (hop.kind) {
        case route::NextHopKind::no_route:
            return "no_route";
        case route::NextHopKind::drop:
            return "drop";
        case route::NextHopKind::local:
            return "local";
        case route::NextHopKind::broadcast:
            return "broadcast";
        case route::NextHopKind::unresolved:
            return hop.via == net::Address{} ? "resolve" : hop.failed ? "failed" : "unresolved";
        case route::NextHopKind::forward:
            return "forward";
        case route::NextHopKind::wire:
            return "wire";
        case route::NextHopKind::group:
            return "ecmp";
        case route::NextHopKind::leak:
            return "leak";
    }
    return "";
}

const char* source_of(const View& v, std::uint16_t slot, const net::Prefix& prefix) {
    const auto table = v.registry.configured.find(slot);
    const ConfiguredRoute* route =
        table == v.registry.configured.end() ? nullptr : find_route(table->second.get(), prefix);
    if (route != nullptr) return route->source == RouteSource::connected ? "connected" : "static";
    const auto fed = v.fed_routes.find(slot);
    if (fed == v.fed_routes.end()) return "";
    const auto at = fed->second.find(prefix);
    if (at == fed->second.end()) return "";
    return at->second.kernel != 0 ? "kernel" : "neighbor";
}

// As a packet of the tenant to this address would find it; a leaked one is followed into the other tenant.
Json look_up(const View& v, std::uint16_t slot, const net::Address& address, bool follow) {
    const auto vrf = v.registry.vrfs.find(slot);
    const auto found = vrf == v.registry.vrfs.end() ? std::nullopt : vrf->second->lookup(address);
    if (!found || found->next_hop >= v.snapshot.next_hops.size()) return {{"action", "no_route"}};
    const route::NextHop& hop = v.snapshot.next_hops[found->next_hop];
    if (hop.kind == route::NextHopKind::leak && follow) {
        Json answer = look_up(v, hop.tenant, address, false);
        answer["leaked_to"] = name_of(v.registry.tenants, hop.tenant);
        answer["prefix"] = net::to_string(found->prefix);
        answer["source"] = source_of(v, slot, found->prefix);
        return answer;
    }
    Json answer = {{"prefix", net::to_string(found->prefix)},
                   {"action", action_of(hop)},
                   {"via", via_text(hop)},
                   {"source", source_of(v, slot, found->prefix)}};
    if (hop.kind == route::NextHopKind::group) answer["via"] = members_text(v, *v.snapshot.groups[hop.group]);
    if (hop.kind != route::NextHopKind::forward && hop.kind != route::NextHopKind::unresolved) return answer;
    answer["interface"] = name_of(v.registry.interfaces, hop.interface);
    answer["port"] = name_of(v.registry.ports, hop.port);
    answer["mac"] = "";
    if (hop.kind == route::NextHopKind::forward) {
        net::Mac mac;
        std::copy_n(hop.l2_header.begin(), 6, mac.bytes.begin());
        answer["mac"] = net::to_string(mac);
    }
    if (hop.tenant != slot) answer["leaked_to"] = name_of(v.registry.tenants, hop.tenant);
    return answer;
}

Json route_lookup(const View& v, std::string_view parameters) {
    const auto words = telemetry::split_parameters(parameters);
    if (words.size() != 2) throw BadQuery("TENANT,ADDRESS is expected");
    const std::uint16_t slot = tenant_slot(v.registry, words[0]);
    const auto address = net::parse_address(words[1]);
    if (!address) throw BadQuery(fmt::format("'{}' is not an address", words[1]));
    return look_up(v, slot, address->address, true);
}

}  // namespace

void add_route_endpoints(telemetry::Endpoints& endpoints, Runtime& runtime) {
    const auto add = [&](const char* name, const char* help, Json (*answer)(const View&, std::string_view)) {
        endpoints.add(name, help, [&runtime, answer](std::string_view parameters) {
            return runtime.with_view([&](const View& view) { return answer(view, parameters); });
        });
    };
    add("/cachewire/route/stats", "Routes by source, and their memory. Parameters: tenant (optional)", route_stats);
    add("/cachewire/route/lookup", "Where an address goes. Parameters: tenant, address", route_lookup);
}

}  // namespace cachewire::control
