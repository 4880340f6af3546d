#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The configuration of a text that has to be right.
#include <stdexcept>
#include <string>
#include <utility>

#include "config/load.h"

namespace cachewire::test {

// Throws std::runtime_error with all that is wrong.
inline config::Config config_of(const std::string& text) {
    auto loaded = config::load_text(text, "test.yaml");
    if (loaded.config) return std::move(*loaded.config);
    std::string errors;
    for (const auto& diagnostic : loaded.diagnostics) errors += config::to_string(diagnostic) + "\n";
    throw std::runtime_error(errors);
}

}  // namespace cachewire::test
