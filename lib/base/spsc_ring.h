#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A bounded queue between two threads: one puts in, one takes out, nobody waits. Each side keeps a shadow of the
// other's index and looks at the real one only when the shadow says full or empty; what was put in becomes visible in
// batches, by publish(). Indices run on and are masked, so all kSlots slots are used.
//
// The producer's release store of `tail` pairs with the consumer's acquire load: the elements are seen whole. The
// consumer's release store of `head` pairs with the producer's acquire load: a slot is written again only after it was
// read.
#include <array>
#include <atomic>
#include <cstdint>

#include "base/cache_line.h"

namespace cachewire::base {

template <class T, std::uint32_t kSlots>
class SpscRing {
    static_assert((kSlots & (kSlots - 1)) == 0, "a power of two");

  public:
    // Producer. False: full, and the element is still the caller's. Not seen by the consumer before publish().
    bool push(const T& element) noexcept {
        if (put_ - head_shadow_ == kSlots) [[unlikely]] {
            head_shadow_ = head_.load(std::memory_order_acquire);
            if (put_ - head_shadow_ == kSlots) return false;
        }
        slots_[put_++ & (kSlots - 1)] = element;
        return true;
    }
    // The same for an element that is written where it stands; nullptr: full.
    T* claim() noexcept {
        if (put_ - head_shadow_ == kSlots) [[unlikely]] {
            head_shadow_ = head_.load(std::memory_order_acquire);
            if (put_ - head_shadow_ == kSlots) return nullptr;
        }
        return &slots_[put_++ & (kSlots - 1)];
    }
    // What the n-th claim() from now will give, and the n-th take(): to prefetch.
    [[nodiscard]] T& to_put(std::uint32_t n) noexcept { return slots_[(put_ + n) & (kSlots - 1)]; }
    [[nodiscard]] const T& to_take(std::uint32_t n) const noexcept { return slots_[(taken_ + n) & (kSlots - 1)]; }
    // How much has been put in since the beginning, published or not; whether the consumer has released all up to
    // there; and how many claims would succeed now.
    [[nodiscard]] std::uint32_t position() const noexcept { return put_; }
    [[nodiscard]] bool is_taken(std::uint32_t position) const noexcept {
        return static_cast<std::int32_t>(head_.load(std::memory_order_acquire) - position) >= 0;
    }
    [[nodiscard]] std::uint32_t room() const noexcept {
        return kSlots - (put_ - head_.load(std::memory_order_acquire));
    }
    void publish() noexcept { tail_.store(put_, std::memory_order_release); }

    // Consumer. One load of a line that nobody writes while there is nothing to take.
    [[nodiscard]] std::uint32_t ready() noexcept {
        if (taken_ == tail_shadow_) tail_shadow_ = tail_.load(std::memory_order_acquire);
        return tail_shadow_ - taken_;
    }
    // At most ready() in a row; the slots are the producer's again after release().
    const T& take() noexcept { return slots_[taken_++ & (kSlots - 1)]; }
    // Whether it has taken all up to a producer's position.
    [[nodiscard]] bool has_taken(std::uint32_t position) const noexcept {
        return static_cast<std::int32_t>(taken_ - position) >= 0;
    }
    void release() noexcept { head_.store(taken_, std::memory_order_release); }

  private:
    // producer: rw
    alignas(kCacheLine) std::uint32_t put_ = 0;
    std::uint32_t head_shadow_ = 0;
    // producer: rw, consumer: ro
    alignas(kCacheLine) std::atomic<std::uint32_t> tail_{0};
    // consumer: rw
    alignas(kCacheLine) std::uint32_t taken_ = 0;
    std::uint32_t tail_shadow_ = 0;
    // consumer: rw, producer: ro
    alignas(kCacheLine) std::atomic<std::uint32_t> head_{0};
    alignas(kCacheLine) std::array<T, kSlots> slots_{};
};

}  // namespace cachewire::base
