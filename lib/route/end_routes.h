#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// IPv4 routes that reach the end of the address space, 255.255.255.255. Where one such prefix contains another,
// changing the outer one makes rte_fib (22.11 and 24.11) write its next hop over the whole table: the inner one's end
// wraps to 0. So but for the default route none of them goes into the table. Each is written as the pieces that it
// consists of without the very last address, which is the limited broadcast and never routed: the k-th piece is the
// prefix of length k of k - 1 ones and a zero (0.0.0.0/1, 128.0.0.0/2, 192.0.0.0/3, ... 255.255.255.254/32).
#include <array>
#include <cstdint>
#include <optional>

#include "net/prefix.h"

namespace cachewire::route {

struct EndRoutes {
    static constexpr unsigned kPieces = 32;

    // A change to a prefix that reaches the end, or to one that is a piece itself. Returns from which piece on the
    // table is to be written anew; 0: it concerns neither, and is written as it is.
    unsigned note(const net::Prefix& prefix, std::optional<std::uint16_t> next_hop) noexcept {
        if (prefix.length == 0) return 0;
        const std::uint32_t address = prefix.address.v4();
        const std::uint32_t ones = ~std::uint32_t{0} << (32 - prefix.length);
        if (address == ones) {
            ends_[prefix.length] = next_hop;
            return prefix.length + 1u;
        }
        if (address != ones << 1) return 0;
        own_[prefix.length] = next_hop;
        return prefix.length;
    }

    // What the k-th piece leads to: its own route, or that of the longest prefix around it that reaches the end. None:
    // the default route's.
    [[nodiscard]] std::optional<std::uint16_t> piece(unsigned k) const noexcept {
        if (own_[k]) return own_[k];
        for (unsigned length = k - 1; length != 0; --length)
            if (ends_[length]) return ends_[length];
        return std::nullopt;
    }
    static net::Prefix piece_prefix(unsigned k) noexcept {
        const std::uint32_t ones = k == 1 ? 0 : ~std::uint32_t{0} << (33 - k);
        return {net::Address::from_v4(ones), static_cast<std::uint8_t>(k), net::Family::ip4};
    }

    std::array<bool, kPieces + 1> written{};  // stands in the table

  private:
    std::array<std::optional<std::uint16_t>, kPieces + 1> ends_, own_;  // by length
};

}  // namespace cachewire::route
