#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Frames that the claims send: 64 bytes on the wire (60 without FCS), UDP over IPv4 from 10.x.y.z:1024+ to
// 198.18.a.b:53.
#include <cstdint>
#include <vector>

namespace cachewire::bench {

using Frames = std::vector<std::vector<std::uint8_t>>;

// `vlan` 0: untagged.
Frames udp_frames(unsigned count, std::uint16_t vlan = 0);

// The frame becomes one of flow `id`: other addresses and another source port, the IPv4 checksum right. Keeps its tags.
void set_flow(std::vector<std::uint8_t>& frame, std::uint32_t id);
void set_vlan(std::vector<std::uint8_t>& frame, std::uint16_t vlan);

}  // namespace cachewire::bench
