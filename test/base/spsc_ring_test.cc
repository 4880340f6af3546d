// SPDX-License-Identifier: BSD-3-Clause
#include "base/spsc_ring.h"

#include <memory>
#include <thread>

#include "support/catch.h"

namespace cachewire::base {
namespace {

TEST_CASE("spsc ring: nothing is seen before it is published, and all slots are used", "[ring]") {
    SpscRing<int, 4> ring;
    for (int i = 0; i < 4; ++i) CHECK(ring.push(i));
    CHECK_FALSE(ring.push(4));
    CHECK(ring.ready() == 0);
    ring.publish();
    REQUIRE(ring.ready() == 4);
    CHECK(ring.take() == 0);
    CHECK_FALSE(ring.push(4));  // not released yet
    ring.release();
    CHECK(ring.push(4));
    ring.publish();
    for (int i = 1; i < 4; ++i) {
        REQUIRE(ring.ready() != 0);
        CHECK(ring.take() == i);
    }
    REQUIRE(ring.ready() == 1);
    CHECK(ring.take() == 4);
    CHECK(ring.ready() == 0);
}

TEST_CASE("spsc ring: an element is written where it stands", "[ring]") {
    SpscRing<int, 2> ring;
    int* const first = &ring.to_put(0);
    CHECK(ring.claim() == first);
    *first = 7;
    int* const second = ring.claim();
    REQUIRE(second != nullptr);
    *second = 8;
    CHECK(ring.claim() == nullptr);
    ring.publish();
    REQUIRE(ring.ready() == 2);
    CHECK(&ring.to_take(1) == second);
    CHECK(ring.take() == 7);
    CHECK(ring.take() == 8);
    ring.release();
    CHECK(ring.claim() == first);
}

TEST_CASE("spsc ring: two threads see every element once and in order", "[ring]") {
    struct Pair {
        std::uint64_t a, b;
    };
    auto ring = std::make_unique<SpscRing<Pair, 64>>();
    constexpr std::uint64_t kCount = 300000;
    std::thread producer([&ring] {
        for (std::uint64_t i = 0; i < kCount;) {
            unsigned batch = 0;
            // Both ways to put one in.
            for (; batch < 7 && i < kCount; ++batch, ++i) {
                if (i % 2 == 0) {
                    if (!ring->push({i, ~i})) break;
                } else if (Pair* slot = ring->claim()) {
                    *slot = {i, ~i};
                } else {
                    break;
                }
            }
            ring->publish();
            if (batch == 0) std::this_thread::yield();
        }
    });
    std::uint64_t next = 0, wrong = 0;
    while (next < kCount) {
        std::uint32_t n = ring->ready();
        if (n == 0) std::this_thread::yield();
        for (; n != 0; --n) {
            const Pair pair = ring->take();
            wrong += pair.a != next || pair.b != ~next;
            ++next;
        }
        ring->release();
    }
    producer.join();
    CHECK(wrong == 0);
    CHECK(ring->ready() == 0);
}

}  // namespace
}  // namespace cachewire::base
