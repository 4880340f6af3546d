// SPDX-License-Identifier: BSD-3-Clause
#include "net/mac.h"

#include <fmt/format.h>

namespace cachewire::net {

namespace {

int hex_digit(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace

std::optional<Mac> parse_mac(std::string_view text) {
    // Always two digits a byte: "2:0:0:0:0:1" is more often a slip than an address.
    Mac mac;
    if (text.size() != mac.bytes.size() * 3 - 1) return std::nullopt;
    for (std::size_t i = 0; i < mac.bytes.size(); ++i) {
        const int high = hex_digit(text[3 * i]);
        const int low = hex_digit(text[3 * i + 1]);
        if (high < 0 || low < 0) return std::nullopt;
        if (i != 0 && text[3 * i - 1] != ':') return std::nullopt;
        mac.bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
    }
    return mac;
}

std::string to_string(const Mac& mac) {
    const auto& b = mac.bytes;
    return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", b[0], b[1], b[2], b[3], b[4], b[5]);
}

}  // namespace cachewire::net
