#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// 48-bit Ethernet addresses, in wire order.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cachewire::net {

struct Mac {
    std::array<std::uint8_t, 6> bytes{};
    [[nodiscard]] bool is_multicast() const noexcept { return (bytes[0] & 1) != 0; }
    [[nodiscard]] bool is_zero() const noexcept { return bytes == std::array<std::uint8_t, 6>{}; }
    friend bool operator==(const Mac&, const Mac&) = default;
};

// "02:00:00:00:00:01", upper or lower case; nullopt for everything else.
std::optional<Mac> parse_mac(std::string_view text);
std::string to_string(const Mac& mac);

}  // namespace cachewire::net
