#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What a few sessions need and a session's own lines have no room for: 32 bytes beside each entry, in an array of its
// own for each use, made when somebody first asks for it and kept until the table goes. What begins there is zero.
// Without one a session's begin costs a test, and a packet nothing.
//
// The control thread makes an array while the worker runs: before it publishes what makes the worker look there. Until
// then nobody has written to it, so it is zero also for sessions that began before the worker knew of it.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/huge_array.h"
#include "base/prefetch.h"

namespace cachewire::session {

class Besides {
  public:
    static constexpr std::size_t kUses = 3;
    static constexpr std::size_t kBytes = 32;  // two to a line, none across lines

    // Control thread. Throws base::MachineError.
    void make(std::size_t use, std::uint32_t capacity, int node) {
        if (memory_[use].data() != nullptr) return;
        memory_[use] = base::HugeArray(std::size_t{capacity} * kBytes, node);
        memory_bytes_.fetch_add(memory_[use].size(), std::memory_order_relaxed);
        at_[use].store(memory_[use].data(), std::memory_order_release);
    }
    // What make() maps.
    static std::size_t memory_needed(std::uint32_t capacity) noexcept {
        return base::HugeArray::mapped_bytes(std::size_t{capacity} * kBytes);
    }
    // Null: not made.
    [[nodiscard]] std::byte* of(std::size_t use) const noexcept { return at_[use].load(std::memory_order_acquire); }
    // Any thread.
    [[nodiscard]] std::size_t memory_bytes() const noexcept { return memory_bytes_.load(std::memory_order_relaxed); }

    void begin(std::uint32_t index) noexcept {
        for (const auto& use : at_)
            if (std::byte* const array = use.load(std::memory_order_relaxed); array != nullptr) [[unlikely]]
                std::memset(array + std::size_t{index} * kBytes, 0, kBytes);
    }

  private:
    std::array<base::HugeArray, kUses> memory_;
    std::array<std::atomic<std::byte*>, kUses> at_{};
    std::atomic<std::size_t> memory_bytes_{0};
};

}  // namespace cachewire::session
