// SPDX-License-Identifier: BSD-3-Clause
#include "control/override_status.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include <fmt/format.h>

#include "control/runtime.h"
#include "telemetry/page.h"

namespace cachewire::control {

namespace {

using telemetry::Json;
using View = Runtime::View;
using Request = ControlSocket::Json;

constexpr std::uint32_t kMostSeconds = 7 * 86400;

std::vector<Json> overrides(const View& v) {
    std::vector<Json> list;
    if (v.memoize_override) list.push_back({{"what", "memoize"}, {"value", *v.memoize_override ? "on" : "off"}});
    if (const auto level = v.overrides.log_level())
        list.push_back({{"what", "log_level"}, {"value", base::kLogLevelNames[static_cast<unsigned>(*level)]}});
    for (const Overrides::Block& block : v.overrides.blocks())
        list.push_back({{"what", "block"},
                        {"value", net::to_string(block.prefix)},
                        {"tenant", block.tenant},
                        {"left_s", (block.until_ms - std::min(block.until_ms, v.now_ms) + 999) / 1000}});
    return list;
}

void refuse_other_keys(const Request& request, std::initializer_list<std::string_view> known) {
    for (const auto& [key, value] : request.items())
        if (key != "command" && std::find(known.begin(), known.end(), key) == known.end())
            throw std::invalid_argument(fmt::format("unknown key '{}'", key));
}

std::string text_of(const Request& request, const char* key) {
    const auto value = request.find(key);
    if (value == request.end()) return "";
    if (!value->is_string()) throw std::invalid_argument(fmt::format("\"{}\" is a text", key));
    return value->get<std::string>();
}

// A prefix, or an address alone.
net::Prefix prefix_of(const Request& request) {
    const std::string text = text_of(request, "prefix");
    if (const auto address = net::parse_address(text))
        return {address->address, static_cast<std::uint8_t>(address->family == net::Family::ip4 ? 32 : 128),
                address->family};
    const auto prefix = net::parse_prefix(text);
    if (!prefix) throw std::invalid_argument(fmt::format("'{}' is no prefix; allowed: one such as 10.0.0.0/8", text));
    if (prefix->host_bits_set)
        throw std::invalid_argument(
            fmt::format("'{}' has host bits; the network is {}", text, net::to_string(prefix->prefix)));
    return prefix->prefix;
}

// What the log shows of it is what was asked and, here, what holds now.
Request done_or(const std::string& error, Request done) {
    if (!error.empty()) return {{"ok", false}, {"error", error}};
    return done;
}

Request memoize(Runtime& runtime, const Request& request) {
    refuse_other_keys(request, {"on"});
    const auto on = request.find("on");
    if (on == request.end() || !on->is_boolean()) throw std::invalid_argument("memoize: \"on\" is true or false");
    return done_or(runtime.override_memoize(on->get<bool>()), {{"memoize", on->get<bool>() ? "on" : "off"}});
}

Request block(Runtime& runtime, const Request& request) {
    refuse_other_keys(request, {"prefix", "tenant", "for_s"});
    const auto for_s = request.find("for_s");
    if (for_s == request.end() || !for_s->is_number_unsigned() || *for_s < 1u || *for_s > kMostSeconds)
        throw std::invalid_argument("block: \"for_s\" is 1 to 604800 seconds");
    const net::Prefix prefix = prefix_of(request);
    return done_or(runtime.block(text_of(request, "tenant"), prefix, for_s->get<std::uint32_t>()),
                   {{"blocked", net::to_string(prefix)}});
}

Request unblock(Runtime& runtime, const Request& request) {
    refuse_other_keys(request, {"prefix", "tenant"});
    const net::Prefix prefix = prefix_of(request);
    return done_or(runtime.unblock(text_of(request, "tenant"), prefix), {{"unblocked", net::to_string(prefix)}});
}

Request log_level(Runtime& runtime, const Request& request) {
    refuse_other_keys(request, {"level"});
    const std::string level = text_of(request, "level");
    const auto known = std::find(std::begin(base::kLogLevelNames), std::end(base::kLogLevelNames), level);
    if (known == std::end(base::kLogLevelNames))
        throw std::invalid_argument(fmt::format("no level '{}'; allowed: error, warning, info, debug", level));
    runtime.set_log_level(static_cast<base::LogLevel>(known - std::begin(base::kLogLevelNames)));
    return {{"log_level", level}};
}

}  // namespace

std::uint64_t overrides_in_force(const View& v) {
    return v.overrides.blocks().size() + (v.memoize_override ? 1u : 0u) + (v.overrides.log_level() ? 1u : 0u);
}

void add_override_endpoints(telemetry::Endpoints& endpoints, Runtime& runtime) {
    endpoints.add("/cachewire/override/list", "What cwctl has changed. Parameters: cursor, count (optional)",
                  [&runtime](std::string_view parameters) {
                      return runtime.with_view([&](const View& view) {
                          return telemetry::page(overrides(view), telemetry::parse_page(parameters));
                      });
                  });
}

void add_override_commands(ControlSocket& socket, Runtime& runtime) {
    const auto add = [&](const char* command, Request (*handler)(Runtime&, const Request&)) {
        socket.add(command, [&runtime, handler](const Request& request) { return handler(runtime, request); });
    };
    add("memoize", memoize);
    add("block", block);
    add("unblock", unblock);
    add("log_level", log_level);
}

}  // namespace cachewire::control
