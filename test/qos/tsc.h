#pragma once
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>

namespace cachewire::test {

inline constexpr std::uint64_t kHz = 2'100'000'123;  // no rate divides it

}  // namespace cachewire::test
