// SPDX-License-Identifier: BSD-3-Clause
#include "control/policy_preview.h"

#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/format.h>

#include "acl/batch.h"
#include "control/acl_status.h"
#include "pipeline/egress.h"
#include "session/entry.h"

namespace cachewire::control {

namespace {

using HitsByRule = std::map<std::tuple<std::string, std::uint32_t, acl::Action>, std::uint64_t>;

// As a stale session's next packet has it judged (stages/4_acl.h).
void classify(const acl::Classifier* list, const pipeline::Snapshot& now,
              std::span<const SessionRequests::Listed> sessions, std::span<acl::Verdict> verdicts) {
    std::array<net::FlowKey, session::Mailbox::kMaxViews> keys;
    static_assert(session::Mailbox::kMaxViews <= acl::Batch::kCapacity);
    acl::Batch batch;
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        const session::SessionView& view = sessions[i].view;
        keys[i] = session::forward_key(view.hot, view.cold);
        if (list != nullptr && list->uses_egress())
            acl::put_out_interface(keys[i], pipeline::egress_interface(now, view.hot.tenant, keys[i], view.cold.hash,
                                                                       view.hot.next_hop[0]));
        batch.add(list, &keys[i], static_cast<std::uint8_t>(i));
    }
    batch.judge([&](auto i, const acl::Verdict& verdict) { verdicts[i] = verdict; });
}

void compare(const acl::Classifier* before, const acl::Classifier* after, const pipeline::Snapshot& now,
             std::span<const SessionRequests::Listed> sessions, PolicyPreview& preview, HitsByRule& counts) {
    std::array<acl::Verdict, session::Mailbox::kMaxViews> was, will;
    classify(before, now, sessions, std::span(was).first(sessions.size()));
    classify(after, now, sessions, std::span(will).first(sessions.size()));
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        const auto& outcome = sessions[i].view.outcome;
        const bool permitted = outcome ? outcome->permit != 0 : was[i].action == acl::Action::permit;
        const bool permits = will[i].action == acl::Action::permit;
        if (permitted == permits) continue;
        ++(permits ? preview.to_permit : preview.to_deny);
        ++counts[{after != nullptr ? after->list().name : "", will[i].rule, will[i].action}];
    }
    preview.sessions += sessions.size();
}

}  // namespace

PolicyPreview preview_policy(SessionRequests& requests, const pipeline::Snapshot& now, const TenantLists& lists,
                             std::chrono::milliseconds budget) {
    const auto end = std::chrono::steady_clock::now() + budget;
    PolicyPreview preview;
    HitsByRule counts;
    for (const auto& [slot, list] : lists) {
        if (slot >= now.tenants.size() || now.tenants[slot].acl == list.get()) continue;
        session::Filter filter;
        filter.tenant = slot;
        std::optional<SessionRequests::Cursor> cursor = 0;
        while (cursor) {
            if (std::chrono::steady_clock::now() >= end) {
                preview.complete = false;
                break;
            }
            const auto page = requests.list(filter, *cursor, session::Mailbox::kMaxViews);
            compare(now.tenants[slot].acl, list.get(), now, page.sessions, preview, counts);
            cursor = page.next;
        }
    }
    for (const auto& [key, sessions] : counts)
        preview.rules.push_back({std::get<0>(key), std::get<1>(key), "", std::get<2>(key), sessions});
    std::stable_sort(preview.rules.begin(), preview.rules.end(),
                     [](const auto& a, const auto& b) { return a.sessions > b.sessions; });
    return preview;
}

void name_rules(PolicyPreview& preview, const config::Config& config) {
    for (PolicyPreview::Rule& rule : preview.rules) {
        rule.name = rule.list.empty() ? "no list" : "default";
        if (rule.rule == acl::kDefaultRule) continue;
        for (const config::Acl& acl : config.acls) {
            if (acl.name != rule.list) continue;
            const config::AclRule& from = acl.rules[rule.rule];
            rule.name = fmt::format("{} (line {})", rule_name(from, rule.rule), from.line);
        }
    }
}

nlohmann::ordered_json to_json(const PolicyPreview& preview) {
    constexpr std::size_t kShown = 50;
    auto rules = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < std::min(preview.rules.size(), kShown); ++i) {
        const PolicyPreview::Rule& rule = preview.rules[i];
        rules.push_back({{"list", rule.list},
                         {"rule", rule.name},
                         {"action", action_name(rule.action)},
                         {"sessions", rule.sessions}});
    }
    return {{"live", std::max(preview.live, preview.sessions)},
            {"sessions", preview.sessions},
            {"would_change", preview.to_deny + preview.to_permit},
            {"to_deny", preview.to_deny},
            {"to_permit", preview.to_permit},
            {"complete", preview.complete},
            {"rules", std::move(rules)}};
}

}  // namespace cachewire::control
