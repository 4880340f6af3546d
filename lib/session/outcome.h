#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Verdicts interned per worker: sessions hold a 16-bit index, not the verdict. Reference-counted; when all indices are
// taken intern() answers kNoOutcome and the session bypasses the memo. Written and read by the owning worker alone; all
// memory is taken at construction.
//
// A stateful list has one verdict a session, a stateless one may have another for the replies. So what is interned is
// both: one index still, and the hot entry is no wider. Replies' verdicts stand in an array of their own, which packets
// of stateful lists never read.
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

// What a memo knows. Of a stateful list the reverse direction is never known: the forward verdict is its as well.
// `reverse_fields`: what the reply that was judged had in FlowKey from in_interface_be on, as far as the rules look at
// it; the verdict is for replies that agree.
struct Verdicts {
    Outcome forward{}, reverse{};
    std::uint64_t reverse_fields = 0;
    bool knows_forward = false, knows_reverse = false;
    friend bool operator==(const Verdicts&, const Verdicts&) = default;
};

class OutcomeTable {
  public:
    // `capacity` different verdicts, at most kNoOutcome; the default is every index that 16 bits leave.
    explicit OutcomeTable(std::size_t capacity = kNoOutcome);

    // Finds or adds, and takes one reference. kNoOutcome when full. Values with a reverse verdict depend on packets as
    // well as on rules, so somebody could make many: they get half of the indices at most, and nobody else's memo goes.
    std::uint16_t intern(const Verdicts& verdicts) noexcept;
    std::uint16_t intern(const Outcome& outcome) noexcept {
        return intern({.forward = outcome, .knows_forward = true});
    }
    // Gives one reference back; the index is free after the last one. kNoOutcome is allowed and does nothing.
    void release(std::uint16_t index) noexcept;
    // `index` has at least one reference.
    [[nodiscard]] const Outcome& operator[](std::uint16_t index) const noexcept { return slots_[index].outcome; }
    [[nodiscard]] const Outcome& reverse(std::uint16_t index) const noexcept { return replies_[index].outcome; }
    [[nodiscard]] std::uint64_t reverse_fields(std::uint16_t index) const noexcept { return replies_[index].fields; }
    // False for kNoOutcome.
    [[nodiscard]] bool knows_forward(std::uint16_t index) const noexcept {
        return index != kNoOutcome && slots_[index].knows_forward;
    }
    [[nodiscard]] bool knows_reverse(std::uint16_t index) const noexcept {
        return index != kNoOutcome && slots_[index].knows_reverse;
    }
    [[nodiscard]] Verdicts verdicts(std::uint16_t index) const noexcept;  // kNoOutcome: nothing is known
    [[nodiscard]] std::uint32_t references(std::uint16_t index) const noexcept { return slots_[index].references; }
    [[nodiscard]] std::size_t size() const noexcept { return used_; }

  private:
    struct Slot {
        Outcome outcome;
        std::uint32_t references = 0;
        std::uint16_t next = kNoOutcome;  // in the chain of its hash, or in the free list
        bool knows_forward = false, knows_reverse = false;
    };
    static_assert(sizeof(Slot) == 16);  // four a line: a packet of a stateful list reads one, and no more
    struct Reply {
        Outcome outcome;
        std::uint64_t fields = 0;
    };
    [[nodiscard]] std::uint16_t& chain(const Verdicts& verdicts) noexcept;

    std::vector<Slot> slots_;
    std::vector<Reply> replies_;
    std::vector<std::uint16_t> chains_;  // first slot by hash; a power of two of them
    std::uint16_t free_ = kNoOutcome;
    std::size_t used_ = 0;
    std::size_t with_reply_ = 0;  // of those
};

}  // namespace cachewire::session
