#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Verdicts interned per worker: sessions hold a 16-bit index, not the verdict. Reference-counted; when all indices are
// taken intern() answers kNoOutcome and the session bypasses the memo. Written and read by the owning worker alone; all
// memory is taken at construction.
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace cachewire::session {

inline constexpr std::uint16_t kNoOutcome = 0xffff;

struct Outcome {  // not the rule, not the backend: those are session state
    std::uint8_t permit : 1 = 0;
    std::uint8_t reject : 1 = 0;      // of a deny: the sender is told
    std::uint8_t by_default : 1 = 0;  // of a deny: no rule matched
    std::uint8_t spare : 5 = 0;
    std::uint8_t traffic_class = 0;  // 0: none
    std::uint16_t policer = 0xffff;  // 0xffff: none
    std::uint16_t next_hop = 0;      // of the forward direction, in place of the route's; 0: none
    std::uint16_t spare2 = 0;
    friend bool operator==(const Outcome&, const Outcome&) = default;
};
static_assert(std::has_unique_object_representations_v<Outcome>);  // its bytes are hashed

class OutcomeTable {
  public:
    // `capacity` different verdicts, at most kNoOutcome; the default is every index that 16 bits leave.
    explicit OutcomeTable(std::size_t capacity = kNoOutcome);

    // Finds or adds, and takes one reference. kNoOutcome when full.
    std::uint16_t intern(const Outcome& outcome) noexcept;
    // Gives one reference back; the index is free after the last one. kNoOutcome is allowed and does nothing.
    void release(std::uint16_t index) noexcept;
    // `index` has at least one reference.
    [[nodiscard]] const Outcome& operator[](std::uint16_t index) const noexcept { return slots_[index].outcome; }
    [[nodiscard]] std::uint32_t references(std::uint16_t index) const noexcept { return slots_[index].references; }
    [[nodiscard]] std::size_t size() const noexcept { return used_; }

  private:
    struct Slot {
        Outcome outcome;
        std::uint32_t references = 0;
        std::uint16_t next = kNoOutcome;  // in the chain of its hash, or in the free list
    };
    [[nodiscard]] std::uint16_t& chain(const Outcome& outcome) noexcept;

    std::vector<Slot> slots_;
    std::vector<std::uint16_t> chains_;  // first slot by hash; a power of two of them
    std::uint16_t free_ = kNoOutcome;
    std::size_t used_ = 0;
};

}  // namespace cachewire::session
