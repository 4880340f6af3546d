// SPDX-License-Identifier: BSD-3-Clause
#include "control/qos_status.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "control/policers.h"
#include "control/selection.h"

namespace cachewire::control {

namespace {

using telemetry::Json;
using View = Runtime::View;
using pipeline::PolicerPlace;

struct Counts {  // of a colour
    std::uint64_t packets = 0, bytes = 0;
};
using ByColour = std::array<Counts, 3>;
constexpr const char* kVerbs[] = {"conform", "exceed", "violate"};

void add_counts(const View& v, std::uint16_t index, ByColour& counts) {
    for (const auto& worker : v.workers.all()) {
        const qos::PolicerState& state = worker->state().policers.states[index];
        const qos::ExceedCounts& exceeds = worker->state().policers.exceeds[index];
        counts[0].packets += state.conform_packets.read();
        counts[0].bytes += state.conform_bytes.read();
        counts[1].packets += exceeds.packets.read();
        counts[1].bytes += exceeds.bytes.read();
        counts[2].packets += state.violate_packets.read();
        counts[2].bytes += state.violate_bytes.read();
    }
}

void write_counts(const ByColour& counts, Json& dict) {
    for (std::size_t colour = 0; colour < std::size(kVerbs); ++colour) {
        dict[std::string(kVerbs[colour]) + "_packets"] = counts[colour].packets;
        dict[std::string(kVerbs[colour]) + "_bytes"] = counts[colour].bytes;
    }
}

const char* type_name(config::PolicerType type) {
    static constexpr const char* kTypes[] = {"single", "srtcm_2697", "trtcm_2698", "trtcm_4115"};
    return kTypes[static_cast<unsigned>(type)];
}

const char* place_name(PolicerPlace place) {
    switch (place) {
        case PolicerPlace::interface_in:
        case PolicerPlace::interface_out:
            return "interface";
        case PolicerPlace::tenant_in:
        case PolicerPlace::tenant_out:
            return "tenant";
        case PolicerPlace::rule:
            return "rule";
        case PolicerPlace::traffic_class:
            return "class";
    }
    return "";
}

const char* direction_name(PolicerPlace place) {
    if (place == PolicerPlace::interface_in || place == PolicerPlace::tenant_in) return "in";
    return place == PolicerPlace::interface_out || place == PolicerPlace::tenant_out ? "out" : "both";
}

Json attachment_dict(const View& v, const PolicerAttachment& attachment) {
    const std::uint16_t index = *v.registry.policers.find(attachment.key);
    const config::Policer& policer = v.config.policers[attachment.policer];
    const qos::PolicerProfile& profile = v.snapshot.policers[index];
    Json dict = {{"policer", policer.name},
                 {"attached_to", place_name(attachment.place)},
                 {"name", attachment.name},
                 {"tenant", attachment.tenant ? v.config.tenants[*attachment.tenant].name : ""},
                 {"direction", direction_name(attachment.place)},
                 {"type", type_name(policer.type)},
                 {"shared", policer.shared ? 1u : 0u},
                 {"per_session", policer.per_session ? 1u : 0u},
                 {"rate_bps", profile.rate_bps},
                 {"burst_bytes", profile.burst_bytes},
                 {"excess_rate_bps", profile.excess_rate_bps},
                 {"excess_burst_bytes", profile.excess_burst_bytes}};
    ByColour counts;
    add_counts(v, index, counts);
    write_counts(counts, dict);
    return dict;
}

// As in the file: the port's rate, and when the class goes. 0 and "none" for a port without a scheduler.
void add_order(const View& v, const std::string& port, const std::string& traffic_class, Json& dict) {
    dict["rate_bps"] = 0u;
    dict["order"] = "none";
    for (const config::Scheduler& scheduler : v.config.schedulers) {
        if (v.config.ports[scheduler.port].name != port) continue;
        dict["rate_bps"] = scheduler.rate_bps;
        dict["order"] = "last";
        for (const config::ScheduledClass& each : scheduler.classes)
            if (v.config.classes[each.traffic_class].name == traffic_class)
                dict["order"] = each.priority ? "priority " + std::to_string(*each.priority)
                                              : "weight " + std::to_string(each.weight);
    }
}

// What its scheduler says of a class, if the port has one. Own frames count as of no class.
void add_scheduled(const View& v, std::uint16_t port, std::uint16_t slot, Json& dict) {
    const auto* const scheduler = v.workers.scheduler();
    const pipeline::ScheduledPort* const scheduled = scheduler == nullptr ? nullptr : scheduler->find(port);
    dict["scheduler"] = scheduled == nullptr ? 0u : 1u;
    std::uint64_t packets = 0, bytes = 0, dropped = 0, queued = 0;
    const auto add = [&](const pipeline::ScheduledCounters& counters) {
        packets += counters.packets.read();
        bytes += counters.bytes.read();
        dropped += counters.dropped.read();
        queued += counters.queued.read();
    };
    if (scheduled != nullptr) add(scheduled->classes[slot]);
    if (scheduled != nullptr && slot == 0) add(scheduled->classes[pipeline::kOwnFrame]);
    dict["tx_dropped"] = dict["tx_dropped"].get<std::uint64_t>() + dropped;
    dict["packets"] = packets;
    dict["bytes"] = bytes;
    dict["queued"] = queued;
}

Json class_dict(const View& v, const config::Port& port, const config::TrafficClass* traffic_class) {
    const std::uint16_t at = *v.registry.ports.find(port.name);
    const std::uint16_t slot =
        traffic_class == nullptr ? std::uint16_t{0} : *v.registry.classes.find(traffic_class->name);
    std::uint64_t dropped = 0;
    for (const auto& worker : v.workers.all()) dropped += worker->state().class_tx_dropped[at][slot].read();
    Json dict = {{"port", port.name},
                 {"class", traffic_class == nullptr ? "none" : traffic_class->name},
                 {"tx_dropped", dropped}};
    add_scheduled(v, at, slot, dict);
    add_order(v, port.name, dict["class"].get<std::string>(), dict);
    return dict;
}

}  // namespace

Json qos_stats(const View& v, std::string_view parameters) {
    const Selection selection = parse_selection(parameters);
    const auto only = find_named(v.config.policers, selection.name, "policer");
    auto attachments = policer_attachments(v.config, v.registry);
    if (only) std::erase_if(attachments, [&](const PolicerAttachment& a) { return a.policer != *only; });
    return telemetry::page(
        attachments.size(), [&](std::size_t i) { return attachment_dict(v, attachments[i]); }, selection.page);
}

Json qos_classes(const View& v, std::string_view parameters) {
    const Selection selection = parse_selection(parameters);
    const auto only = find_named(v.config.ports, selection.name, "port");
    const std::size_t classes = v.config.classes.size() + 1;  // the first: packets of none
    const auto entry = [&](std::size_t i) {
        const config::Port& port = v.config.ports[only ? *only : i / classes];
        const std::size_t of_port = i % classes;
        return class_dict(v, port, of_port == 0 ? nullptr : &v.config.classes[of_port - 1]);
    };
    return telemetry::page(classes * (only ? 1 : v.config.ports.size()), entry, selection.page);
}

void add_policed(const View& v, const config::Tenant& tenant, Json& dict) {
    ByColour counts;
    for (const PolicerAttachment& attachment : policer_attachments(v.config, v.registry))
        if (attachment.tenant && &v.config.tenants[*attachment.tenant] == &tenant)
            add_counts(v, *v.registry.policers.find(attachment.key), counts);
    write_counts(counts, dict);
}

}  // namespace cachewire::control
