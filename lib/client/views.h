#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What `show WHAT` asks and how it looks. A view without a text of its own is shown as a plain table, so an endpoint
// that a later cachewire adds needs one line here and no more.
#include <span>
#include <string>
#include <string_view>

#include "client/sockets.h"

namespace cachewire::client {

struct View {
    std::string_view name;
    std::string_view endpoint;
    // list: follow "next"; ports: a list and each one's counters; qos: the lists of policers and of classes; file: over
    // the control socket (`endpoint` is its command)
    enum class Shape { one, list, ports, qos, file } shape;
    bool takes_tenant;
    bool has_rate;  // counters, so --rate makes sense
    std::string (*text)(const Json& answer, bool rate);
    // `show WHAT NAME`: another endpoint, and how that looks. Empty: takes no name.
    std::string_view by_name{};
    std::string (*text_by_name)(const Json& answer, bool rate) = nullptr;
    bool by_name_has_rate = false;
};

std::span<const View> views();
const View* find_view(std::string_view name);
// Of the interface, but this version has no endpoint for it: `show` tries, help does not offer it.
bool is_later_view(std::string_view name);

// Of /cachewire/session/list: a line a session.
std::string sessions_text(const Json& list);

// What a dry run says about live sessions.
std::string preview_text(const Json& preview);

// `name` empty: the view itself.
Json fetch(TelemetryClient& client, const View& view, const std::string& tenant, const std::string& name = "");

// Two samples -> what happened between them, a second: counters become rates, ratios (busy_percent, cycles_per_packet)
// are those of the interval, gauges and texts are the later sample's.
Json rates(const Json& before, const Json& after, double seconds);

}  // namespace cachewire::client
