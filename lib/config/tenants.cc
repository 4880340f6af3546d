// SPDX-License-Identifier: BSD-3-Clause
#include <map>

#include <fmt/format.h>

#include "config/sections.h"

namespace cachewire::config {
namespace {

constexpr Key kTenant[] = {{"name"},
                           {"id"},
                           {"match"},
                           {"sessions"},
                           {"acl"},
                           {"policer"},
                           {"interfaces"},
                           {"routes"},
                           {"quota"},
                           {"midstream"},
                           {"rpf"}};
constexpr Key kQuota[] = {{"sessions"}, {"new_sessions_per_second"}};
constexpr Key kMatch[] = {{"port"}, {"vlan"}, {"inner_vlan"}};
constexpr Choice<SessionMode> kSessions[] = {
    {"track", SessionMode::track}, {"cache", SessionMode::cache}, {"none", SessionMode::none}};
constexpr Choice<Rpf> kRpf[] = {{"none", Rpf::none}, {"loose", Rpf::loose}, {"strict", Rpf::strict}};
constexpr Choice<Midstream> kMidstream[] = {{"deny", Midstream::deny}, {"allow", Midstream::allow}};

void read_optional_vlan(Reporter& reporter, const std::optional<Value>& value, std::optional<std::uint16_t>& out) {
    // 0: untagged or priority-tagged. 4095 is reserved (IEEE 802.1Q 9.6).
    if (const auto vlan = read_integer(reporter, value, 0, 4094)) out = static_cast<std::uint16_t>(*vlan);
}

void read_match(Loading& loading, const Value& item, Tenant& tenant, std::size_t index) {
    Reporter& reporter = loading.reporter;
    const MapReader map(reporter, item, kMatch);
    Match match{};
    const auto port = loading.ports.resolve(reporter, map.require("port"));
    read_optional_vlan(reporter, map.get("vlan"), match.vlan);
    const auto inner = map.get("inner_vlan");
    read_optional_vlan(reporter, inner, match.inner_vlan);
    if (inner && match.vlan.value_or(0) == 0)
        reporter.error(*inner, "an inner tag without an outer one; allowed: beside `vlan` from 1 to 4094");
    if (!port) return;
    match.port = *port;
    const auto [entry, fresh] = loading.matches.try_emplace({match.port, match.vlan, match.inner_vlan}, index);
    if (!fresh) {
        const std::string& other = entry->second == index ? tenant.name : loading.config.tenants[entry->second].name;
        reporter.error(item, fmt::format("tenant '{}' matches the same already", other));
    }
    tenant.match.push_back(match);
}

void read_quota(Reporter& reporter, const Value& value, Quota& quota) {
    const MapReader map(reporter, value, kQuota);
    if (const auto sessions = read_integer(reporter, map.get("sessions"), 1, 1u << 28))
        quota.sessions = static_cast<std::uint32_t>(*sessions);
    if (const auto rate = read_integer(reporter, map.get("new_sessions_per_second"), 1, 1'000'000'000))
        quota.new_sessions_per_second = static_cast<std::uint32_t>(*rate);
}

void read_tenant(Loading& loading, const Value& item, std::map<std::uint16_t, std::string>& ids) {
    Reporter& reporter = loading.reporter;
    const MapReader map(reporter, item, kTenant);
    const std::size_t index = loading.config.tenants.size();
    Tenant tenant;
    const auto name = map.require("name");
    tenant.name = read_name(reporter, name).value_or("");
    if (tenant.name == "default")
        reporter.error(*name, "'default' is the tenant of files without `tenants`; allowed: another name");
    const auto id = map.require("id");
    read_number(reporter, id, tenant.id, 1, 65535);
    if (tenant.id != 0) {
        const auto [entry, fresh] = ids.try_emplace(tenant.id, tenant.name);
        if (!fresh) reporter.error(*id, fmt::format("{} is the id of tenant '{}' already", tenant.id, entry->second));
    }
    for (const Value& match : read_list(reporter, map.get("match"))) read_match(loading, match, tenant, index);
    tenant.acl = loading.acls.resolve(reporter, map.get("acl"));
    if (tenant.acl && loading.config.acls[*tenant.acl].stateful) tenant.sessions = SessionMode::track;
    const auto sessions = map.get("sessions");
    read_choice(reporter, sessions, tenant.sessions, kSessions);
    if (tenant.acl && loading.config.acls[*tenant.acl].stateful && tenant.sessions != SessionMode::track) {
        reporter.error(*sessions, "a stateful list needs sessions; allowed: track");
    }
    if (const auto quota = map.get("quota")) read_quota(reporter, *quota, tenant.quota);
    read_choice(reporter, map.get("midstream"), tenant.midstream, kMidstream);
    read_choice(reporter, map.get("rpf"), tenant.rpf, kRpf);
    read_policers_of(loading, map.get("policer"), tenant.policer_in, tenant.policer_out);
    loading.nested.push_back(
        {index, read_list(reporter, map.get("interfaces")), read_list(reporter, map.get("routes"))});
    if (!tenant.name.empty()) loading.tenants.add(reporter, *name, tenant.name, index);
    loading.config.tenants.push_back(std::move(tenant));
}

}  // namespace

void read_tenants(Loading& loading, const MapReader& top) {
    const auto value = top.get("tenants");
    loading.has_tenants = value.has_value();
    if (loading.has_tenants) {
        std::map<std::uint16_t, std::string> ids;
        const auto items = read_list(loading.reporter, value);
        if (items.empty() && value->node->kind == Node::Kind::sequence) {
            loading.reporter.error(*value, "no tenant; allowed: at least one, or no `tenants` at all");
        }
        for (const Value& item : items) read_tenant(loading, item, ids);
    } else {
        Tenant tenant;
        tenant.name = "default";
        for (std::size_t port = 0; port < loading.config.ports.size(); ++port) {
            tenant.match.push_back({port, {}, {}});
            loading.matches.emplace(MatchKey{port, {}, {}}, 0);
        }
        loading.config.tenants.push_back(std::move(tenant));
        loading.tenants.add(loading.reporter, top.self(), "default", 0);
    }
    loading.networks.resize(loading.config.tenants.size());
    loading.own.resize(loading.config.tenants.size());
}

}  // namespace cachewire::config
