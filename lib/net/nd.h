#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Neighbor solicitations and advertisements (RFC 4861 4.3, 4.4) as whole IPv6 datagrams: read with every check of 7.1,
// written with checksum. What a message may change is the neighbor table's to say.
#include <cstdint>
#include <optional>
#include <span>

#include "net/flow_key.h"
#include "net/mac.h"

namespace cachewire::net {

struct NeighborMessage {
    bool advertisement = false;
    Address src{}, dst{}, target{};
    std::optional<Mac> link_layer{};  // of the source in a solicitation, of the target in an advertisement
    bool router = false, solicited = false, override_ = false;  // of an advertisement
};

inline constexpr unsigned kMaxNeighborBytes = 40 + 24 + 8;

// `datagram`: from the IPv6 header's first byte, padding behind it allowed. nullopt: something that RFC 4861 7.1 has
// silently discarded, or neither of the two messages.
std::optional<NeighborMessage> read_neighbor_message(std::span<const std::uint8_t> datagram) noexcept;
// Returns how many of kMaxNeighborBytes it wrote.
unsigned write_neighbor_message(const NeighborMessage& message, std::uint8_t* out) noexcept;

// RFC 4291 2.7.1, and the MAC address that a multicast group has (RFC 2464 7).
Address solicited_node(const Address& address) noexcept;
Mac multicast_mac(const Address& group) noexcept;
Address all_nodes() noexcept;
// RFC 4291 appendix A: fe80::/64 with the modified EUI-64 of a MAC address.
Address link_local(const Mac& mac) noexcept;

}  // namespace cachewire::net
