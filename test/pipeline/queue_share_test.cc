// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/queue_share.h"

#include "support/catch.h"

using cachewire::pipeline::kMaxLanes;
using cachewire::pipeline::QueueShare;

TEST_CASE("queue share: a flooded queue gives half as much each time, down to a few, and comes back", "[pipeline]") {
    struct Case {
        const char* what;
        unsigned refused_percent;
        std::uint64_t cycles_a_packet;
        unsigned settles_at_most, settles_at_least;
    };
    constexpr std::uint64_t kBudget = 10000;
    const Case cases[] = {{"nothing refused, in time", 0, 100, kMaxLanes, kMaxLanes},
                          {"half refused, in time", 50, 100, kMaxLanes, kMaxLanes},
                          {"most refused", 51, 100, QueueShare::kLeast, QueueShare::kLeast},
                          {"all refused", 100, 1, QueueShare::kLeast, QueueShare::kLeast},
                          {"slow", 0, 1000, 16, 8},
                          {"so slow that one is too much", 0, 100000, QueueShare::kLeast, QueueShare::kLeast}};
    for (const Case& c : cases) {
        INFO(c.what);
        QueueShare share;
        const auto full_burst = [&](unsigned refused_percent, std::uint64_t cycles) {
            const unsigned n = share.limit();
            share.adapt(n, (n * refused_percent + 99) / 100, n * cycles, kBudget);
        };
        for (int i = 0; i < 20; ++i) full_burst(c.refused_percent, c.cycles_a_packet);
        for (int i = 0; i < 4; ++i) {
            CHECK(share.limit() <= c.settles_at_most);
            CHECK(share.limit() >= c.settles_at_least);
            full_burst(c.refused_percent, c.cycles_a_packet);
        }
        for (int i = 0; i < 5; ++i) full_burst(0, 1);
        CHECK(share.limit() == kMaxLanes);
    }
}

TEST_CASE("queue share: a queue is awake for as long after its last packet as it is asked for", "[pipeline]") {
    QueueShare share;
    CHECK_FALSE(share.is_awake(1000, 100));
    share.note_packets(1000);
    CHECK(share.is_awake(1000, 100));
    CHECK(share.is_awake(1099, 100));
    CHECK_FALSE(share.is_awake(1100, 100));
    share.note_packets(1200);
    CHECK(share.is_awake(1200, 100));
}
