// SPDX-License-Identifier: BSD-3-Clause
#include "traffic.h"

#include <cstring>

#include <fmt/format.h>

#include "net/checksum.h"
#include "net/headers.h"
#include "support/packet_builder.h"

namespace cachewire::bench {

Frames udp_frames(unsigned count, std::uint16_t vlan) {
    Frames frames;
    for (unsigned i = 0; i < count; ++i) {
        const std::string src = fmt::format("10.0.{}.{}", 1 + i / 250 % 250, 1 + i % 250);
        const std::string dst = fmt::format("198.18.{}.{}", i * 7 % 256, 1 + i % 250);
        test::PacketBuilder builder;
        builder.eth();
        if (vlan != 0) builder.vlan(vlan);
        frames.push_back(
            builder.ip4(src, dst).udp(static_cast<std::uint16_t>(1024 + i), 53).payload(vlan != 0 ? 14 : 18).bytes());
    }
    return frames;
}

void set_flow(std::vector<std::uint8_t>& frame, std::uint32_t id) {
    const bool tagged = frame[12] == 0x81;
    std::uint8_t* ip = frame.data() + net::kEthernetBytes + (tagged ? net::kTagBytes : 0);
    const std::uint32_t source = __builtin_bswap32(0x0a010000 + id);
    const std::uint32_t destination = __builtin_bswap32(0xc6120000 + (id * 2654435761u >> 16));
    const auto port = static_cast<std::uint16_t>(id * 7);
    std::memcpy(ip + 12, &source, sizeof source);
    std::memcpy(ip + 16, &destination, sizeof destination);
    std::memcpy(ip + net::kIp4Bytes, &port, sizeof port);
    std::memset(ip + net::kIp4Bytes + 6, 0, 2);  // no UDP checksum
    std::memset(ip + 10, 0, 2);
    const std::uint16_t sum = net::checksum({ip, net::kIp4Bytes});
    std::memcpy(ip + 10, &sum, sizeof sum);
}

void set_vlan(std::vector<std::uint8_t>& frame, std::uint16_t vlan) {
    frame[14] = static_cast<std::uint8_t>(vlan >> 8);
    frame[15] = static_cast<std::uint8_t>(vlan);
}

}  // namespace cachewire::bench
