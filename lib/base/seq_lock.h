#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// One writer publishes a small trivially copyable T; readers retry until they saw a whole one.
//
// The writer makes the sequence odd, stores the words, makes it even. Words are relaxed atomics so that a torn read is
// a defined value that the reader throws away. The release fence keeps the odd sequence before the words, the release
// store keeps the words before the even one; the reader mirrors it with an acquire load and an acquire fence (Boehm,
// "Can seqlocks get along with programming language memory models?", MSPC 2012).
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <type_traits>

namespace cachewire::base {

template <class T>
class SeqLock {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 8 == 0);
    static constexpr std::size_t kWords = sizeof(T) / 8;

  public:
    // Owning thread only; wait-free.
    void publish(const T& value) noexcept {
        const auto words = std::bit_cast<std::array<std::uint64_t, kWords>>(value);
        const std::uint64_t sequence = sequence_.load(std::memory_order_relaxed);
        sequence_.store(sequence + 1, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_release);
        for (std::size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_relaxed);
        sequence_.store(sequence + 2, std::memory_order_release);
    }

    // Any thread; retries while a publication runs.
    [[nodiscard]] T read() const noexcept {
        std::array<std::uint64_t, kWords> words;
        std::uint64_t before, after;
        do {
            before = sequence_.load(std::memory_order_acquire);
            for (std::size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_relaxed);
            std::atomic_thread_fence(std::memory_order_acquire);
            after = sequence_.load(std::memory_order_relaxed);
        } while (before != after || (before & 1) != 0);
        return std::bit_cast<T>(words);
    }

  private:
    std::atomic<std::uint64_t> sequence_{0};
    std::array<std::atomic<std::uint64_t>, kWords> words_{};
};

}  // namespace cachewire::base
