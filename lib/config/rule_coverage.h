#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Rules that can never match because one earlier rule matches all that they do. What only several earlier rules
// together cover is not looked for.
#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "config/config.h"

namespace cachewire::config {

// Every packet that fits `later` fits `earlier`.
bool covers(const AclRule& earlier, const AclRule& later);

struct Covered {
    std::size_t rule;  // never matches
    std::size_t by;    // the first rule that covers it
    bool same;         // each covers the other
};

struct Coverage {
    std::vector<Covered> found;  // by rule
    std::size_t looked_at = 0;   // fewer than there are rules: the time was used up
};

Coverage find_covered(std::span<const AclRule> rules, std::chrono::milliseconds budget);

}  // namespace cachewire::config
