// SPDX-License-Identifier: BSD-3-Clause
#include "route/range_table.h"

#include "support/catch.h"

using namespace cachewire::route;

TEST_CASE("range table: routes become disjoint ranges", "[route]") {
    using Table = RangeTable<std::uint32_t>;
    const struct {
        const char* what;
        std::vector<Table::Range> routes;
        std::size_t ranges;
        std::vector<std::pair<std::uint32_t, std::uint16_t>> expected;
    } cases[] = {
        {"nothing", {}, 1, {{0, 0}, {0xffffffff, 0}}},
        {"everything", {{0, 0xffffffff, 7}}, 1, {{0, 7}, {0xffffffff, 7}}},
        {"one in the middle", {{10, 19, 1}}, 3, {{9, 0}, {10, 1}, {19, 1}, {20, 0}}},
        {"a hole in everything", {{0, 0xffffffff, 7}, {10, 19, 1}}, 3, {{9, 7}, {10, 1}, {19, 1}, {20, 7}}},
        {"same first address", {{16, 31, 1}, {16, 19, 2}}, 4, {{15, 0}, {16, 2}, {19, 2}, {20, 1}, {31, 1}, {32, 0}}},
        {"same last address", {{16, 31, 1}, {28, 31, 2}}, 4, {{27, 1}, {28, 2}, {31, 2}, {32, 0}}},
        {"the last address of all",
         {{0, 0xffffffff, 7}, {0xffffffff, 0xffffffff, 8}},
         2,
         {{0xfffffffe, 7}, {0xffffffff, 8}}},
        {"neighbours with one next hop merge", {{8, 15, 1}, {16, 31, 1}}, 3, {{7, 0}, {8, 1}, {31, 1}, {32, 0}}},
        {"a child that repeats its parent", {{0, 255, 1}, {16, 31, 1}}, 2, {{0, 1}, {20, 1}, {255, 1}, {256, 0}}},
        {"three deep, closing at once",
         {{0, 31, 1}, {16, 31, 2}, {24, 31, 3}},
         4,
         {{15, 1}, {16, 2}, {24, 3}, {31, 3}, {32, 0}}},
    };
    for (const auto& c : cases) {
        INFO(c.what);
        const Table table(c.routes);
        CHECK(table.size() == c.ranges);
        for (const auto& [address, next_hop] : c.expected) {
            INFO(address);
            CHECK(table.lookup(address) == next_hop);
        }
    }
}
