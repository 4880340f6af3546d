#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// An array on the stack whose elements are written before they are read: a type with default values for its members
// would otherwise be written over the whole array each time (64 flow keys: 48 cache lines), though few are used.
#include <array>
#include <cstddef>
#include <new>
#include <type_traits>

namespace cachewire::base {

template <class T, std::size_t kSize>
class ScratchArray {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

  public:
    // To be assigned before it is read.
    [[nodiscard]] T& operator[](std::size_t i) noexcept {
        return *std::launder(reinterpret_cast<T*>(bytes_.data() + i * sizeof(T)));
    }

  private:
    alignas(T) std::array<std::byte, kSize * sizeof(T)> bytes_;
};

}  // namespace cachewire::base
