// SPDX-License-Identifier: BSD-3-Clause
#include "session/index.h"

namespace cachewire::session {

// `guest`: the bucket is the entry's second one.
bool Index::put(std::uint32_t bucket, std::uint16_t tag, std::uint32_t entry, bool guest) noexcept {
    const unsigned free = free_slots(bucket);
    if (free == 0) return false;
    const auto slot = static_cast<unsigned>(std::countr_zero(free));
    Bucket& to = buckets_[bucket];
    to.tags[slot] = tag;
    to.entry[slot] = entry;
    if (!guest) return true;
    to.guests |= static_cast<std::uint8_t>(1u << slot);
    ++buckets_[other(bucket, tag)].away;
    return true;
}

void Index::clear(const Slot& at) noexcept {
    Bucket& bucket = buckets_[at.bucket];
    const auto bit = static_cast<std::uint8_t>(1u << at.slot);
    if ((bucket.guests & bit) != 0) --buckets_[other(at.bucket, bucket.tags[at.slot])].away;
    bucket.guests &= static_cast<std::uint8_t>(~bit);
    bucket.tags[at.slot] = 0;
}

// Its other bucket has room.
void Index::move_to_other(const Slot& at) noexcept {
    const Bucket& from = buckets_[at.bucket];
    const std::uint16_t tag = from.tags[at.slot];
    const bool was_guest = (from.guests >> at.slot & 1) != 0;
    put(other(at.bucket, tag), tag, from.entry[at.slot], !was_guest);
    clear(at);
}

bool Index::insert(const Place& at, std::uint32_t entry) noexcept {
    // The first bucket while it has room: at half load 97 of 100 entries are there, and their look-up never fetches the
    // second line. Filling this way needs moves a little earlier than least-loaded first would, still far above half
    // load.
    std::uint32_t bucket = at.first;
    if (free_slots(bucket) == 0) {
        bucket = at.second;
        if (free_slots(bucket) == 0 && !make_room(bucket)) {
            bucket = at.first;
            if (!make_room(bucket)) return false;
        }
    }
    return put(bucket, at.tag, entry, bucket == at.second);
}

// Looks for a row of at most kMaxMoves entries, each of which can move to its other bucket once the one after it has
// moved, and moves them from the last to the first. Reads at most kMaxMoves * (kBucketSlots + 1) buckets.
bool Index::make_room(std::uint32_t bucket) noexcept {
    std::array<Slot, kMaxMoves> row;
    std::uint32_t full = bucket;
    for (unsigned length = 0; length < kMaxMoves; ++length) {
        unsigned victim = kBucketSlots;
        for (unsigned i = 0; i < kBucketSlots && victim == kBucketSlots; ++i)
            if (free_slots(other(full, buckets_[full].tags[i])) != 0) victim = i;
        const bool found = victim != kBucketSlots;
        // None has room: go on through one that isn't in the row yet, a different slot each step.
        for (unsigned i = 0; i < kBucketSlots && victim == kBucketSlots; ++i) {
            const Slot next{full, (i + length) % kBucketSlots};
            bool taken = false;
            for (unsigned k = 0; k < length; ++k) taken |= row[k] == next;
            if (!taken) victim = next.slot;
        }
        if (victim == kBucketSlots) return false;
        row[length] = {full, victim};
        if (!found) {
            full = other(full, buckets_[full].tags[victim]);
            continue;
        }
        for (unsigned k = length + 1; k-- > 0;) move_to_other(row[k]);
        return true;
    }
    return false;
}

bool Index::erase(const Place& at, std::uint32_t entry) noexcept {
    for (unsigned mask = candidates(at); mask != 0; mask &= mask - 1) {
        const auto bit = static_cast<unsigned>(std::countr_zero(mask));
        const Slot slot{bit < kBucketSlots ? at.first : at.second, bit % kBucketSlots};
        if (buckets_[slot.bucket].entry[slot.slot] != entry) continue;
        clear(slot);
        return true;
    }
    return false;
}

}  // namespace cachewire::session
