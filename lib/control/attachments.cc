// SPDX-License-Identifier: BSD-3-Clause
#include "control/attachments.h"

#include <algorithm>
#include <map>
#include <utility>

#include "pipeline/attachment.h"

namespace cachewire::control {

namespace {

using pipeline::kAnyVlan;
using Tags = std::pair<std::uint16_t, std::uint16_t>;

}  // namespace

void fill_attachments(const config::Config& config, std::size_t port_index, Registry& registry, pipeline::Port& port) {
    std::map<Tags, pipeline::Attachment> exact;
    for (const auto& interface : config.interfaces) {
        if (interface.port != port_index) continue;
        exact[{interface.vlan, interface.inner_vlan}] = {registry.tenants.get(config.tenants[interface.tenant].name),
                                                         registry.interfaces.get(interface.name)};
    }
    std::map<Tags, pipeline::Attachment> wildcards;
    for (const auto& tenant : config.tenants) {
        const pipeline::Attachment attachment{registry.tenants.get(tenant.name), pipeline::kNoInterface};
        for (const auto& match : tenant.match) {
            if (match.port != port_index) continue;
            if (match.vlan == 0 || match.inner_vlan) {
                exact.try_emplace({*match.vlan, match.inner_vlan.value_or(0)}, attachment);
            } else {
                wildcards.try_emplace({match.vlan.value_or(kAnyVlan), 0}, attachment);
            }
        }
    }
    for (const auto& [tags, attachment] : exact) {
        if (tags == Tags{0, 0}) {
            port.untagged = attachment;
        } else {
            port.tagged.push_back({tags.first, tags.second, attachment});
        }
    }
    // std::map has put kAnyVlan last, which is the least specific.
    for (const auto& [tags, attachment] : wildcards) port.wildcards.push_back({tags.first, tags.second, attachment});
    if (port.untagged.tenant == pipeline::kNoTenant && !port.wildcards.empty() &&
        port.wildcards.back().outer == kAnyVlan)
        port.untagged = port.wildcards.back().attachment;
    port.by_vlan = pipeline::attachments_by_vlan(port);
}

}  // namespace cachewire::control
