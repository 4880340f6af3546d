#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Frames for tests, layer by layer: PacketBuilder().eth().ip4("10.0.0.1", "10.0.1.1").udp(1000,
// 53).payload(18).bytes(). Types, lengths and checksums come out right unless a field is given; a given one goes out as
// it is, right or wrong.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "net/flow_key.h"
#include "net/mac.h"
#include "support/parsed.h"

namespace cachewire::test {

using Bytes = std::vector<std::uint8_t>;

inline constexpr net::Mac kRouterMac{{0x02, 0, 0, 0, 0, 0x01}};  // of the port that receives
inline constexpr net::Mac kHostMac{{0x02, 0, 0, 0, 0, 0x99}};
inline constexpr net::Mac kBroadcastMac{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

struct Ip4Fields {
    std::uint8_t tos = 0;
    std::uint16_t id = 0;
    std::uint16_t fragment = 0;  // flags and offset as one word: 0x4000 DF, 0x2000 MF, then 8-byte units
    std::uint8_t ttl = 64;
    Bytes options{};  // padded with zeroes to a multiple of 4
    std::optional<std::uint8_t> version{}, header_words{}, proto{};
    std::optional<std::uint16_t> total_length{}, checksum{};
};

struct Ip6Fields {
    std::uint8_t traffic_class = 0;
    std::uint32_t flow_label = 0;
    std::uint8_t hop_limit = 64;
    std::optional<std::uint8_t> version{}, next_header{};
    std::optional<std::uint16_t> payload_length{};
};

struct TcpFields {
    std::uint8_t flags = 0x10;  // ACK
    std::uint32_t sequence = 0, acknowledgment = 0;
    Bytes options{};  // padded with zeroes to a multiple of 4
    std::optional<std::uint8_t> data_offset{};
    std::optional<std::uint16_t> checksum{};
};

struct UdpFields {
    std::optional<std::uint16_t> length{}, checksum{};
};

class PacketBuilder {
  public:
    PacketBuilder& eth(const net::Mac& dst = kRouterMac, const net::Mac& src = kHostMac);
    PacketBuilder& vlan(std::uint16_t vid, std::uint16_t tpid = 0x8100, std::uint8_t pcp = 0);
    PacketBuilder& ether_type(std::uint16_t type);  // pins it, whatever follows
    PacketBuilder& ip4(std::string_view src, std::string_view dst, const Ip4Fields& fields = {});
    PacketBuilder& ip6(std::string_view src, std::string_view dst, const Ip6Fields& fields = {});
    // IPv6 extension headers. `body` follows the two bytes of next header and length and is padded with zeroes (Pad1)
    // to a multiple of 8; `length` is the length field as it goes out.
    PacketBuilder& extension(std::uint8_t type, const Bytes& body = {}, std::optional<std::uint8_t> length = {});
    PacketBuilder& hop_by_hop(const Bytes& options = {}) { return extension(0, options); }
    PacketBuilder& destination_options(const Bytes& options = {}) { return extension(60, options); }
    PacketBuilder& routing(std::uint8_t type, std::uint8_t segments_left, const Bytes& data = {});
    PacketBuilder& fragment(std::uint16_t offset_units, bool more, std::uint32_t id = 1);
    PacketBuilder& authentication(std::size_t icv_bytes = 12);
    PacketBuilder& tcp(std::uint16_t src_port, std::uint16_t dst_port, const TcpFields& fields = {});
    PacketBuilder& udp(std::uint16_t src_port, std::uint16_t dst_port, const UdpFields& fields = {});
    PacketBuilder& sctp(std::uint16_t src_port, std::uint16_t dst_port);
    PacketBuilder& icmp(std::uint8_t type, std::uint8_t code, std::uint16_t identifier = 0, std::uint16_t sequence = 0);
    PacketBuilder& icmp6(std::uint8_t type, std::uint8_t code, std::uint16_t identifier = 0,
                         std::uint16_t sequence = 0);
    PacketBuilder& payload(std::size_t size);  // 0, 1, 2, ...
    PacketBuilder& payload(const Bytes& bytes);
    // Ethernet padding after the last layer, non-zero on purpose: not part of any length. Last call of a chain.
    PacketBuilder& pad_to(std::size_t frame_size, std::uint8_t with = 0xa5);

    [[nodiscard]] Bytes bytes() const;

  private:
    enum class Fix {
        ip4_length,
        ip4_checksum,
        ip6_length,
        udp_length,
        tcp_checksum,
        udp_checksum,
        icmp_checksum,
        icmp6_checksum
    };
    struct FixUp {
        Fix what;
        std::size_t layer;  // offset
        std::size_t ip;     // offset of the IP header above
    };
    enum class NextField { none, ether_type, protocol };

    std::size_t begin(std::uint16_t ether_type, std::optional<std::uint8_t> protocol);
    void next_at(NextField kind, std::size_t offset);
    void put8(std::uint8_t value) { bytes_.push_back(value); }
    void put16(std::uint16_t value);
    void put32(std::uint32_t value);
    void put(const Bytes& bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
    PacketBuilder& icmp_like(std::uint8_t protocol, Fix fix, std::uint8_t type, std::uint8_t code,
                             std::uint16_t identifier, std::uint16_t sequence);

    Bytes bytes_;
    std::vector<FixUp> fix_ups_;
    NextField next_ = NextField::none;
    std::size_t next_offset_ = 0;
    std::size_t ip_ = 0;
    std::size_t padding_ = 0;  // bytes at the end that are no layer
};

}  // namespace cachewire::test
