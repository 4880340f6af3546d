// SPDX-License-Identifier: BSD-3-Clause
#include "control/object_status.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "control/override_status.h"
#include "control/qos_status.h"
#include "control/runtime.h"
#include "control/selection.h"
#include "telemetry/page.h"

namespace cachewire::control {

namespace {

using telemetry::BadQuery;
using telemetry::Json;
using View = Runtime::View;

Json interface_dict(const View& v, const config::Interface& interface) {
    Json addresses = Json::array();
    for (const auto& address : interface.addresses)
        addresses.push_back(fmt::format("{}/{}", net::to_string(address.address), unsigned{address.prefix.length}));
    const port::EthPort* port = interface.is_loopback() ? nullptr : v.ports[interface.port].get();
    const bool up = port == nullptr || v.snapshot.ports[*v.registry.ports.find(port->name())].admin_up;
    return {{"name", interface.name},
            {"tenant", v.config.tenants[interface.tenant].name},
            {"port", port == nullptr ? "" : port->name()},
            {"vlan", std::uint64_t{interface.vlan}},
            {"inner_vlan", std::uint64_t{interface.inner_vlan}},
            {"mtu", std::uint64_t{interface.mtu}},
            {"mac", port == nullptr ? "" : net::to_string(port->mac())},
            {"admin", up ? "up" : "down"},
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
    if (const auto* scheduler = v.workers.scheduler(); scheduler != nullptr)
        for (const auto& reason : scheduler->tenants()[slot].drops) dropped += reason.read();
    Json dict = {{"name", tenant.name},
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
    add_policed(v, tenant, dict);
    return dict;
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
    add("/cachewire/qos/classes",
        "Packets dropped in front of a full port, by port and class. Parameters: port, cursor, count", qos_classes);
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
