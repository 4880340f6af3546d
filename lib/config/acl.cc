// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "config/sections.h"

namespace cachewire::config {
namespace {

constexpr Key kAcl[] = {{"name"}, {"default"}, {"stateful"}, {"rules"}, {"file", kLater}, {"format", kLater}};
constexpr Choice<AclAction> kActions[] = {
    {"permit", AclAction::permit}, {"deny", AclAction::deny}, {"reject", std::nullopt}};

}  // namespace

void read_acls(Loading& loading, const MapReader& top) {
    Reporter& reporter = loading.reporter;
    for (const Value& item : read_list(reporter, top.get("acl"))) {
        const MapReader map(reporter, item, kAcl);
        Acl acl;
        const auto name = map.require("name");
        acl.name = read_name(reporter, name).value_or("");
        read_choice(reporter, map.get("default"), acl.default_action, kActions);
        read_bool(reporter, map.get("stateful"), acl.stateful);
        Names rules("rule");
        for (const Value& rule : read_list(reporter, map.get("rules"))) {
            acl.rules.push_back(read_acl_rule(loading, rule));
            const std::string& rule_name = acl.rules.back().name;
            if (!rule_name.empty()) rules.add(reporter, rule, rule_name, acl.rules.size() - 1);
        }
        if (!acl.name.empty()) loading.acls.add(reporter, *name, acl.name, loading.config.acls.size());
        loading.config.acls.push_back(std::move(acl));
    }
}

}  // namespace cachewire::config
