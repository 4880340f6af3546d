#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What a claim measured, for programs (JSON) and for people (a PNG by gnuplot).
#include <string>
#include <vector>

#include "base/json.h"
#include "slices.h"

namespace cachewire::bench {

// {"claim", "machine", "compiler", "variants": [{"name", "mpps", "cycles_per_packet", "spread", "ratio", "stages"}]}
nlohmann::ordered_json to_json(const std::string& claim, const std::vector<Result>& results);

// Writes `document`, a claim's or a list of them. Throws std::runtime_error where that fails.
void write_json(const std::string& path, const nlohmann::ordered_json& document);

// A bar a variant: cycles a packet and their spread. Throws std::runtime_error where gnuplot is missing or fails.
void plot(const std::string& path, const nlohmann::ordered_json& document);

}  // namespace cachewire::bench
