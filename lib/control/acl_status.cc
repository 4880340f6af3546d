// SPDX-License-Identifier: BSD-3-Clause
#include "control/acl_status.h"

#include <fmt/format.h>

#include "control/runtime.h"
#include "telemetry/page.h"

namespace cachewire::control {

namespace {

using telemetry::BadQuery;
using telemetry::Json;
using View = Runtime::View;

std::string tenants_of(const View& v, const config::Acl& acl) {
    std::string names;
    for (const auto& tenant : v.config.tenants)
        if (tenant.acl && &v.config.acls[*tenant.acl] == &acl) names += (names.empty() ? "" : " ") + tenant.name;
    return names;
}

Json acl_list(const View& v, std::string_view parameters) {
    const auto entry = [&v](std::size_t i) {
        const config::Acl& acl = v.config.acls[i];
        const acl::Classifier& list = *v.registry.classifiers.at(acl.name);
        return Json{{"name", acl.name},
                    {"rules", std::uint64_t{list.list().rules.size()}},
                    {"default", action_name(list.list().default_action)},
                    {"stateful", list.list().stateful ? 1u : 0u},
                    {"file", acl.file},
                    {"tenants", tenants_of(v, acl)},
                    {"tries", std::uint64_t{list.tries()}},
                    {"memory_bytes", std::uint64_t{list.memory_bytes()}},
                    {"build_time_us", list.build_time_us()}};
    };
    return telemetry::page(v.config.acls.size(), entry, telemetry::parse_page(parameters));
}

Json acl_hits(const View& v, std::string_view name, const telemetry::PageRequest& page) {
    for (const config::Acl& acl : v.config.acls) {
        if (acl.name != name) continue;
        const acl::List& list = v.registry.classifiers.at(acl.name)->list();
        const ListHits& hits = *v.registry.hits.at(acl.name);
        const auto entry = [&](std::size_t i) {
            const bool by_default = i == list.rules.size();
            const RuleTotals totals = v.rule_hits.of(hits, static_cast<std::uint32_t>(i));
            return Json{{"rule", by_default ? "default" : rule_name(acl.rules[i], i)},
                        {"line", by_default ? std::uint64_t{0} : std::uint64_t{acl.rules[i].line}},
                        {"action", action_name(by_default ? list.default_action : list.rules[i].action)},
                        {"packets", totals.packets},
                        {"bytes", totals.bytes},
                        {"sessions", totals.sessions}};
        };
        return telemetry::page(list.rules.size() + 1, entry, page);
    }
    throw BadQuery(fmt::format("no list '{}'; /cachewire/acl/list names them", name));
}

// What sessions have counted since their last flush is asked for with the first page, so that the numbers are whole. A
// worker that doesn't answer costs exactness and no answer.
void flush_sessions(Runtime& runtime) {
    if (runtime.with_view([](const View& v) { return v.state != State::running; })) return;
    try {
        runtime.session_requests().flush();
    } catch (const NoAnswer&) {
    }
}

Json hits(Runtime& runtime, std::string_view parameters) {
    const std::size_t comma = parameters.find(',');
    const std::string_view name = parameters.substr(0, comma);
    if (name.empty()) throw BadQuery("NAME,CURSOR,N are expected; /cachewire/acl/list names the lists");
    const auto page = telemetry::parse_page(comma == std::string_view::npos ? "" : parameters.substr(comma + 1));
    if (page.cursor == 0) flush_sessions(runtime);
    return runtime.with_view([&](const View& v) { return acl_hits(v, name, page); });
}

}  // namespace

const char* action_name(acl::Action action) {
    switch (action) {
        case acl::Action::permit:
            return "permit";
        case acl::Action::deny:
            return "deny";
        case acl::Action::reject:
            return "reject";
    }
    return "";
}

std::string rule_name(const config::AclRule& rule, std::size_t index) {
    return rule.name.empty() ? fmt::format("rule {}", index + 1) : rule.name;
}

void add_acl_endpoints(telemetry::Endpoints& endpoints, Runtime& runtime) {
    endpoints.add("/cachewire/acl/list",
                  "Access lists: rules, memory, build time. Parameters: cursor, count (optional)",
                  [&runtime](std::string_view parameters) {
                      return runtime.with_view([&](const View& v) { return acl_list(v, parameters); });
                  });
    endpoints.add("/cachewire/acl/hits", "Hits by rule. Parameters: list, cursor, count",
                  [&runtime](std::string_view parameters) { return hits(runtime, parameters); });
}

}  // namespace cachewire::control
