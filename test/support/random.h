#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Random input for oracle tests, from Catch2's seed, so that a failure can be run again with --rng-seed.
#include <random>

#include "support/catch.h"

namespace cachewire::test {

inline std::mt19937_64 random_engine() {
#if __has_include(<catch2/catch_all.hpp>)
    return std::mt19937_64(Catch::getSeed());
#else
    return std::mt19937_64(Catch::rngSeed());
#endif
}

}  // namespace cachewire::test
