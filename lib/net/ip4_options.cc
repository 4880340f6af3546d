// SPDX-License-Identifier: BSD-3-Clause
#include "net/ip4_options.h"

namespace cachewire::net {

namespace {

constexpr std::uint8_t kEndOfList = 0;
constexpr std::uint8_t kNoOperation = 1;
constexpr std::uint8_t kRecordRoute = 7;
constexpr std::uint8_t kTimestamp = 68;
constexpr std::uint8_t kLooseSourceRoute = 131;
constexpr std::uint8_t kStrictSourceRoute = 137;

// Type and length, and what the types that routers write into need besides (RFC 791: pointer; pointer and flags).
unsigned shortest(std::uint8_t type) noexcept {
    if (type == kRecordRoute) return 3;
    if (type == kTimestamp) return 4;
    return 2;
}

}  // namespace

bool ip4_options_ok(std::span<const std::uint8_t> options) noexcept {
    while (!options.empty()) {
        const std::uint8_t type = options[0];
        if (type == kEndOfList) return true;
        if (type == kNoOperation) {
            options = options.subspan(1);
            continue;
        }
        if (type == kLooseSourceRoute || type == kStrictSourceRoute) return false;
        if (options.size() < 2) return false;
        const std::uint8_t length = options[1];
        if (length < shortest(type) || length > options.size()) return false;
        options = options.subspan(length);
    }
    return true;
}

}  // namespace cachewire::net
