// SPDX-License-Identifier: BSD-3-Clause
#include "config/json.h"

namespace cachewire::config {

nlohmann::ordered_json to_json(const Diagnostic& diagnostic) {
    return {{"severity", diagnostic.severity == Diagnostic::Severity::error ? "error" : "warning"},
            {"file", diagnostic.file},
            {"line", diagnostic.line},
            {"column", diagnostic.column},
            {"key", diagnostic.key_path},
            {"message", diagnostic.text}};
}

nlohmann::ordered_json to_json(const std::vector<Diagnostic>& diagnostics) {
    auto list = nlohmann::ordered_json::array();
    for (const Diagnostic& diagnostic : diagnostics) list.push_back(to_json(diagnostic));
    return list;
}

}  // namespace cachewire::config
