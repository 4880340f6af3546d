// SPDX-License-Identifier: BSD-3-Clause
#include "session/index.h"

#include <bit>
#include <memory>
#include <set>
#include <vector>

#include "support/catch.h"
#include "support/random.h"

using namespace cachewire::session;

namespace {

// Index over its own buckets.
struct Owned {
    explicit Owned(std::uint32_t capacity) : buckets(Index::buckets_for(capacity)) {
        index = Index(buckets.data(), static_cast<std::uint32_t>(buckets.size()));
    }
    bool contains(std::uint32_t hash, std::uint32_t entry) const {
        const Index::Place at = index.place(hash);
        for (unsigned mask = index.candidates(at); mask != 0; mask &= mask - 1)
            if (index.entry(at, static_cast<unsigned>(std::countr_zero(mask))) == entry) return true;
        return false;
    }
    // What each bucket says of entries that stand in their second one, against where they do stand. `hashes` by entry.
    void require_away(const std::vector<std::uint32_t>& hashes) const {
        std::vector<std::uint32_t> away(buckets.size());
        for (std::size_t b = 0; b < buckets.size(); ++b)
            for (unsigned slot = 0; slot < kBucketSlots; ++slot) {
                const bool used = buckets[b].tags[slot] != 0;
                const bool guest = (buckets[b].guests >> slot & 1) != 0;
                REQUIRE(guest == (used && index.place(hashes[buckets[b].entry[slot]]).first != b));
                if (guest) ++away[index.place(hashes[buckets[b].entry[slot]]).first];
            }
        for (std::size_t b = 0; b < buckets.size(); ++b) REQUIRE(buckets[b].away == away[b]);
    }
    std::vector<Bucket> buckets;
    Index index;
};

}  // namespace

TEST_CASE("index: the SSE2 tag match equals its generic twin", "[session]") {
#if defined(__SSE2__)
    auto rng = cachewire::test::random_engine();
    INFO("seed " << cachewire::test::seed());
    alignas(16) Tags tags;
    for (int round = 0; round < 100000; ++round) {
        // Few values, so that tags repeat, and the extremes.
        const std::uint16_t values[] = {0, 1, 0x7fff, 0x8000, 0xffff, static_cast<std::uint16_t>(rng())};
        for (auto& tag : tags) tag = values[rng() % 6];
        const std::uint16_t wanted = values[rng() % 6];
        REQUIRE(match_tags_sse2(tags, wanted) == match_tags_generic(tags, wanted));
        REQUIRE(first_match_sse2(tags, wanted) == first_match_generic(tags, wanted));
    }
#else
    SUCCEED("no SSE2 on this machine: the generic twin is the one in use");
#endif
}

TEST_CASE("index: slots are at least twice the capacity, a power of two of buckets", "[session]") {
    for (const std::uint32_t capacity : {1u, 7u, 8u, 9u, 1000u, 1u << 20, (1u << 20) + 1, 1u << 28}) {
        const std::uint32_t buckets = Index::buckets_for(capacity);
        CHECK(std::has_single_bit(buckets));
        CHECK(buckets >= 2);
        CHECK(std::uint64_t{buckets} * kBucketSlots >= 2 * std::uint64_t{capacity});
    }
}

TEST_CASE("index: the candidates of a hash are two different buckets, each the other's other", "[session]") {
    Owned owned(1000);
    auto rng = cachewire::test::random_engine();
    for (int i = 0; i < 10000; ++i) {
        const Index::Place at = owned.index.place(static_cast<std::uint32_t>(rng()));
        REQUIRE(at.tag != 0);
        REQUIRE(at.first != at.second);
        REQUIRE(owned.index.other(at.first, at.tag) == at.second);
        REQUIRE(owned.index.other(at.second, at.tag) == at.first);
    }
}

TEST_CASE("index: all of the capacity can be used, and everything is found after the moves", "[session]") {
    auto rng = cachewire::test::random_engine();
    // Just under and just over a power of two, and half a million at the highest load that buckets_for allows.
    for (const std::uint32_t capacity : {8u, 100u, 1023u, 1024u, 1u << 19}) {
        INFO("capacity " << capacity << " seed " << cachewire::test::seed());
        Owned owned(capacity);
        std::vector<std::uint32_t> hashes(capacity);
        for (std::uint32_t i = 0; i < capacity; ++i) {
            hashes[i] = static_cast<std::uint32_t>(rng());
            REQUIRE(owned.index.insert(owned.index.place(hashes[i]), i));
        }
        for (std::uint32_t i = 0; i < capacity; ++i) REQUIRE(owned.contains(hashes[i], i));
    }
}

TEST_CASE("index: hashes of one owner fill it as well", "[session]") {
    // Some bits are the same for all sessions of a worker, because they chose the worker.
    constexpr std::uint32_t kCapacity = 1 << 16;
    auto rng = cachewire::test::random_engine();
    for (const std::uint32_t fixed : {0x0000003fu, 0xfc000000u, 0x003f0000u}) {
        Owned owned(kCapacity);
        for (std::uint32_t i = 0; i < kCapacity; ++i)
            REQUIRE(owned.index.insert(owned.index.place(static_cast<std::uint32_t>(rng()) & ~fixed), i));
    }
}

TEST_CASE("index: entries are moved until both buckets are full of what can't move", "[session]") {
    // One hash: two buckets, sixteen slots, no third bucket to move to.
    Owned owned(1000);
    const Index::Place at = owned.index.place(12345);
    for (std::uint32_t i = 0; i < 16; ++i) REQUIRE(owned.index.insert(at, i));
    CHECK_FALSE(owned.index.insert(at, 16));
    for (std::uint32_t i = 0; i < 16; ++i) CHECK(owned.contains(12345, i));
    CHECK_FALSE(owned.contains(12345, 16));

    REQUIRE(owned.index.erase(at, 7));
    CHECK_FALSE(owned.index.erase(at, 7));
    CHECK(owned.index.insert(at, 16));
    CHECK(owned.contains(12345, 16));
}

TEST_CASE("index: over-full it refuses, and loses nothing that it took", "[session]") {
    // 16 buckets, 128 slots: far beyond the load that it promises, so that rows of moves really happen.
    auto rng = cachewire::test::random_engine();
    for (int round = 0; round < 2000; ++round) {
        Owned owned(64);
        std::vector<std::uint32_t> hashes;
        for (int tries = 0; tries < 200; ++tries) {
            const auto hash = static_cast<std::uint32_t>(rng());
            if (owned.index.insert(owned.index.place(hash), static_cast<std::uint32_t>(hashes.size())))
                hashes.push_back(hash);
        }
        REQUIRE(hashes.size() > 64);
        REQUIRE(hashes.size() <= 128);
        std::size_t used = 0;
        for (const Bucket& bucket : owned.buckets)
            for (const std::uint16_t tag : bucket.tags) used += tag != 0 ? 1 : 0;
        REQUIRE(used == hashes.size());
        for (std::uint32_t i = 0; i < hashes.size(); ++i) REQUIRE(owned.contains(hashes[i], i));
        owned.require_away(hashes);
        for (std::uint32_t i = 0; i < hashes.size(); ++i) {
            REQUIRE(owned.index.erase(owned.index.place(hashes[i]), i));
            if (i % 16 == 0) owned.require_away(hashes);
        }
        owned.require_away(hashes);
    }
}
