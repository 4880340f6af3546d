// SPDX-License-Identifier: BSD-3-Clause
#include "net/nd.h"

#include <cstring>

#include "net/checksum.h"
#include "net/headers.h"

namespace cachewire::net {

namespace {

constexpr std::uint8_t kSolicitation = 135, kAdvertisement = 136;
constexpr std::uint8_t kSourceOption = 1, kTargetOption = 2;
constexpr unsigned kMessageBytes = 24;  // ICMPv6 header, 4 bytes of flags, target
constexpr Address kUnspecified{};

Address address_at(const std::uint8_t* p) noexcept {
    Address a;
    std::memcpy(a.bytes.data(), p, 16);
    return a;
}

bool is_multicast(const Address& a) noexcept { return a.bytes[0] == 0xff; }
bool is_solicited_node(const Address& a) noexcept { return a == solicited_node(a); }

// RFC 4861 7.1: options with a length of 0 spoil the message; those that nobody knows are skipped. False: spoilt.
bool read_options(std::span<const std::uint8_t> options, NeighborMessage& message) noexcept {
    const std::uint8_t wanted = message.advertisement ? kTargetOption : kSourceOption;
    while (!options.empty()) {
        if (options.size() < 8) return false;
        const std::size_t bytes = std::size_t{options[1]} * 8;
        if (bytes == 0 || bytes > options.size()) return false;
        if (options[0] == wanted) {
            Mac mac;
            std::memcpy(mac.bytes.data(), options.data() + 2, 6);
            if (mac.is_multicast() || mac.is_zero()) return false;
            message.link_layer = mac;
        }
        options = options.subspan(bytes);
    }
    return true;
}

}  // namespace

std::optional<NeighborMessage> read_neighbor_message(std::span<const std::uint8_t> datagram) noexcept {
    if (datagram.size() < kIp6Bytes + kMessageBytes) return std::nullopt;
    const std::uint8_t* ip = datagram.data();
    const std::size_t payload = load16_be(ip + 4);
    if (ip[0] >> 4 != 6 || ip[6] != kProtoIcmp6 || ip[7] != 255 || payload < kMessageBytes ||
        payload > datagram.size() - kIp6Bytes)
        return std::nullopt;
    const std::uint8_t* icmp = ip + kIp6Bytes;
    if ((icmp[0] != kSolicitation && icmp[0] != kAdvertisement) || icmp[1] != 0) return std::nullopt;
    NeighborMessage message;
    message.advertisement = icmp[0] == kAdvertisement;
    message.src = address_at(ip + 8);
    message.dst = address_at(ip + 24);
    message.target = address_at(icmp + 8);
    message.router = message.advertisement && (icmp[4] & 0x80) != 0;
    message.solicited = message.advertisement && (icmp[4] & 0x40) != 0;
    message.override_ = message.advertisement && (icmp[4] & 0x20) != 0;
    if (is_multicast(message.target) || message.target == kUnspecified || message.target.is_v4() ||
        is_multicast(message.src))
        return std::nullopt;
    if (l4_checksum(message.src, message.dst, kProtoIcmp6, {icmp, payload}) != 0) return std::nullopt;
    if (!read_options({icmp + kMessageBytes, payload - kMessageBytes}, message)) return std::nullopt;
    if (message.advertisement) {
        if (is_multicast(message.dst) && message.solicited) return std::nullopt;  // 7.1.2
        if (message.src == kUnspecified) return std::nullopt;
    } else if (message.src == kUnspecified && (!is_solicited_node(message.dst) || message.link_layer)) {
        return std::nullopt;  // 7.1.1
    }
    return message;
}

unsigned write_neighbor_message(const NeighborMessage& message, std::uint8_t* out) noexcept {
    const unsigned payload = kMessageBytes + (message.link_layer ? 8 : 0);
    std::memset(out, 0, kIp6Bytes + payload);
    out[0] = 0x60;
    out[4] = static_cast<std::uint8_t>(payload >> 8);
    out[5] = static_cast<std::uint8_t>(payload);
    out[6] = kProtoIcmp6;
    out[7] = 255;
    std::memcpy(out + 8, message.src.bytes.data(), 16);
    std::memcpy(out + 24, message.dst.bytes.data(), 16);
    std::uint8_t* icmp = out + kIp6Bytes;
    icmp[0] = message.advertisement ? kAdvertisement : kSolicitation;
    // RFC 4861 4.4: R, S and O are the first three bits, in this order.
    icmp[4] = static_cast<std::uint8_t>(message.router << 7 | message.solicited << 6 | message.override_ << 5);
    std::memcpy(icmp + 8, message.target.bytes.data(), 16);
    if (message.link_layer) {
        icmp[kMessageBytes] = message.advertisement ? kTargetOption : kSourceOption;
        icmp[kMessageBytes + 1] = 1;
        std::memcpy(icmp + kMessageBytes + 2, message.link_layer->bytes.data(), 6);
    }
    const std::uint16_t sum = l4_checksum(message.src, message.dst, kProtoIcmp6, {icmp, payload});
    std::memcpy(icmp + 2, &sum, 2);
    return kIp6Bytes + payload;
}

Address solicited_node(const Address& address) noexcept {
    Address group{{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0xff}};
    std::memcpy(group.bytes.data() + 13, address.bytes.data() + 13, 3);
    return group;
}

Mac multicast_mac(const Address& group) noexcept {
    Mac mac{{0x33, 0x33}};
    std::memcpy(mac.bytes.data() + 2, group.bytes.data() + 12, 4);
    return mac;
}

Address all_nodes() noexcept { return Address{{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01}}; }

Address link_local(const Mac& mac) noexcept {
    const auto& b = mac.bytes;
    return Address{
        {0xfe, 0x80, 0, 0, 0, 0, 0, 0, static_cast<std::uint8_t>(b[0] ^ 2), b[1], b[2], 0xff, 0xfe, b[3], b[4], b[5]}};
}

}  // namespace cachewire::net
