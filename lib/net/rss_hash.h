#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What a device's RSS computes when its Toeplitz key repeats every 16 bits: both directions of a flow give the same
// value, because then only the sum (exclusive or) of the tuple's 16-bit words counts. Known from "Scalable TCP Session
// Monitoring with Symmetric Receive-side Scaling" (Woo, Park, 2012). Over addresses, and for TCP and UDP ports.
//
// It is no secret: who knows tuples of equal sums can aim all of them at one worker, whatever the key is. So it chooses
// the worker and nothing else; the session's bucket stays the keyed hash's.
#include <array>
#include <bit>
#include <cstdint>

namespace cachewire::net {

class RssHash {
  public:
    constexpr RssHash() = default;
    // `pattern`: the key's first 16 bits, as they stand in its first two bytes. With an odd number of ones every bit of
    // the sum counts: the map from sums to hashes is then one to one.
    explicit constexpr RssHash(std::uint16_t pattern) : pattern_(pattern) {
        for (unsigned part = 0; part < parts_.size(); ++part)
            for (unsigned nibble = 0; nibble < 16; ++nibble)
                parts_[part][nibble] = toeplitz(static_cast<std::uint16_t>(nibble << 4 * part));
    }

    [[nodiscard]] constexpr bool in_use() const noexcept { return pattern_ != 0; }
    [[nodiscard]] constexpr std::uint16_t pattern() const noexcept { return pattern_; }

    // The lower 16 bits of the device's hash, which its upper ones repeat. `words`: the exclusive or of the tuple's
    // 64-bit words, as they stand in memory.
    [[nodiscard]] constexpr std::uint16_t operator()(std::uint64_t words) const noexcept {
        words ^= words >> 32;
        words ^= words >> 16;
        const auto le = static_cast<std::uint16_t>(words);
        const auto sum = static_cast<std::uint16_t>(le << 8 | le >> 8);  // as on the wire
        return parts_[0][sum & 15] ^ parts_[1][sum >> 4 & 15] ^ parts_[2][sum >> 8 & 15] ^ parts_[3][sum >> 12];
    }

  private:
    [[nodiscard]] constexpr std::uint16_t toeplitz(std::uint16_t sum) const noexcept {
        std::uint16_t hash = 0;
        for (int bit = 0; bit < 16; ++bit)
            if ((sum & 0x8000u >> bit) != 0) hash ^= std::rotl(pattern_, bit);
        return hash;
    }

    std::uint16_t pattern_ = 0;  // 0: not in use
    std::array<std::array<std::uint16_t, 16>, 4>
        parts_{};  // by four bits of the sum: two lines, in L1 where it is used
};

}  // namespace cachewire::net
