#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Random input for oracle tests, from Catch2's seed, so that a failure can be run again with --rng-seed.
#include <cstdint>
#include <random>

#include "support/catch.h"

namespace cachewire::test {

inline std::uint32_t seed() {
#if __has_include(<catch2/catch_all.hpp>)
    return Catch::getSeed();
#else
    return Catch::rngSeed();
#endif
}

inline std::mt19937_64 random_engine() { return std::mt19937_64(seed()); }

}  // namespace cachewire::test
