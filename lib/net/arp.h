#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// ARP over Ethernet for IPv4 (RFC 826): what follows the EtherType. Bytes in, values out, and back; what a message may
// change is the neighbor table's to say.
#include <cstdint>
#include <optional>
#include <span>

#include "net/flow_key.h"
#include "net/mac.h"

namespace cachewire::net {

inline constexpr unsigned kArpBytes = 28;

enum class ArpOp : std::uint16_t { request = 1, reply = 2 };

struct Arp {
    ArpOp op = ArpOp::request;
    Mac sender_mac{};
    Address sender{};
    Mac target_mac{};
    Address target{};
};

// nullopt: cut short, not Ethernet and IPv4, neither request nor reply, or a sender MAC that no station has.
std::optional<Arp> read_arp(std::span<const std::uint8_t> bytes) noexcept;
// Writes kArpBytes.
void write_arp(const Arp& arp, std::uint8_t* out) noexcept;

}  // namespace cachewire::net
