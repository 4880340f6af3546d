#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Verdicts interned per worker: sessions hold a 16-bit index, not the verdict. Reference-counted; when all indices are taken
// intern() answers kNoOutcome and the session bypasses the memo. Written and read by the owning worker alone.
#include <cstdint>
#include <vector>

namespace cachewire::session {

inline constexpr std::uint16_t kNoOutcome = 0xffff;

struct Outcome {  // not the rule, not the backend: those are session state
    bool permit = false;
    std::uint8_t traffic_class = 0;
    std::uint16_t policer = 0xffff;
    friend bool operator==(const Outcome&, const Outcome&) = default;
};

class OutcomeTable {
  public:
    // Finds or adds, and takes one reference. kNoOutcome when full.
    std::uint16_t intern(const Outcome& outcome) noexcept;
    void release(std::uint16_t index) noexcept;
    [[nodiscard]] const Outcome& operator[](std::uint16_t index) const noexcept { return slots_[index].outcome; }
    [[nodiscard]] std::size_t size() const noexcept { return used_; }
    OutcomeTable();

  private:
    struct Slot {
        Outcome outcome;
        std::uint32_t references = 0;
    };
    std::vector<Slot> slots_;
    std::size_t used_ = 0;
};

}  // namespace cachewire::session
