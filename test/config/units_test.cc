// SPDX-License-Identifier: BSD-3-Clause
#include "config/units.h"

#include "support/catch.h"

using namespace cachewire::config;

TEST_CASE("config: rates, sizes and times carry units and are never rounded", "[config]") {
    std::string why;
    const struct {
        const char* text;
        std::uint64_t per_second;
        RateKind kind;
    } rates[] = {{"8kbit", 8000, RateKind::bits},
                 {"100Mbit", 100'000'000, RateKind::bits},
                 {"2.5Gbit", 2'500'000'000, RateKind::bits},
                 {"1Tbit", 1'000'000'000'000, RateKind::bits},
                 {"2Mpps", 2'000'000, RateKind::packets},
                 {"100pps", 100, RateKind::packets}};
    for (const auto& rate : rates) {
        INFO(rate.text);
        const auto parsed = parse_rate(rate.text, why);
        REQUIRE(parsed);
        CHECK(parsed->per_second == rate.per_second);
        CHECK(parsed->kind == rate.kind);
    }
    CHECK(parse_size("64KiB", why) == 65536u);
    CHECK(parse_size("64kB", why) == 64000u);
    CHECK(parse_size("1500B", why) == 1500u);
    CHECK(parse_time("500ms", why) == 500u);
    CHECK(parse_time("2h", why) == 7'200'000u);
    CHECK(parse_time("1d", why) == 86'400'000u);
    for (const char* wrong : {"", "100", "Mbit", "100 Mbit", "1e3Mbit", "-1Mbit", ".5Mbit", "1.Mbit", "1.2.3Mbit",
                              "01Mbit", "100mbit", "0.5bit", "1.0000000001Gbit"}) {
        INFO(wrong);
        why.clear();
        CHECK_FALSE(parse_rate(wrong, why));
        CHECK_FALSE(why.empty());
    }
    CHECK_FALSE(parse_size("100Mbit", why));
    CHECK(why == "'100Mbit' has the unknown unit 'Mbit'");
    // Out of any range, but no wrap to a small value.
    CHECK(parse_size("99999999999999999999999GiB", why) == UINT64_MAX);
}

TEST_CASE("config: ranges and lcore lists name every number once", "[config]") {
    std::string why;
    const auto range = parse_range("80-443", why);
    REQUIRE(range);
    CHECK(range->first == 80);
    CHECK(range->last == 443);
    CHECK(parse_lcores("5,1-3", why) == std::vector<unsigned>{1, 2, 3, 5});
    CHECK(parse_lcores("0", why) == std::vector<unsigned>{0});
    for (const char* wrong :
         {"", ",", "1,", "1,,2", "1-", "-1", "3-1", "1,1", "1-3,2", "1024", "0-99999999999", "a", "1 2", "01"}) {
        INFO(wrong);
        why.clear();
        CHECK_FALSE(parse_lcores(wrong, why));
        CHECK_FALSE(why.empty());
    }
}
