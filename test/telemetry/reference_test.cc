// SPDX-License-Identifier: BSD-3-Clause
#include <fstream>
#include <iterator>
#include <string>

#include "pipeline/drop_reason.h"
#include "support/catch.h"

TEST_CASE("docs/telemetry.md names every drop reason", "[telemetry]") {
    std::ifstream file(CACHEWIRE_TELEMETRY_REFERENCE);
    REQUIRE(file);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    for (const auto& reason : cachewire::pipeline::kDropReasonTexts) {
        INFO(reason.name);
        CHECK(text.find("| `" + std::string(reason.name) + "` |") != std::string::npos);
    }
}
