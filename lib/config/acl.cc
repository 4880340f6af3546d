// SPDX-License-Identifier: BSD-3-Clause
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "config/rule_coverage.h"
#include "config/rule_file.h"
#include "config/sections.h"
#include "config/text_file.h"

namespace cachewire::config {
namespace {

constexpr Key kAcl[] = {{"name"}, {"default"}, {"stateful"}, {"rules"}, {"file"}, {"format"}};

constexpr Choice<RuleFormat> kFormats[] = {{"l3fwd-acl", RuleFormat::l3fwd_acl},
                                           {"classbench", RuleFormat::classbench}};

constexpr std::chrono::milliseconds kCoverageBudget{500};  // a list

std::string line_of(const AclRule& rule) {
    return fmt::format("line {}{}", rule.line, rule.name.empty() ? "" : " (" + rule.name + ")");
}

// Warns of rules that never match, in the file that they stand in. `path_of` names a rule's place in it.
template <class PathOf>
void warn_of_covered(Reporter& reporter, const Acl& acl, PathOf&& path_of, std::uint16_t file = 0) {
    const Coverage coverage = find_covered(acl.rules, kCoverageBudget);
    for (const Covered& covered : coverage.found) {
        const AclRule &rule = acl.rules[covered.rule], &by = acl.rules[covered.by];
        reporter.warning(rule.line, rule.column, path_of(covered.rule),
                         covered.same ? fmt::format("never matches: {} matches the same packets before", line_of(by))
                                      : fmt::format("never matches: {} matches all of its packets before", line_of(by)),
                         file);
    }
    if (coverage.looked_at < acl.rules.size()) {
        reporter.warning(0, 0, "",
                         fmt::format("acl {}: only the first {} of {} rules were searched for ones that never match, "
                                     "which took {} ms",
                                     acl.name, coverage.looked_at, acl.rules.size(), kCoverageBudget.count()),
                         file);
    }
}

void read_rules(Loading& loading, const MapReader& map, Acl& acl) {
    Names names("rule");
    for (const Value& rule : read_list(loading.reporter, map.get("rules"))) {
        acl.rules.push_back(read_acl_rule(loading, rule));
        const std::string& name = acl.rules.back().name;
        if (!name.empty()) names.add(loading.reporter, rule, name, acl.rules.size() - 1);
    }
    if (loading.reporter.errors() != 0) return;
    const std::size_t list = loading.config.acls.size();
    warn_of_covered(
        loading.reporter, acl, [list](std::size_t rule) { return fmt::format("acl[{}].rules[{}]", list, rule); },
        map.self().node->file);
}

// `file` with `format`: instead of `rules`, read anew at every reload.
void read_rules_of_file(Loading& loading, const MapReader& map, Acl& acl) {
    Reporter& reporter = loading.reporter;
    const auto file = map.get("file");
    if (const auto rules = map.get("rules")) reporter.error(*rules, "the rules come from `file`; allowed: one of both");
    const auto name = read_scalar(reporter, file, "the path of a file with rules");
    RuleFormat format{};
    if (!read_choice(reporter, map.require("format"), format, kFormats) || !name) return;
    acl.file = beside(reporter.path(file->node->file), *name);
    std::string why;
    const auto text = read_text_file(acl.file, kMaxFileBytes, why);
    if (!text) return reporter.error(*file, fmt::format("{}: {}", acl.file, why));
    loading.sources.add_data(acl.file, *text);
    Reporter own(acl.file);
    acl.rules = parse_rule_file(*text, format, own);
    if (own.errors() == 0) warn_of_covered(own, acl, [](std::size_t) { return std::string(); });
    reporter.absorb(std::move(own));
}

}  // namespace

void read_acls(Loading& loading, const MapReader& top) {
    Reporter& reporter = loading.reporter;
    for (const Value& item : read_list(reporter, top.get("acl"))) {
        const MapReader map(reporter, item, kAcl);
        Acl acl;
        const auto name = map.require("name");
        acl.name = read_name(reporter, name).value_or("");
        read_choice(reporter, map.get("default"), acl.default_action, kAclActions);
        read_bool(reporter, map.get("stateful"), acl.stateful);
        if (map.get("file")) {
            read_rules_of_file(loading, map, acl);
        } else {
            read_rules(loading, map, acl);
            if (const auto format = map.get("format"))
                reporter.error(*format, "there is no `file` that has it; allowed: beside `file`");
        }
        // Such a list judges a session's packets one by one, so they may be of several rules.
        for (const Value& policer : std::exchange(loading.per_session_rules, {}))
            if (!acl.stateful)
                reporter.error(policer,
                               "has a bucket for each session, but the list judges packets by themselves; "
                               "allowed: in a list with `stateful: true`");
        if (!acl.name.empty()) loading.acls.add(reporter, *name, acl.name, loading.config.acls.size());
        loading.config.acls.push_back(std::move(acl));
    }
}

}  // namespace cachewire::config
