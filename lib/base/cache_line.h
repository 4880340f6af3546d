#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The unit that every layout in cachewire is counted in. Fields with different writers never share a line.
#include <cstddef>

namespace cachewire::base {

inline constexpr std::size_t kCacheLine = 64;

}  // namespace cachewire::base
