#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// "Did you mean": the known word that is a typing slip away. Header only, so that cwctl has it without DPDK.
#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

namespace cachewire::base {

// Levenshtein distance with a swap of neighbours as one edit; words longer than the table are "far".
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
    constexpr std::size_t kMax = 32;
    if (a.size() >= kMax || b.size() >= kMax) return kMax;
    std::array<std::array<std::size_t, kMax>, kMax> d{};
    for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
    for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
            d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[a.size()][b.size()];
}

// The nearest candidate, or empty: one slip in short words, up to three in long ones.
inline std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
    std::string_view best;
    std::size_t limit = std::clamp<std::size_t>(word.size() / 3, 1, 3) + 1;
    for (const std::string_view candidate : candidates) {
        const std::size_t distance = edit_distance(word, candidate);
        if (distance < limit && distance < candidate.size()) {
            limit = distance;
            best = candidate;
        }
    }
    return best;
}

}  // namespace cachewire::base
