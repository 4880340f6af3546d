// SPDX-License-Identifier: BSD-3-Clause
#include "control/kernel/twin_status.h"

#include "control/names.h"
#include "control/runtime.h"
#include "telemetry/page.h"

namespace cachewire::control {

namespace {

using telemetry::Json;

Json twin_list(const Runtime::View& v, std::string_view parameters) {
    std::vector<const Twins::Twin*> twins;
    for (const auto& [index, twin] : v.twins.all()) twins.push_back(&twin);
    const auto dict = [&](std::size_t i) {
        const Twins::Twin& twin = *twins[i];
        Json answer = {{"interface", twin.name},
                       {"tenant", name_of(v.registry.tenants, twin.tenant)},
                       {"ifname", twin.tap->twin().ifname},
                       {"netns", twin.tap->twin().netns},
                       {"state", twin.lost ? "lost" : "there"},
                       {"to_kernel", twin.counters.to_kernel},
                       {"from_kernel", twin.counters.from_kernel},
                       {"refused", twin.counters.refused}};
        const auto space = v.twins.spaces().find(twin.tap->twin().netns);
        if (space == v.twins.spaces().end()) return answer;
        const RouteMonitor& monitor = *space->second.monitor;
        answer["netns_routes"] = std::uint64_t{monitor.routes().size()};
        answer["netns_neighbors"] = std::uint64_t{space->second.neighbors.size()};
        answer["netns_messages"] = monitor.counters().messages;
        answer["netns_syncs"] = monitor.counters().syncs;
        answer["netns_overruns"] = monitor.counters().overruns;
        answer["netns_foreign_routes"] = monitor.counters().foreign;
        return answer;
    };
    return telemetry::page(twins.size(), dict, telemetry::parse_page(parameters));
}

}  // namespace

void add_twin_endpoints(telemetry::Endpoints& endpoints, Runtime& runtime) {
    endpoints.add("/cachewire/kernel/list", "Interfaces' twins in the kernel. Parameters: cursor, count (optional)",
                  [&runtime](std::string_view parameters) {
                      return runtime.with_view([&](const auto& view) { return twin_list(view, parameters); });
                  });
}

}  // namespace cachewire::control
