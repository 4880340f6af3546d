// SPDX-License-Identifier: BSD-3-Clause
// Which buckets would have to go where, from numbers alone.
#include "control/rebalance.h"

#include <vector>

#include "support/catch.h"

namespace cachewire {

TEST_CASE("rebalance: the busiest worker gives to the least busy one what brings them together", "[handoff]") {
    using control::choose_shift;
    const pipeline::Owners owners = pipeline::spread_owners(2);
    CHECK(!choose_shift(std::vector<double>{100, 95}, owners, 512, {}));
    CHECK(!choose_shift(std::vector<double>{0, 0}, owners, 512, {}));
    CHECK(!choose_shift(std::vector<double>{100}, owners, 512, {}));
    // Spread evenly over 256 buckets: half of the difference is a quarter of them.
    const auto even = choose_shift(std::vector<double>{1000, 500}, owners, 512, {});
    REQUIRE(even);
    CHECK(even->from == 0);
    CHECK(even->to == 1);
    CHECK(even->count == 64);
    // One session is most of it: it stays, and the others leave.
    const control::HeavySession elephant[] = {{4, 900}};
    const auto around = choose_shift(std::vector<double>{1000, 100}, owners, 512, elephant);
    REQUIRE(around);
    CHECK(!around->buckets.has(4));
    CHECK(around->count == 255);
    // Two of one size: one of them goes.
    const control::HeavySession pair[] = {{4, 450}, {6, 450}};
    const auto one = choose_shift(std::vector<double>{1000, 0}, owners, 512, pair);
    REQUIRE(one);
    CHECK(one->buckets.has(4) != one->buckets.has(6));
    // Buckets that a device doesn't tell apart go together.
    const auto coarse = choose_shift(std::vector<double>{1000, 500}, pipeline::spread_owners(2, 64), 64, {});
    REQUIRE(coarse);
    for (unsigned bucket = 0; bucket < 512; ++bucket)
        CHECK(coarse->buckets.has(bucket) == coarse->buckets.has(bucket % 64));
}

TEST_CASE("rebalance: a worker's rate is that of the last second", "[handoff]") {
    control::WorkerLoad load;
    CHECK(load.rates().empty());
    load.look(0, {0, 0});
    CHECK(load.rates().empty());
    for (std::uint64_t ms = 100; ms <= 3000; ms += 100)
        load.look(ms, {ms <= 1000 ? ms * 5 : 5000, ms <= 1000 ? 0 : (ms - 1000) * 2});
    CHECK(load.rates() == std::vector<double>{0, 2000});
}

}  // namespace cachewire
