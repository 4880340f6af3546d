// SPDX-License-Identifier: BSD-3-Clause
#include "control/worker_watch.h"

#include "support/catch.h"

using cachewire::control::WorkerWatch;

TEST_CASE("watch: a worker that stalls is named once, and again when it comes round", "[watch]") {
    std::vector<std::string> said;
    WorkerWatch watch([&said](const std::string& text) { said.push_back(text); });
    std::uint64_t ms = 1000, turns = 0;
    const auto look = [&](bool second_moves) {
        ms += 100;
        turns += second_moves;
        watch.look({{3, ms}, {5, turns}}, ms);
    };
    for (int i = 0; i < 10; ++i) look(true);
    CHECK(said.empty());
    for (int i = 0; i < 20; ++i) look(false);
    REQUIRE(said.size() == 1);
    CHECK(said[0].find("lcore 5 has not come round for 500 ms") != std::string::npos);
    look(true);
    REQUIRE(said.size() == 2);
    CHECK(said[1].find("lcore 5 comes round again after 2100 ms") != std::string::npos);
    for (int i = 0; i < 10; ++i) look(true);
    CHECK(said.size() == 2);
}
