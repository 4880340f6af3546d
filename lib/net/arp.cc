// SPDX-License-Identifier: BSD-3-Clause
#include "net/arp.h"

#include <cstring>

#include "net/headers.h"

namespace cachewire::net {

namespace {

// Hardware type 1, protocol 0x0800, address lengths 6 and 4.
constexpr std::uint8_t kStart[6] = {0, 1, 8, 0, 6, 4};

Address address_at(const std::uint8_t* p) noexcept { return Address::from_v4(__builtin_bswap32(load32(p))); }

Mac mac_at(const std::uint8_t* p) noexcept {
    Mac mac;
    std::memcpy(mac.bytes.data(), p, 6);
    return mac;
}

}  // namespace

std::optional<Arp> read_arp(std::span<const std::uint8_t> bytes) noexcept {
    if (bytes.size() < kArpBytes || std::memcmp(bytes.data(), kStart, sizeof kStart) != 0) return std::nullopt;
    const std::uint16_t op = load16_be(bytes.data() + 6);
    if (op != 1 && op != 2) return std::nullopt;
    Arp arp{static_cast<ArpOp>(op), mac_at(bytes.data() + 8), address_at(bytes.data() + 14), mac_at(bytes.data() + 18),
            address_at(bytes.data() + 24)};
    if (arp.sender_mac.is_multicast() || arp.sender_mac.is_zero()) return std::nullopt;
    return arp;
}

void write_arp(const Arp& arp, std::uint8_t* out) noexcept {
    std::memcpy(out, kStart, sizeof kStart);
    out[6] = 0;
    out[7] = static_cast<std::uint8_t>(arp.op);
    std::memcpy(out + 8, arp.sender_mac.bytes.data(), 6);
    std::memcpy(out + 14, arp.sender.bytes.data() + 12, 4);
    std::memcpy(out + 18, arp.target_mac.bytes.data(), 6);
    std::memcpy(out + 24, arp.target.bytes.data() + 12, 4);
}

}  // namespace cachewire::net
