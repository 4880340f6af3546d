// SPDX-License-Identifier: BSD-3-Clause
#include "config/load.h"

#include <fmt/format.h>

#include "config/sections.h"
#include "config/sources.h"
#include "config/text_file.h"
#include "config/yaml.h"

namespace cachewire::config {
namespace {

constexpr Key kTop[] = {{"version"},
                        {"include"},  // see Sources
                        {"defaults"},
                        {"user", kLater},
                        {"eal"},
                        {"workers"},
                        {"memory"},
                        {"pipeline"},
                        {"ports"},
                        {"cross_connects"},
                        {"tenants"},
                        {"interfaces"},
                        {"neighbors"},
                        {"routes"},
                        {"kernel"},
                        {"acl"},
                        {"sessions"},
                        {"qos"},
                        {"nat", kLater},
                        {"pools", kLater},
                        {"services", kLater},
                        {"capture", kLater},
                        {"telemetry", kLater}};

void read_version(Loading& loading, const MapReader& top) {
    const auto value = top.require("version");
    const auto text = read_scalar(loading.reporter, value, "1");
    if (!text || (value->node->plain && *text == "1")) return;
    if (*text == "1") {
        loading.reporter.error(*value, "'1' is quoted and so is text, not a number; allowed: 1");
    } else {
        loading.reporter.error(*value, fmt::format("{} is not known, only 1 is", quote(*text)));
    }
}

void read_sections(Loading& loading, const MapReader& top) {
    read_version(loading, top);
    read_machine(loading, top);
    read_sessions(loading, top);
    read_ports(loading, top);
    read_qos(loading, top);
    read_acls(loading, top);
    read_defaults(loading, top);
    read_tenants(loading, top);
    read_interfaces(loading, top);
    read_cross_connects(loading, top);
    read_kernel(loading, top);
    read_neighbors(loading, top);
    read_routes(loading, top);
    resolve_rule_ports(loading);
    check_rule_next_hops(loading);
}

// What is right and does nothing. Only of a file without errors: they may be why.
void warn_of_idle(Loading& loading) {
    if (loading.config.interfaces.empty() && loading.config.cross_connects.empty())
        loading.reporter.warning(0, 0, "interfaces", "there are none, so nothing is routed and nothing is answered");
    loading.acls.warn_of_unused(loading.reporter);
    loading.policers.warn_of_unused(loading.reporter);
}

LoadResult failed(const std::string& path, const std::string& why) {
    Reporter reporter(path);
    reporter.error(0, 0, "", why);
    return {std::nullopt, reporter.take(), {}};
}

}  // namespace

LoadResult load_text(std::string_view text, const std::string& path) {
    if (text.size() > kMaxFileBytes) return failed(path, fmt::format("is larger than {} MiB", kMaxFileBytes >> 20));
    Reporter reporter(path);
    Sources sources(reporter);
    const Node* const root = sources.read(text);
    if (root == nullptr) return {std::nullopt, reporter.take(), sources.files()};
    if (root->kind == Node::Kind::null) {
        return failed(path, "is empty; needed at least: version, ports and interfaces");
    }
    Config config;
    config.path = path;
    Loading loading{reporter, config, sources};
    const MapReader top(reporter, Value{root, {}}, kTop);
    if (top.valid()) read_sections(loading, top);
    config.sha256 = sources.sha256();
    config.sources = sources.files();
    if (reporter.errors() > 0) return {std::nullopt, reporter.take(), sources.files()};
    warn_of_idle(loading);
    return {std::move(config), reporter.take(), sources.files()};
}

LoadResult load_file(const std::string& path) {
    std::string why;
    const auto text = read_text_file(path, kMaxFileBytes, why);
    if (!text) return failed(path, why);
    return load_text(*text, path);
}

}  // namespace cachewire::config
