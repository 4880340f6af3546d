// SPDX-License-Identifier: BSD-3-Clause
#include "session/outcome.h"

#include <bit>
#include <cassert>
#include <cstring>

namespace cachewire::session {

OutcomeTable::OutcomeTable(std::size_t capacity) : slots_(capacity), chains_(std::bit_ceil(capacity), kNoOutcome) {
    assert(capacity > 0 && capacity <= kNoOutcome);
    for (std::size_t i = capacity; i-- > 0;) {  // low indices first: few verdicts are used, they should share lines
        slots_[i].next = free_;
        free_ = static_cast<std::uint16_t>(i);
    }
}

std::uint16_t& OutcomeTable::chain(const Outcome& outcome) noexcept {
    static_assert(sizeof(Outcome) == sizeof(std::uint64_t));
    std::uint64_t bytes;
    std::memcpy(&bytes, &outcome, sizeof bytes);
    return chains_[(bytes * 0x9e3779b97f4a7c15u >> 40) & (chains_.size() - 1)];
}

std::uint16_t OutcomeTable::intern(const Outcome& outcome) noexcept {
    std::uint16_t& first = chain(outcome);
    for (std::uint16_t i = first; i != kNoOutcome; i = slots_[i].next) {
        if (slots_[i].outcome != outcome) continue;
        ++slots_[i].references;
        return i;
    }
    if (free_ == kNoOutcome) return kNoOutcome;
    const std::uint16_t index = free_;
    free_ = slots_[index].next;
    slots_[index] = {outcome, 1, first};
    first = index;
    ++used_;
    return index;
}

void OutcomeTable::release(std::uint16_t index) noexcept {
    if (index == kNoOutcome) return;
    Slot& slot = slots_[index];
    assert(slot.references > 0);
    if (--slot.references != 0) return;
    std::uint16_t* link = &chain(slot.outcome);
    while (*link != index) link = &slots_[*link].next;
    *link = slot.next;
    slot.next = free_;
    free_ = index;
    --used_;
}

}  // namespace cachewire::session
