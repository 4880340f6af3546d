// SPDX-License-Identifier: BSD-3-Clause
#include "control/policers.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "control/policy.h"

namespace cachewire::control {

namespace {

using pipeline::PolicerPlace;

constexpr PolicerPlace kSessionPlaces[] = {PolicerPlace::tenant_in, PolicerPlace::rule, PolicerPlace::tenant_out};

std::uint16_t& slot_of(pipeline::Snapshot& snapshot, const PolicerAttachment& attachment) {
    const std::uint16_t owner = attachment.key.owner;
    switch (attachment.place) {
        case PolicerPlace::interface_in:
            return snapshot.interfaces[owner].policer_in;
        case PolicerPlace::interface_out:
            return snapshot.interfaces[owner].policer_out;
        case PolicerPlace::tenant_in:
            return snapshot.tenants[owner].policer_in;
        case PolicerPlace::tenant_out:
            return snapshot.tenants[owner].policer_out;
        case PolicerPlace::traffic_class:
        case PolicerPlace::rule:
            break;
    }
    return snapshot.traffic_classes[owner].policer;
}

std::uint8_t bit_of(PolicerPlace place) { return static_cast<std::uint8_t>(1u << static_cast<unsigned>(place)); }

PolicerKey shared_key(const config::Policer& policer) { return {PolicerUse::shared, 0, policer.name}; }

}  // namespace

PolicerKey rule_policer_key(const config::Acl& acl, std::size_t rule) {
    const std::string& name = acl.rules[rule].name;
    return {PolicerUse::rule, 0, name.empty() ? fmt::format("{}/#{}", acl.name, rule) : acl.name + "/" + name};
}

std::vector<PolicerAttachment> policer_attachments(const config::Config& config, const Registry& registry) {
    std::vector<PolicerAttachment> all;
    const auto add = [&](const std::optional<std::size_t>& policer, PolicerKey key, PolicerPlace place,
                         const std::string& name, std::optional<std::size_t> tenant) {
        if (policer) all.push_back({*policer, std::move(key), place, name, tenant});
    };
    for (std::size_t i = 0; i < config.tenants.size(); ++i) {
        const config::Tenant& tenant = config.tenants[i];
        const std::uint16_t slot = *registry.tenants.find(tenant.name);
        add(tenant.policer_in, {PolicerUse::tenant_in, slot, ""}, PolicerPlace::tenant_in, tenant.name, i);
        add(tenant.policer_out, {PolicerUse::tenant_out, slot, ""}, PolicerPlace::tenant_out, tenant.name, i);
    }
    for (const config::Interface& interface : config.interfaces) {
        const std::uint16_t index = *registry.interfaces.find(interface.name);
        add(interface.policer_in, {PolicerUse::interface_in, index, ""}, PolicerPlace::interface_in, interface.name,
            interface.tenant);
        add(interface.policer_out, {PolicerUse::interface_out, index, ""}, PolicerPlace::interface_out, interface.name,
            interface.tenant);
    }
    for (const config::TrafficClass& traffic_class : config.classes)
        add(traffic_class.policer, {PolicerUse::traffic_class, *registry.classes.find(traffic_class.name), ""},
            PolicerPlace::traffic_class, traffic_class.name, std::nullopt);
    for (const config::Acl& acl : config.acls)
        for (std::size_t i = 0; i < acl.rules.size(); ++i) {
            if (!acl.rules[i].policer) continue;
            PolicerKey key = rule_policer_key(acl, i);
            const std::string name = key.name;
            add(acl.rules[i].policer, std::move(key), PolicerPlace::rule, name, std::nullopt);
        }
    return all;
}

void attach_policers(const config::Config& config, Registry& registry, pipeline::Snapshot& snapshot) {
    snapshot.session_policer_places = session_policer_places(config);
    for (const PolicerAttachment& attachment : policer_attachments(config, registry)) {
        const config::Policer& policer = config.policers[attachment.policer];
        const std::uint16_t index = registry.policers.get(attachment.key);
        const std::uint16_t bucket = policer.shared ? registry.policers.get(shared_key(policer)) : qos::kOwnBucket;
        // Sessions may hold indices that nothing is attached to any more: a profile that lets everything pass.
        snapshot.policers.resize(std::max<std::size_t>(snapshot.policers.size(), registry.policers.end()));
        qos::PolicerProfile& profile = snapshot.policers[index];
        profile = qos::make_profile(policer_config(policer));
        profile.bucket = bucket;
        profile.per_session = policer.per_session;
        if (attachment.place != PolicerPlace::rule) slot_of(snapshot, attachment) = index;
        snapshot.policer_places |= bit_of(attachment.place);
    }
    snapshot.policers.resize(std::max<std::size_t>(snapshot.policers.size(), registry.policers.end()));
}

std::uint8_t session_policer_places(const config::Config& config) {
    std::uint8_t places = 0;
    const auto add = [&](const std::optional<std::size_t>& policer, PolicerPlace place) {
        if (policer && config.policers[*policer].per_session) places |= bit_of(place);
    };
    for (const config::Tenant& tenant : config.tenants) {
        if (tenant.sessions == config::SessionMode::none) continue;
        add(tenant.policer_in, PolicerPlace::tenant_in);
        add(tenant.policer_out, PolicerPlace::tenant_out);
        if (!tenant.acl) continue;
        for (const config::AclRule& rule : config.acls[*tenant.acl].rules) add(rule.policer, PolicerPlace::rule);
    }
    return places;
}

void make_session_buckets(const config::Config& config, session::Table& sessions) {
    const std::uint8_t places = session_policer_places(config);
    for (const PolicerPlace place : kSessionPlaces)
        if (places & bit_of(place)) sessions.make_beside(pipeline::beside_of(place));
}

std::size_t session_buckets_needed(const config::Config& config, std::uint32_t capacity) {
    return static_cast<std::size_t>(std::popcount(session_policer_places(config))) *
           session::Besides::memory_needed(capacity);
}

std::size_t session_buckets_missing(const config::Config& config, const session::Table& sessions) {
    const std::uint8_t places = session_policer_places(config);
    const std::size_t each = session::Besides::memory_needed(static_cast<std::uint32_t>(sessions.stats().capacity));
    std::size_t bytes = 0;
    for (const PolicerPlace place : kSessionPlaces)
        if (places & bit_of(place) && sessions.beside(pipeline::beside_of(place)) == nullptr) bytes += each;
    return bytes;
}

void fill_classes(const config::Config& config, Registry& registry, pipeline::Snapshot& snapshot) {
    for (const config::TrafficClass& from : config.classes) {
        const auto index = static_cast<std::uint8_t>(registry.classes.get(from.name));
        pipeline::TrafficClass& to = snapshot.traffic_classes[index];
        to.dscp = from.dscp.value_or(pipeline::kKeepDscp);
        to.pcp = from.pcp.value_or(0);
        if (from.dscp) snapshot.class_of_dscp[*from.dscp] = index;
        if (from.pcp) snapshot.class_of_pcp[*from.pcp] = index;
        snapshot.classes = true;
    }
    snapshot.schedulers = !config.schedulers.empty();
}

}  // namespace cachewire::control
