// SPDX-License-Identifier: BSD-3-Clause
#include "app/lcores.h"

#include "base/error.h"
#include "support/catch.h"

using namespace cachewire;
using app::choose_workers;
using List = std::vector<unsigned>;

TEST_CASE("lcores: auto is every lcore but the main one", "[app]") {
    CHECK(choose_workers({0, {1}}, {}) == List{1});
    CHECK(choose_workers({3, {2}}, {}) == List{2});
    CHECK(choose_workers({3, {0, 2, 40}}, {}) == List{0, 2, 40});
}

TEST_CASE("lcores: the file chooses among EAL's", "[app]") {
    CHECK(choose_workers({0, {1, 2, 3}}, {2}) == List{2});
    CHECK(choose_workers({40, {1, 3, 5, 7}}, {1, 3, 5}) == List{1, 3, 5});
}

TEST_CASE("lcores: schedulers have one of their own, which no worker has", "[app]") {
    const auto jobs = [](const app::Lcores& lcores, const List& configured, bool schedules) {
        const app::Jobs all = app::share_out(lcores, configured, schedules);
        return std::pair(all.workers, all.scheduler);
    };
    CHECK(jobs({0, {1, 2}}, {}, false) == std::pair(List{1, 2}, std::optional<unsigned>{}));
    CHECK(jobs({0, {1, 2, 5}}, {}, true) == std::pair(List{1, 2}, std::optional(5u)));
    CHECK(jobs({0, {1, 2, 3}}, {3}, true) == std::pair(List{3}, std::optional(2u)));
    for (const auto& [lcores, configured] :
         {std::pair(app::Lcores{0, {1}}, List{}), std::pair(app::Lcores{0, {1, 2}}, List{1, 2})}) {
        try {
            app::share_out(lcores, configured, true);
            FAIL("no error");
        } catch (const base::Error& error) {
            CHECK(error.status() == base::ExitStatus::configuration);
            CHECK(std::string(error.what()).starts_with("workers.lcores: `qos.schedulers` need an lcore of their own"));
        }
    }
}

TEST_CASE("lcores: a choice that can't be says which argument to change", "[app]") {
    struct Case {
        app::Lcores lcores;
        List configured;
        const char* text;
    };
    List many;
    for (unsigned lcore = 1; lcore <= 129; ++lcore) many.push_back(lcore);
    const Case cases[] = {
        {{0, {}}, {}, "`--lcores '0@0,1@0'`"},
        {{0, {}}, {1}, "start with `-l 0,1`"},
        {{0, {1, 2, 40}}, {2, 0}, "lcore 0 is EAL's main one"},
        {{0, many}, {}, "129 workers are more than 128"},
        {{0, {1}}, {0}, "lcore 0 is EAL's main one, which never forwards: choose among 1"},
        {{0, {1}}, {5}, "lcore 5 is not one of EAL's: start with `-l 0,5`"},
    };
    for (const Case& c : cases) {
        INFO(c.text);
        try {
            choose_workers(c.lcores, c.configured);
            FAIL("no error");
        } catch (const base::Error& error) {
            INFO(error.what());
            CHECK(error.status() == base::ExitStatus::configuration);
            CHECK(std::string(error.what()).find(c.text) != std::string::npos);
        }
    }
}
