// SPDX-License-Identifier: BSD-3-Clause
#include "control/object_status.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "control/override_status.h"
#include "control/runtime.h"
#include "telemetry/page.h"

namespace cachewire::control {

namespace {

using telemetry::BadQuery;
using telemetry::Json;
using View = Runtime::View;

// "[NAME,]CURSOR,N": a name begins with a letter, a cursor with a digit.
struct Selection {
    std::string name;  // empty: all
    telemetry::PageRequest page;
};

Selection parse_selection(std::string_view parameters) {
    Selection selection;
    if (!parameters.empty() && (parameters.front() < '0' || parameters.front() > '9')) {
        const std::size_t comma = parameters.find(',');
        selection.name = parameters.substr(0, comma);
        parameters = comma == std::string_view::npos ? "" : parameters.substr(comma + 1);
    }
    selection.page = telemetry::parse_page(parameters);
    return selection;
}

// Index by name among the configuration's objects of a kind; throws for a name that none has.
template <class Object>
std::optional<std::size_t> find_named(const std::vector<Object>& objects, const std::string& name, const char* kind) {
    if (name.empty()) return std::nullopt;
    for (std::size_t i = 0; i < objects.size(); ++i)
        if (objects[i].name == name) return i;
    throw BadQuery(fmt::format("no {} '{}'", kind, name));
}

Json interface_dict(const View& v, const config::Interface& interface) {
    const auto& port = v.ports[interface.port];
    Json addresses = Json::array();
    for (const auto& address : interface.addresses)
        addresses.push_back(fmt::format("{}/{}", net::to_string(address.address), unsigned{address.prefix.length}));
    return {{"name", interface.name},
            {"tenant", v.config.tenants[interface.tenant].name},
            {"port", port->name()},
            {"vlan", std::uint64_t{interface.vlan}},
            {"inner_vlan", std::uint64_t{interface.inner_vlan}},
            {"mtu", std::uint64_t{interface.mtu}},
            {"mac", net::to_string(port->mac())},
            {"admin", v.snapshot.ports[*v.registry.ports.find(port->name())].admin_up ? "up" : "down"},
            {"addresses", std::move(addresses)}};
}

Json interface_list(const View& v, std::string_view parameters) {
    const Selection selection = parse_selection(parameters);
    const auto tenant = find_named(v.config.tenants, selection.name, "tenant");
    std::vector<const config::Interface*> chosen;
    for (const auto& interface : v.config.interfaces)
        if (!tenant || interface.tenant == *tenant) chosen.push_back(&interface);
    return telemetry::page(
        chosen.size(), [&](std::size_t i) { return interface_dict(v, *chosen[i]); }, selection.page);
}

const char* mode_name(config::SessionMode mode) {
    switch (mode) {
        case config::SessionMode::none:
            return "none";
        case config::SessionMode::cache:
            return "cache";
        case config::SessionMode::track:
            return "track";
    }
    return "";
}

Json name_or_none(const View& v, const std::optional<std::size_t>& policer) {
    return policer ? Json(v.config.policers[*policer].name) : Json("none");
}

Json tenant_dict(const View& v, const config::Tenant& tenant) {
    const std::uint16_t slot = *v.registry.tenants.find(tenant.name);
    std::uint64_t active = 0, dropped = 0;
    for (const auto& worker : v.workers.all()) {
        active += worker->state().sessions->use(slot).active.read();
        for (const auto& reason : worker->state().tenants[slot].drops) dropped += reason.read();
    }
    return {{"name", tenant.name},
            {"id", std::uint64_t{tenant.id}},
            {"dropped", dropped},
            {"sessions", active},
            {"sessions_quota", tenant.quota.sessions ? Json(std::uint64_t{*tenant.quota.sessions}) : Json("none")},
            {"new_sessions_per_second_quota", tenant.quota.new_sessions_per_second
                                                  ? Json(std::uint64_t{*tenant.quota.new_sessions_per_second})
                                                  : Json("none")},
            {"session_mode", mode_name(tenant.sessions)},
            {"acl", tenant.acl ? Json(v.config.acls[*tenant.acl].name) : Json("none")},
            {"policer_in", name_or_none(v, tenant.policer_in)},
            {"policer_out", name_or_none(v, tenant.policer_out)}};
}

Json tenant_list(const View& v, std::string_view parameters) {
    const auto entry = [&v](std::size_t i) { return tenant_dict(v, v.config.tenants[i]); };
    return telemetry::page(v.config.tenants.size(), entry, telemetry::parse_page(parameters));
}

Json tenant_stats(const View& v, std::string_view name) {
    const auto tenant = find_named(v.config.tenants, std::string(name), "tenant");
    if (!tenant) throw BadQuery("a tenant's name is expected; /cachewire/tenant/list has them");
    return tenant_dict(v, v.config.tenants[*tenant]);
}

struct PolicerUse {
    std::size_t policer;  // in Config::policers
    const config::Tenant* tenant;
    Direction direction;
};

// In the configuration's order; `only` a policer, or all.
std::vector<PolicerUse> policer_uses(const config::Config& config, std::optional<std::size_t> only) {
    std::vector<PolicerUse> uses;
    for (const auto& tenant : config.tenants) {
        for (const auto& [policer, direction] :
             {std::pair(tenant.policer_in, Direction::in), std::pair(tenant.policer_out, Direction::out)})
            if (policer && (!only || *policer == *only)) uses.push_back({*policer, &tenant, direction});
    }
    return uses;
}

// Single-rate policers have no excess bucket, so nothing exceeds: the keys are there for those that have.
Json policer_dict(const View& v, const PolicerUse& use) {
    const std::uint16_t slot = *v.registry.tenants.find(use.tenant->name);
    const std::uint16_t index = *v.registry.policers.find(PolicerKey{slot, use.direction});
    std::uint64_t conform_packets = 0, conform_bytes = 0, violate_packets = 0, violate_bytes = 0;
    for (const auto& worker : v.workers.all()) {
        const qos::PolicerState& state = worker->state().policers[index];
        conform_packets += state.conform_packets.read();
        conform_bytes += state.conform_bytes.read();
        violate_packets += state.violate_packets.read();
        violate_bytes += state.violate_bytes.read();
    }
    const qos::PolicerProfile& profile = v.snapshot.policers[index];
    return {{"policer", v.config.policers[use.policer].name},
            {"tenant", use.tenant->name},
            {"direction", use.direction == Direction::in ? "in" : "out"},
            {"rate_bps", profile.rate_bps},
            {"burst_bytes", profile.burst_bytes},
            {"conform_packets", conform_packets},
            {"conform_bytes", conform_bytes},
            {"exceed_packets", 0u},
            {"exceed_bytes", 0u},
            {"violate_packets", violate_packets},
            {"violate_bytes", violate_bytes}};
}

Json qos_stats(const View& v, std::string_view parameters) {
    const Selection selection = parse_selection(parameters);
    const auto uses = policer_uses(v.config, find_named(v.config.policers, selection.name, "policer"));
    return telemetry::page(
        uses.size(), [&](std::size_t i) { return policer_dict(v, uses[i]); }, selection.page);
}

}  // namespace

void add_object_endpoints(telemetry::Endpoints& endpoints, Runtime& runtime) {
    const auto add = [&](const char* name, const char* help, Json (*answer)(const View&, std::string_view)) {
        endpoints.add(name, help, [&runtime, answer](std::string_view parameters) {
            return runtime.with_view([&](const View& view) { return answer(view, parameters); });
        });
    };
    add("/cachewire/interface/list", "Interfaces. Parameters: tenant, cursor, count (optional)", interface_list);
    add("/cachewire/tenant/list", "Tenants. Parameters: cursor, count (optional)", tenant_list);
    add("/cachewire/tenant/stats", "One tenant. Parameters: tenant name", tenant_stats);
    add("/cachewire/qos/stats", "Policers in use. Parameters: policer, cursor, count", qos_stats);
}

namespace {

// Without their texts where those are not kept: files of rules and routes.
ControlSocket::Json files_json(const std::vector<config::SourceFile>& sources) {
    auto files = ControlSocket::Json::array();
    for (const config::SourceFile& source : sources) {
        files.push_back({{"file", source.path}, {"sha256", source.sha256}});
        if (source.text) files.back()["text"] = *source.text;
    }
    return files;
}

// What a reload would read now, against what runs. Errors of the files are no answer of their own: they differ then.
ControlSocket::Json config_diff(const View& v, const config::LoadResult& loaded) {
    const auto is_same = [](const config::SourceFile& a, const config::SourceFile& b) {
        return a.path == b.path && a.sha256 == b.sha256;
    };
    const bool same = std::equal(loaded.sources.begin(), loaded.sources.end(), v.config.sources.begin(),
                                 v.config.sources.end(), is_same);
    ControlSocket::Json answer = {{"drift", !same || !loaded.config},
                                  {"generation", v.generation},
                                  {"overrides", overrides_in_force(v)},
                                  {"running", files_json(v.config.sources)},
                                  {"now", files_json(loaded.sources)}};
    for (const auto& diagnostic : loaded.diagnostics)
        if (diagnostic.severity == config::Diagnostic::Severity::error)
            answer["diagnostics"].push_back(config::to_string(diagnostic));
    return answer;
}

}  // namespace

void add_config_command(ControlSocket& socket, Runtime& runtime) {
    socket.add("config", [&runtime](const ControlSocket::Json& request) -> ControlSocket::Json {
        if (request.size() != 1) throw BadQuery("config: takes nothing else");
        return runtime.with_view([](const View& v) -> ControlSocket::Json {
            const config::SourceFile& main = v.config.sources.front();
            if (!main.text)
                throw BadQuery(
                    fmt::format("the file was longer than {} MiB and its text is not kept; it was {}, sha256 {}",
                                config::kMaxKeptBytes >> 20, v.config.path, v.config.sha256));
            return {{"file", v.config.path},
                    {"sha256", v.config.sha256},
                    {"generation", v.generation},
                    {"text", *main.text},
                    {"files", files_json(v.config.sources)}};
        });
    });
    socket.add("config_diff", [&runtime](const ControlSocket::Json& request) -> ControlSocket::Json {
        if (request.size() != 1) throw BadQuery("config_diff: takes nothing else");
        // Read without the lock: telemetry need not wait for it.
        const auto loaded = config::load_file(runtime.with_view([](const View& v) { return v.config.path; }));
        return runtime.with_view([&](const View& v) { return config_diff(v, loaded); });
    });
}

}  // namespace cachewire::control
