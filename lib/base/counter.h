#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A 64-bit counter with one writer and any number of readers. Adding is a plain load, add and store (no lock prefix):
// relaxed atomics only keep the compiler from tearing or inventing accesses. Never decreases; "clear" is the reader's
// baseline.
#include <atomic>
#include <cstdint>

namespace cachewire::base {

class Counter {
  public:
    // Owning thread only.
    void add(std::uint64_t n) noexcept {
        value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
    // Owning thread only: for gauges such as the packets held.
    void set(std::uint64_t n) noexcept { value_.store(n, std::memory_order_relaxed); }
    // Any thread.
    [[nodiscard]] std::uint64_t read() const noexcept { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<std::uint64_t> value_{0};
};

static_assert(sizeof(Counter) == 8);

}  // namespace cachewire::base
