// SPDX-License-Identifier: BSD-3-Clause
#include "net/icmp.h"

#include <algorithm>
#include <cstring>

#include "net/checksum.h"
#include "net/headers.h"

namespace cachewire::net {

namespace {

constexpr std::uint8_t kTtl = 64;
constexpr unsigned kErrorHeader = 8;  // of either family

struct TypeCode {
    std::uint8_t type, code;
};

TypeCode numbers(Family family, IcmpError error) noexcept {
    const bool ip4 = family == Family::ip4;
    switch (error) {
        case IcmpError::net_unreachable:
            return ip4 ? TypeCode{3, 0} : TypeCode{1, 0};
        case IcmpError::host_unreachable:
            return ip4 ? TypeCode{3, 1} : TypeCode{1, 3};
        case IcmpError::protocol_unreachable:
            return {3, 2};
        case IcmpError::port_unreachable:
            return ip4 ? TypeCode{3, 3} : TypeCode{1, 4};
        case IcmpError::admin_prohibited:
            return ip4 ? TypeCode{3, 13} : TypeCode{1, 1};
        case IcmpError::packet_too_big:
            return ip4 ? TypeCode{3, 4} : TypeCode{2, 0};
        case IcmpError::time_exceeded:
            return ip4 ? TypeCode{11, 0} : TypeCode{3, 0};
        case IcmpError::parameter_next_header:
            return {4, 1};
    }
    return {3, 1};
}

void put16(std::uint8_t* out, std::uint32_t value) noexcept {
    out[0] = static_cast<std::uint8_t>(value >> 8);
    out[1] = static_cast<std::uint8_t>(value);
}
void put32(std::uint8_t* out, std::uint32_t value) noexcept {
    put16(out, value >> 16);
    put16(out + 2, value);
}

Address source_of(Family family, const std::uint8_t* ip) noexcept {
    Address a;
    if (family == Family::ip4) return Address::from_v4(__builtin_bswap32(load32(ip + 12)));
    std::memcpy(a.bytes.data(), ip + 8, 16);
    return a;
}
Address destination_of(Family family, const std::uint8_t* ip) noexcept {
    Address a;
    if (family == Family::ip4) return Address::from_v4(__builtin_bswap32(load32(ip + 16)));
    std::memcpy(a.bytes.data(), ip + 24, 16);
    return a;
}

// Returns the header's length.
unsigned write_ip(Family family, const Address& src, const Address& dst, std::uint8_t proto, std::uint8_t tos,
                  unsigned payload, std::uint8_t* out) noexcept {
    if (family == Family::ip4) {
        std::memset(out, 0, kIp4Bytes);
        out[0] = 0x45;
        out[1] = tos;
        put16(out + 2, kIp4Bytes + payload);
        out[6] = 0x40;  // RFC 6864 4.1: atomic, so its identification needs no value
        out[8] = kTtl;
        out[9] = proto;
        std::memcpy(out + 12, src.bytes.data() + 12, 4);
        std::memcpy(out + 16, dst.bytes.data() + 12, 4);
        const std::uint16_t sum = checksum({out, kIp4Bytes});
        std::memcpy(out + 10, &sum, 2);
        return kIp4Bytes;
    }
    std::memset(out, 0, kIp6Bytes);
    out[0] = 0x60;
    put16(out + 4, payload);
    out[6] = proto;
    out[7] = kTtl;
    std::memcpy(out + 8, src.bytes.data(), 16);
    std::memcpy(out + 24, dst.bytes.data(), 16);
    return kIp6Bytes;
}

}  // namespace

unsigned write_icmp_error(Family family, IcmpError error, std::uint32_t value, const Address& src,
                          std::span<const std::uint8_t> quote, std::uint8_t* out) noexcept {
    const bool ip4 = family == Family::ip4;
    const unsigned header = ip4 ? kIp4Bytes : kIp6Bytes;
    const unsigned limit = ip4 ? kMaxIcmp4ErrorBytes : kMaxIcmp6ErrorBytes;
    const unsigned quoted = std::min<unsigned>(static_cast<unsigned>(quote.size()), limit - header - kErrorHeader);
    const unsigned payload = kErrorHeader + quoted;
    const Address dst = source_of(family, quote.data());
    // RFC 1812 4.3.2.5: precedence 6, internetwork control.
    write_ip(family, src, dst, ip4 ? kProtoIcmp : kProtoIcmp6, 0xc0, payload, out);
    std::uint8_t* icmp = out + header;
    const TypeCode type = numbers(family, error);
    std::memset(icmp, 0, kErrorHeader);
    icmp[0] = type.type;
    icmp[1] = type.code;
    // RFC 1191 4: the MTU is the low half of the word in IPv4.
    if (ip4) {
        put16(icmp + 6, value);
    } else {
        put32(icmp + 4, value);
    }
    std::memcpy(icmp + kErrorHeader, quote.data(), quoted);
    const std::uint16_t sum = ip4 ? checksum({icmp, payload}) : l4_checksum(src, dst, kProtoIcmp6, {icmp, payload});
    std::memcpy(icmp + 2, &sum, 2);
    return header + payload;
}

bool turn_echo_request(Family family, std::span<std::uint8_t> request, unsigned l4_offset) noexcept {
    const bool ip4 = family == Family::ip4;
    std::uint8_t* ip = request.data();
    std::uint8_t* icmp = ip + l4_offset;
    const std::span<const std::uint8_t> message = request.subspan(l4_offset);
    const Address src = source_of(family, ip), dst = destination_of(family, ip);
    const std::uint16_t wrong = ip4 ? checksum(message) : l4_checksum(src, dst, kProtoIcmp6, message);
    if (wrong != 0) return false;
    std::uint16_t sum;
    std::memcpy(&sum, icmp + 2, 2);
    // Swapping the addresses does not change a sum, the type does.
    const std::uint16_t before = load16(icmp);
    icmp[0] = ip4 ? 0 : 129;
    sum = update_checksum(sum, before, load16(icmp));
    std::memcpy(icmp + 2, &sum, 2);
    std::uint8_t* addresses = ip + (ip4 ? 12 : 8);
    std::swap_ranges(addresses, addresses + (ip4 ? 4 : 16), addresses + (ip4 ? 4 : 16));
    if (ip4) {
        ip[8] = kTtl;
        std::memset(ip + 10, 0, 2);
        const std::uint16_t header_sum = checksum({ip, l4_offset});
        std::memcpy(ip + 10, &header_sum, 2);
    } else {
        ip[7] = kTtl;
    }
    return true;
}

unsigned write_tcp_reset(Family family, std::span<const std::uint8_t> segment, unsigned l4_offset,
                         unsigned datagram_bytes, std::uint8_t* out) noexcept {
    if (segment.size() < l4_offset + kTcpBytes) return 0;
    const std::uint8_t* tcp = segment.data() + l4_offset;
    const std::uint8_t flags = tcp[13];
    constexpr std::uint8_t kFin = 1, kSyn = 2, kRst = 4, kAck = 16;
    if ((flags & kRst) != 0) return 0;
    const unsigned data_offset = (tcp[12] >> 4) * 4u;
    if (data_offset < kTcpBytes || l4_offset + data_offset > datagram_bytes) return 0;

    const Address src = destination_of(family, segment.data()), dst = source_of(family, segment.data());
    const unsigned header = write_ip(family, src, dst, kProtoTcp, 0, kTcpBytes, out);
    std::uint8_t* reset = out + header;
    std::memset(reset, 0, kTcpBytes);
    std::memcpy(reset, tcp + 2, 2);
    std::memcpy(reset + 2, tcp, 2);
    reset[12] = 5 << 4;
    if ((flags & kAck) != 0) {
        std::memcpy(reset + 4, tcp + 8, 4);  // its acknowledgment is our sequence number
        reset[13] = kRst;
    } else {
        const auto length = std::uint32_t{datagram_bytes - l4_offset - data_offset};
        const std::uint32_t next =
            __builtin_bswap32(load32(tcp + 4)) + length + ((flags & kSyn) != 0) + ((flags & kFin) != 0);
        put32(reset + 8, next);
        reset[13] = kRst | kAck;
    }
    const std::uint16_t sum = l4_checksum(src, dst, kProtoTcp, {reset, kTcpBytes});
    std::memcpy(reset + 16, &sum, 2);
    return header + kTcpBytes;
}

}  // namespace cachewire::net
