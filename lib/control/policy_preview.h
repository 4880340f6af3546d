#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What a new policy would do to the sessions that are there: each is judged by the new list as it would be by its next
// packet, from what the workers hand out page by page. They are asked for nothing else and change nothing.
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "acl/classifier.h"
#include "base/json.h"
#include "config/config.h"
#include "control/session_requests.h"
#include "pipeline/snapshot.h"

namespace cachewire::control {

struct PolicyPreview {
    struct Rule {
        std::string list;
        std::uint32_t rule = acl::kDefaultRule;  // of the new list, whose verdict it is
        std::string name;                        // of the rule, with its line; name_rules() fills it in
        acl::Action action = acl::Action::deny;
        std::uint64_t sessions = 0;
    };
    std::uint64_t live = 0;      // all there are
    std::uint64_t sessions = 0;  // looked at: those of tenants whose list changes
    std::uint64_t to_deny = 0, to_permit = 0;
    bool complete = true;     // false: the time was used up
    std::vector<Rule> rules;  // most sessions first
};

// By tenant slot; null: no list.
using TenantLists = std::map<std::uint16_t, std::shared_ptr<const acl::Classifier>>;

// `now`: what is published; egresses are taken from its routes. Throws NoAnswer.
PolicyPreview preview_policy(SessionRequests& requests, const pipeline::Snapshot& now, const TenantLists& lists,
                             std::chrono::milliseconds budget);

void name_rules(PolicyPreview& preview, const config::Config& config);
// {"live", "sessions", "would_change", "to_deny", "to_permit", "complete", "rules": [{"list", "rule", "action",
// "sessions"}]}; the rules with the most sessions.
nlohmann::ordered_json to_json(const PolicyPreview& preview);

}  // namespace cachewire::control
