// SPDX-License-Identifier: BSD-3-Clause
#include "session/outcome.h"

#include <bit>
#include <cassert>
#include <cstring>

namespace cachewire::session {

OutcomeTable::OutcomeTable(std::size_t capacity)
    : slots_(capacity), replies_(capacity), chains_(std::bit_ceil(capacity), kNoOutcome) {
    assert(capacity > 0 && capacity <= kNoOutcome);
    for (std::size_t i = capacity; i-- > 0;) {  // low indices first: few verdicts are used, they should share lines
        slots_[i].next = free_;
        free_ = static_cast<std::uint16_t>(i);
    }
}

std::uint16_t& OutcomeTable::chain(const Verdicts& verdicts) noexcept {
    static_assert(sizeof(Outcome) == sizeof(std::uint64_t));
    constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15u;
    std::uint64_t hash = 0, word;
    for (const Outcome* outcome : {&verdicts.reverse, &verdicts.forward}) {
        std::memcpy(&word, outcome, sizeof word);
        hash = (std::rotl(hash, 29) ^ word) * kOdd;
    }
    hash ^= verdicts.reverse_fields * kOdd;
    return chains_[(hash ^ hash >> 24) >> 16 & (chains_.size() - 1)];
}

Verdicts OutcomeTable::verdicts(std::uint16_t index) const noexcept {
    if (index == kNoOutcome) return {};
    const Slot& slot = slots_[index];
    if (!slot.knows_reverse) return {.forward = slot.outcome, .knows_forward = slot.knows_forward};
    const Reply& reply = replies_[index];
    return {slot.outcome, reply.outcome, reply.fields, slot.knows_forward, true};
}

std::uint16_t OutcomeTable::intern(const Verdicts& wanted) noexcept {
    // The replies' line is read only where there are some.
    const auto holds = [&](std::uint16_t index) {
        const Slot& slot = slots_[index];
        const Reply& reply = replies_[index];
        return slot.outcome == wanted.forward && slot.knows_forward == wanted.knows_forward &&
               slot.knows_reverse == wanted.knows_reverse &&
               (!wanted.knows_reverse || (reply.outcome == wanted.reverse && reply.fields == wanted.reverse_fields));
    };
    std::uint16_t& first = chain(wanted);
    for (std::uint16_t i = first; i != kNoOutcome; i = slots_[i].next) {
        if (!holds(i)) continue;
        ++slots_[i].references;
        return i;
    }
    if (free_ == kNoOutcome || (wanted.knows_reverse && with_reply_ >= slots_.size() / 2)) return kNoOutcome;
    const std::uint16_t index = free_;
    free_ = slots_[index].next;
    slots_[index] = {wanted.forward, 1, first, wanted.knows_forward, wanted.knows_reverse};
    replies_[index] = {wanted.reverse, wanted.reverse_fields};
    first = index;
    ++used_;
    with_reply_ += wanted.knows_reverse;
    return index;
}

void OutcomeTable::release(std::uint16_t index) noexcept {
    if (index == kNoOutcome) return;
    Slot& slot = slots_[index];
    assert(slot.references > 0);
    if (--slot.references != 0) return;
    std::uint16_t* link = &chain(verdicts(index));
    while (*link != index) link = &slots_[*link].next;
    *link = slot.next;
    slot.next = free_;
    free_ = index;
    --used_;
    with_reply_ -= slot.knows_reverse;
}

}  // namespace cachewire::session
