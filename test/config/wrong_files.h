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

// What is said of it; a file that is taken begins with "taken", which no message does.
inline std::string errors_of(const WrongFile& wrong) {
    const auto result = config::load_text(std::string(wrong.prefix) + wrong.text, "f.yaml");
    std::string errors = result.config ? "taken\n" : "";
    for (const auto& diagnostic : result.diagnostics) errors += config::to_string(diagnostic) + "\n";
    return errors;
}

}  // namespace cachewire::test
