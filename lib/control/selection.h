#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What a list endpoint is asked for: a page, perhaps of one object's.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "telemetry/endpoints.h"
#include "telemetry/page.h"

namespace cachewire::control {

// "[NAME,]CURSOR,N": a name begins with a letter, a cursor with a digit.
struct Selection {
    std::string name;  // empty: all
    telemetry::PageRequest page;
};

inline Selection parse_selection(std::string_view parameters) {
    Selection selection;
    if (!parameters.empty() && (parameters.front() < '0' || parameters.front() > '9')) {
        const std::size_t comma = parameters.find(',');
        selection.name = parameters.substr(0, comma);
        parameters = comma == std::string_view::npos ? "" : parameters.substr(comma + 1);
    }
    selection.page = telemetry::parse_page(parameters);
    return selection;
}

// Index by name among the configuration's objects of a kind; throws for a name that none has.
template <class Object>
std::optional<std::size_t> find_named(const std::vector<Object>& objects, const std::string& name, const char* kind) {
    if (name.empty()) return std::nullopt;
    for (std::size_t i = 0; i < objects.size(); ++i)
        if (objects[i].name == name) return i;
    throw telemetry::BadQuery(fmt::format("no {} '{}'", kind, name));
}

}  // namespace cachewire::control
