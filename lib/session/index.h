#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// From a 32-bit hash to an entry's number. A bucket is one cache line of eight tags and eight numbers; every hash has
// two candidate buckets, and either one follows from the other and the tag alone, so that an entry can move without its
// key being read. Knows no keys: whoever looks up verifies. Written and read by the owning worker alone.
//
// The two candidates differ in their lowest bit, so they are never the same bucket. An entry goes into its first bucket
// while that has room, and each bucket knows how many entries that begin there stand elsewhere. So nearly every look-up
// reads one line here and not two, whether it finds anything or not. With at least two slots an entry and moving at
// most four entries, all of `capacity` fits (index_test fills it).
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/cache_line.h"
#include "base/prefetch.h"
#include "session/tag_match.h"

namespace cachewire::session {

struct alignas(base::kCacheLine) Bucket {
    Tags tags;                                      // 0   0: the slot is empty
    std::array<std::uint32_t, kBucketSlots> entry;  // 16  number of the entry, meaningful where the tag isn't 0
    std::uint32_t away;                     // 48  entries whose first bucket this is, and which stand in their second
    std::uint8_t guests;                    // 52  a bit a slot: this is the entry's second bucket
    std::array<std::uint8_t, 11> reserved;  // 53
};
static_assert(sizeof(Bucket) == base::kCacheLine && offsetof(Bucket, entry) == 16);

class Index {
  public:
    // Where a hash may be.
    struct Place {
        std::uint32_t first, second;
        std::uint16_t tag;
    };
    static constexpr unsigned kMaxMoves = 4;

    // Power of two with at least twice as many slots as entries.
    static constexpr std::uint32_t buckets_for(std::uint32_t capacity) noexcept {
        const std::uint64_t least = (2 * static_cast<std::uint64_t>(capacity) + kBucketSlots - 1) / kBucketSlots;
        return static_cast<std::uint32_t>(std::bit_ceil(least < 2 ? std::uint64_t{2} : least));
    }

    Index() = default;
    // `buckets` are zeroed, `count` is a power of two of at least 2.
    Index(Bucket* buckets, std::uint32_t count) noexcept : buckets_(buckets), mask_(count - 1) {}

    // Some bits of the hash have already chosen the worker, so bucket and tag are taken from a product, to which all
    // bits contribute: the upper half, and the upper bits of the lower one, which alone follow from all of the hash.
    // Cheap enough to be done twice, where storing it between two passes takes as long. Tags are odd: 0 is an empty
    // slot.
    [[nodiscard]] Place place(std::uint32_t hash) const noexcept {
        const std::uint64_t product = product_of(hash);
        const std::uint32_t first = first_of(product);
        const std::uint16_t tag = tag_of(product);
        return {first, other(first, tag), tag};
    }
    [[nodiscard]] std::uint32_t other(std::uint32_t bucket, std::uint16_t tag) const noexcept {
        return bucket ^ (((tag * 0x85ebca6bu) >> 7 | 1u) & mask_);
    }
    void prefetch_first(std::uint32_t hash) const noexcept {
        base::prefetch_read(buckets_ + first_of(product_of(hash)));
    }
    void prefetch_second(std::uint32_t hash) const noexcept { base::prefetch_read(buckets_ + place(hash).second); }
    // The lowest entry of the first bucket (the second one) that has the hash's tag; `none`: there is no such.
    [[nodiscard]] std::uint32_t first_candidate(std::uint32_t hash, std::uint32_t none) const noexcept {
        const std::uint64_t product = product_of(hash);
        return candidate(buckets_[first_of(product)], tag_of(product), none);
    }
    [[nodiscard]] std::uint32_t second_candidate(std::uint32_t hash, std::uint32_t none) const noexcept {
        const Place at = place(hash);
        return candidate(buckets_[at.second], at.tag, none);
    }

    // Whether something that begins in the hash's first bucket stands in its second one.
    [[nodiscard]] bool has_second(std::uint32_t hash) const noexcept {
        return buckets_[first_of(product_of(hash))].away != 0;
    }

    // Slots that hold the tag: bits 0-7 are the first bucket's, 8-15 the second's.
    [[nodiscard]] unsigned candidates(const Place& at) const noexcept {
        const unsigned in_first = match_tags(buckets_[at.first].tags, at.tag);
        if (buckets_[at.first].away == 0) [[likely]]
            return in_first;
        return in_first | match_tags(buckets_[at.second].tags, at.tag) << kBucketSlots;
    }
    // The entry in a slot that candidates() named.
    [[nodiscard]] std::uint32_t entry(const Place& at, unsigned bit) const noexcept {
        const Bucket& bucket = buckets_[bit < kBucketSlots ? at.first : at.second];
        return bucket.entry[bit % kBucketSlots];
    }

    // False: both buckets are full and at most kMaxMoves moves don't help.
    bool insert(const Place& at, std::uint32_t entry) noexcept;
    // False: not there.
    bool erase(const Place& at, std::uint32_t entry) noexcept;

  private:
    struct Slot {
        std::uint32_t bucket;
        unsigned slot;
        friend bool operator==(const Slot&, const Slot&) = default;
    };
    static constexpr std::uint64_t product_of(std::uint32_t hash) noexcept { return hash * 0x9e3779b97f4a7c15u; }
    [[nodiscard]] std::uint32_t first_of(std::uint64_t product) const noexcept {
        return static_cast<std::uint32_t>(product >> 32) & mask_;
    }
    static constexpr std::uint16_t tag_of(std::uint64_t product) noexcept {
        return static_cast<std::uint16_t>(product >> 16 | 1);
    }
    static std::uint32_t candidate(const Bucket& bucket, std::uint16_t tag, std::uint32_t none) noexcept {
        const unsigned slot = first_match(bucket.tags, tag);
        return slot == kBucketSlots ? none : bucket.entry[slot];
    }
    [[nodiscard]] unsigned free_slots(std::uint32_t bucket) const noexcept {
        return match_tags(buckets_[bucket].tags, 0);
    }
    bool put(std::uint32_t bucket, std::uint16_t tag, std::uint32_t entry, bool guest) noexcept;
    void clear(const Slot& at) noexcept;
    void move_to_other(const Slot& at) noexcept;
    bool make_room(std::uint32_t bucket) noexcept;

    Bucket* buckets_ = nullptr;
    std::uint32_t mask_ = 0;
};

}  // namespace cachewire::session
