// SPDX-License-Identifier: BSD-3-Clause
#include "control/slow_path/neighbor_status.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "control/names.h"
#include "control/runtime.h"
#include "telemetry/page.h"

namespace cachewire::control {

namespace {

using telemetry::BadQuery;
using telemetry::Json;
using View = Runtime::View;

Json neighbor_dict(const View& v, const NeighborKey& key, const Neighbor& neighbor, std::uint64_t now_ms) {
    const OwnInterface* own = v.slow_path.interfaces().find(key.interface);
    return {{"address", net::to_string(key.address)},
            {"mac", neighbor.has_mac ? net::to_string(neighbor.mac) : "-"},
            {"state", to_string(neighbor.phase)},
            {"age_s", now_ms > neighbor.confirmed_ms ? (now_ms - neighbor.confirmed_ms) / 1000 : 0},
            {"interface", own != nullptr ? own->name : "-"},
            {"tenant", name_of(v.registry.tenants, key.tenant)},
            {"gateway", neighbor.wanted ? 1u : 0u}};
}

// [TENANT][,CURSOR[,N]]; names begin with a letter, so what begins with a digit is a cursor, and all tenants are meant.
Json neighbor_list(const View& v, std::string_view parameters) {
    const bool all = parameters.empty() || (parameters[0] >= '0' && parameters[0] <= '9');
    const std::size_t comma = all ? std::string_view::npos : parameters.find(',');
    const std::uint16_t slot = all ? std::uint16_t{0} : tenant_slot(v.registry, parameters.substr(0, comma));
    const std::string_view rest = all                               ? parameters
                                  : comma == std::string_view::npos ? std::string_view()
                                                                    : parameters.substr(comma + 1);
    std::vector<const std::map<NeighborKey, Neighbor>::value_type*> those;
    for (const auto& entry : v.slow_path.neighbors().all())
        if (all || entry.first.tenant == slot) those.push_back(&entry);
    const std::uint64_t now_ms = base::now_tsc() / (base::tsc_hz() / 1000);
    const auto dict = [&](std::size_t i) { return neighbor_dict(v, those[i]->first, those[i]->second, now_ms); };
    return telemetry::page(those.size(), dict, telemetry::parse_page(rest));
}

Json slow_path_stats(const View& v) {
    Json punted = Json::object(), limited = Json::object(), full = Json::object();
    for (std::size_t i = 0; i < pipeline::kPuntReasons; ++i) {
        std::uint64_t taken = 0, over = 0, refused = 0;
        for (const auto& worker : v.workers.all()) {
            taken += worker->state().punts.taken[i].read();
            over += worker->state().punts.limited[i].read();
            refused += worker->state().punts.full[i].read();
        }
        punted[pipeline::kPuntTraits[i].name] = taken;
        limited[pipeline::kPuntTraits[i].name] = over;
        full[pipeline::kPuntTraits[i].name] = refused;
    }
    const SlowPath& s = v.slow_path;
    return {{"punted", punted},
            {"limited", limited},
            {"queue_full", full},
            {"arp_received", s.resolver().arp_in},
            {"nd_received", s.resolver().nd_in},
            {"malformed", s.resolver().malformed},
            {"resolution_answers", s.resolver().answered},
            {"resolution_requests", s.resolver().asked},
            {"address_conflicts", s.resolver().conflicts},
            {"echo_replies", s.answers().echo_replies},
            {"icmp_errors", s.answers().errors},
            {"tcp_resets", s.answers().resets},
            {"not_answered", s.answers().not_due},
            {"no_way_back", s.counters().no_way_back},
            {"to_kernel", s.counters().to_kernel},
            {"from_kernel", s.counters().from_kernel},
            {"kernel_refused", s.counters().kernel_refused},
            {"no_buffer", s.refused()},
            {"waited", s.counters().held},
            {"went_on", s.counters().released},
            {"gave_up", s.counters().gave_up},
            {"waiting", static_cast<std::uint64_t>(s.waiting())},
            {"neighbors", static_cast<std::uint64_t>(s.neighbors().all().size())},
            {"neighbors_unresolved", static_cast<std::uint64_t>(s.neighbors().unresolved())},
            {"neighbors_evicted", s.neighbors().evicted()}};
}

ControlSocket::Json flush(Runtime& runtime, const ControlSocket::Json& request) {
    std::string tenant;
    for (const auto& [key, value] : request.items()) {
        if (key == "command") continue;
        if (key != "tenant" || !value.is_string())
            return {{"ok", false}, {"error", "neighbors_flush: allowed: \"tenant\", a name"}};
        tenant = value.get<std::string>();
    }
    const auto flushed = runtime.flush_neighbors(tenant);
    if (!flushed) return {{"ok", false}, {"error", fmt::format("no tenant '{}'", tenant)}};
    return {{"ok", true}, {"flushed", *flushed}};
}

}  // namespace

void add_neighbor_endpoints(telemetry::Endpoints& endpoints, Runtime& runtime) {
    endpoints.add("/cachewire/neighbor/list", "Neighbors by ARP and ND. Parameters: tenant, cursor, count (optional)",
                  [&runtime](std::string_view parameters) {
                      return runtime.with_view([&](const View& view) { return neighbor_list(view, parameters); });
                  });
    endpoints.add("/cachewire/slow_path/stats", "What workers handed over, and what became of it.",
                  [&runtime](std::string_view parameters) {
                      if (!parameters.empty()) throw BadQuery("takes no parameters");
                      return runtime.with_view(slow_path_stats);
                  });
}

void add_neighbor_commands(ControlSocket& socket, Runtime& runtime) {
    socket.add("neighbors_flush", [&runtime](const ControlSocket::Json& request) { return flush(runtime, request); });
}

}  // namespace cachewire::control
