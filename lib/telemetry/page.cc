// SPDX-License-Identifier: BSD-3-Clause
#include "telemetry/page.h"

#include <charconv>
#include <string>

#include <fmt/format.h>

#include "telemetry/endpoints.h"

namespace cachewire::telemetry {

namespace {

std::size_t parse_number(std::string_view text, const char* what) {
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
        throw BadQuery(fmt::format("{} is a number, not '{}'", what, text));
    }
    return value;
}

}  // namespace

std::vector<std::string_view> split_parameters(std::string_view parameters) {
    std::vector<std::string_view> fields;
    if (parameters.empty()) return fields;
    for (;;) {
        const std::size_t comma = parameters.find(',');
        fields.push_back(parameters.substr(0, comma));
        if (comma == std::string_view::npos) return fields;
        parameters.remove_prefix(comma + 1);
    }
}

PageRequest parse_page(std::string_view parameters) {
    const auto fields = split_parameters(parameters);
    if (fields.size() > 2) throw BadQuery("too many parameters; CURSOR,N are expected");
    PageRequest request;
    if (!fields.empty()) request.cursor = parse_number(fields[0], "CURSOR");
    if (fields.size() == 2) request.count = parse_number(fields[1], "N");
    if (request.count == 0) throw BadQuery("N is at least 1");
    return request;
}

Json page(std::size_t size, const std::function<Json(std::size_t)>& entry, const PageRequest& request) {
    constexpr std::size_t kNextBytes = sizeof("\"next\":18446744073709551615,");
    Json out = Json::object();
    std::size_t bytes = 2 + kNextBytes;
    std::size_t i = request.cursor;
    for (; i < size && i - request.cursor < request.count && out.size() < kMaxEntries - 1; ++i) {
        const std::string key = std::to_string(i);
        Json value = to_wire(entry(i));
        bytes += key.size() + 4 + wire_bytes(value);  // "KEY":VALUE,
        // A single entry that is too large goes out alone and is answered as an error.
        if (bytes > kMaxAnswerBytes && !out.empty()) break;
        out[key] = std::move(value);
    }
    if (i < size) out["next"] = i;
    return out;
}

Json page(const std::vector<Json>& entries, const PageRequest& request) {
    return page(
        entries.size(), [&](std::size_t i) { return entries[i]; }, request);
}

}  // namespace cachewire::telemetry
