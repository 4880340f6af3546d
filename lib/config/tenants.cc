// SPDX-License-Identifier: BSD-3-Clause
#include <map>

#include <fmt/format.h>

#include "config/sections.h"

namespace cachewire::config {
namespace {

constexpr Key kTenant[] = {{"name"},       {"id"},     {"match"}, {"sessions"},  {"acl"}, {"policer"},
                           {"interfaces"}, {"routes"}, {"quota"}, {"midstream"}, {"rpf"}};
constexpr Key kDefaults[] = {{"tenant"}, {"service", kLater}};
// Not what makes a tenant this one: its name and id, its match, interfaces and routes.
constexpr Key kTenantDefaults[] = {{"sessions"}, {"acl"}, {"policer"}, {"quota"}, {"midstream"}, {"rpf"}};
constexpr Key kQuota[] = {{"sessions"}, {"new_sessions_per_second"}};
constexpr Key kMatch[] = {{"port"}, {"vlan"}, {"inner_vlan"}};
constexpr Choice<SessionMode> kSessionModes[] = {
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

// What stands in a tenant and in `defaults: tenant` alike. A key that is there replaces what was there before, whole.
// `sessions`: where it stands.
void read_settings(Loading& loading, const MapReader& map, Tenant& tenant, std::optional<Value>& sessions) {
    Reporter& reporter = loading.reporter;
    if (const auto acl = map.get("acl")) tenant.acl = loading.acls.resolve(reporter, acl);
    if (const auto written = map.get("sessions")) {
        sessions = written;
        read_choice(reporter, written, tenant.sessions, kSessionModes);
    }
    if (const auto quota = map.get("quota")) {
        tenant.quota = {};
        read_quota(reporter, *quota, tenant.quota);
    }
    read_choice(reporter, map.get("midstream"), tenant.midstream, kMidstream);
    read_choice(reporter, map.get("rpf"), tenant.rpf, kRpf);
    read_policers_of(loading, map.get("policer"), tenant.policer_in, tenant.policer_out);
}

// A stateful list tracks, unless something else is written, which is wrong then.
void settle_sessions(Loading& loading, Tenant& tenant, const std::optional<Value>& sessions) {
    if (!tenant.acl || !loading.config.acls[*tenant.acl].stateful) return;
    if (!sessions) tenant.sessions = SessionMode::track;
    if (tenant.sessions != SessionMode::track)
        loading.reporter.error(
            *sessions,
            fmt::format("tenant '{}' has a stateful list, which needs sessions; allowed: track", tenant.name));
}

// `where`: the tenant's policers, or what stands for the tenant.
void check_session_policers(Loading& loading, const Tenant& tenant, const Value& where) {
    if (tenant.sessions != SessionMode::none) return;
    for (const auto& policer : {tenant.policer_in, tenant.policer_out})
        if (policer && loading.config.policers[*policer].per_session)
            return loading.reporter.error(where, fmt::format("policer '{}' has a bucket for each session, and tenant "
                                                             "'{}' keeps none; allowed: with `sessions: track` or "
                                                             "`cache`",
                                                             loading.config.policers[*policer].name, tenant.name));
}

void read_tenant(Loading& loading, const Value& item, std::map<std::uint16_t, std::string>& ids) {
    Reporter& reporter = loading.reporter;
    const MapReader map(reporter, item, kTenant);
    const std::size_t index = loading.config.tenants.size();
    Tenant tenant = loading.tenant_defaults.tenant;
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
    auto sessions = loading.tenant_defaults.sessions;
    read_settings(loading, map, tenant, sessions);
    settle_sessions(loading, tenant, sessions);
    check_session_policers(loading, tenant, map.get("policer").value_or(item));
    loading.nested.push_back(
        {index, read_list(reporter, map.get("interfaces")), read_list(reporter, map.get("routes"))});
    if (!tenant.name.empty()) loading.tenants.add(reporter, *name, tenant.name, index);
    loading.config.tenants.push_back(std::move(tenant));
}

}  // namespace

void read_defaults(Loading& loading, const MapReader& top) {
    const auto value = top.get("defaults");
    if (!value) return;
    const MapReader defaults(loading.reporter, *value, kDefaults);
    const auto tenant = defaults.get("tenant");
    if (!tenant) return;
    const MapReader map(loading.reporter, *tenant, kTenantDefaults);
    read_settings(loading, map, loading.tenant_defaults.tenant, loading.tenant_defaults.sessions);
}

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
        Tenant tenant = loading.tenant_defaults.tenant;
        tenant.name = "default";
        settle_sessions(loading, tenant, loading.tenant_defaults.sessions);
        check_session_policers(loading, tenant, top.get("defaults").value_or(top.self()));
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
