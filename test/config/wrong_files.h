#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Tables of wrong files: each must be refused with exactly these diagnostics, one line each.
#include <string>

#include "config/load.h"
#include "support/catch.h"

namespace cachewire::test {

struct WrongFile {
    const char* prefix;
    const char* text;
    const char* errors;
};

inline constexpr const char* kPort = "version: 1\nports: [{name: wan, device: net_null0}]\n";
inline constexpr const char* kRouter =
    "version: 1\nports: [{name: wan, device: net_null0}]\n"
    "interfaces: [{port: wan, addresses: [192.0.2.1/24, 2001:db8::1/64]}]\n";

inline void check_wrong(const WrongFile& wrong) {
    const std::string text = std::string(wrong.prefix) + wrong.text;
    INFO(text);
    const auto result = config::load_text(text, "f.yaml");
    CHECK_FALSE(result.config.has_value());
    std::string errors;
    for (const auto& diagnostic : result.diagnostics) errors += config::to_string(diagnostic) + "\n";
    CHECK(errors == wrong.errors);
}

}  // namespace cachewire::test
