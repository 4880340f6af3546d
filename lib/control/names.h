#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Between the names that a query brings and an answer carries, and the indices that everything else works with.
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "control/registry.h"
#include "telemetry/endpoints.h"
#include "telemetry/wire.h"

namespace cachewire::control {

// Throws BadQuery where there is no such tenant.
inline std::uint16_t tenant_slot(const Registry& registry, std::string_view name) {
    if (const auto slot = registry.tenants.find(std::string(name))) return *slot;
    throw telemetry::BadQuery(fmt::format("no tenant '{}'", name));
}

// "?" for an index that has no name.
inline std::string name_of(const IndexMap<>& names, std::uint16_t index) {
    for (const auto& [name, i] : names.all())
        if (i == index) return name;
    return "?";
}

}  // namespace cachewire::control
