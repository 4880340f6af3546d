// SPDX-License-Identifier: BSD-3-Clause
#include <map>

#include <fmt/format.h>

#include "config/sections.h"

namespace cachewire::config {
namespace {

constexpr Key kQos[] = {{"policers"}, {"classes"}, {"schedulers"}};
constexpr Key kClass[] = {{"name"}, {"dscp"}, {"pcp"}, {"policer"}, {"priority"}};
constexpr Key kDirections[] = {{"in"}, {"out"}};
constexpr std::size_t kMaxClasses = 16;

// Code points that classes have taken, and by which.
using Taken = std::map<std::uint8_t, std::string>;

void take(Reporter& reporter, const Value& value, std::uint8_t code, const std::string& name, Taken& taken) {
    const auto [other, fresh] = taken.try_emplace(code, name);
    if (!fresh) reporter.error(value, fmt::format("stands for class '{}' already", other->second));
}

void read_class(Loading& loading, const Value& item, Taken& dscps, Taken& pcps) {
    Reporter& reporter = loading.reporter;
    const MapReader map(reporter, item, kClass);
    TrafficClass traffic_class;
    const auto name = map.require("name");
    traffic_class.name = read_name(reporter, name).value_or("");
    traffic_class.dscp = read_dscp(reporter, map.get("dscp"));
    if (traffic_class.dscp) take(reporter, *map.get("dscp"), *traffic_class.dscp, traffic_class.name, dscps);
    if (const auto pcp = read_integer(reporter, map.get("pcp"), 0, 7)) {
        traffic_class.pcp = static_cast<std::uint8_t>(*pcp);
        take(reporter, *map.get("pcp"), *traffic_class.pcp, traffic_class.name, pcps);
    }
    if (const auto priority = read_integer(reporter, map.get("priority"), 0, kStrictClasses - 1))
        traffic_class.priority = static_cast<std::uint8_t>(*priority);
    traffic_class.policer = loading.policers.resolve(reporter, map.get("policer"));
    refuse_per_session(loading, map.get("policer"), traffic_class.policer,
                       "a session's packets may be of several classes");
    if (!traffic_class.name.empty())
        loading.classes.add(reporter, *name, traffic_class.name, loading.config.classes.size());
    loading.config.classes.push_back(std::move(traffic_class));
}

}  // namespace

void refuse_per_session(Loading& loading, const std::optional<Value>& value, const std::optional<std::size_t>& policer,
                        std::string_view why) {
    if (policer && loading.config.policers[*policer].per_session)
        loading.reporter.error(*value, fmt::format("has a bucket for each session, but {}; allowed: on tenants with "
                                                   "sessions and on rules of stateful lists",
                                                   why));
}

void read_policers_of(Loading& loading, const std::optional<Value>& value, std::optional<std::size_t>& in,
                      std::optional<std::size_t>& out, std::string_view no_sessions) {
    if (!value) return;
    const MapReader directions(loading.reporter, *value, kDirections);
    in = loading.policers.resolve(loading.reporter, directions.get("in"));
    out = loading.policers.resolve(loading.reporter, directions.get("out"));
    if (no_sessions.empty()) return;
    refuse_per_session(loading, directions.get("in"), in, no_sessions);
    refuse_per_session(loading, directions.get("out"), out, no_sessions);
}

void read_qos(Loading& loading, const MapReader& top) {
    Reporter& reporter = loading.reporter;
    const auto value = top.get("qos");
    if (!value) return;
    const MapReader qos(reporter, *value, kQos);
    for (const Value& item : read_list(reporter, qos.get("policers")))
        loading.config.policers.push_back(read_policer(loading, item));
    Taken dscps, pcps;
    const auto classes = read_list(reporter, qos.get("classes"));
    if (classes.size() > kMaxClasses)
        reporter.error(*qos.get("classes"),
                       fmt::format("{} classes; allowed: at most {}", classes.size(), kMaxClasses));
    for (const Value& item : classes) read_class(loading, item, dscps, pcps);
    for (const Value& item : read_list(reporter, qos.get("schedulers"))) read_scheduler(loading, item);
}

}  // namespace cachewire::config
