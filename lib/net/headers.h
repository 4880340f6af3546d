#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Numbers and loads for what stands on the wire. Loads are unaligned and take no bounds: the caller has compared
// lengths. load16/32/64 give the bytes in memory order, load16_be a number.
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cachewire::net {

inline constexpr std::uint16_t kEtherTypeIp4 = 0x0800;
inline constexpr std::uint16_t kEtherTypeArp = 0x0806;
inline constexpr std::uint16_t kEtherTypeVlan = 0x8100;
inline constexpr std::uint16_t kEtherTypeIp6 = 0x86dd;
inline constexpr std::uint16_t kEtherTypeServiceVlan = 0x88a8;  // IEEE 802.1ad

inline constexpr std::uint8_t kProtoHopByHop = 0;
inline constexpr std::uint8_t kProtoIcmp = 1;
inline constexpr std::uint8_t kProtoTcp = 6;
inline constexpr std::uint8_t kProtoUdp = 17;
inline constexpr std::uint8_t kProtoRouting = 43;
inline constexpr std::uint8_t kProtoFragment = 44;
inline constexpr std::uint8_t kProtoAuthentication = 51;
inline constexpr std::uint8_t kProtoIcmp6 = 58;
inline constexpr std::uint8_t kProtoNoNext = 59;
inline constexpr std::uint8_t kProtoDestinationOptions = 60;
inline constexpr std::uint8_t kProtoSctp = 132;

inline constexpr unsigned kEthernetBytes = 14;
inline constexpr unsigned kTagBytes = 4;
inline constexpr unsigned kIp4Bytes = 20;  // without options
inline constexpr unsigned kIp6Bytes = 40;
inline constexpr unsigned kTcpBytes = 20;  // without options
inline constexpr unsigned kUdpBytes = 8;
inline constexpr unsigned kSctpBytes = 12;
inline constexpr unsigned kIcmpBytes = 8;   // RFC 792: every message has at least these
inline constexpr unsigned kIcmp6Bytes = 4;  // RFC 4443 2.1: type, code, checksum

inline std::uint16_t load16(const std::uint8_t* p) noexcept {
    std::uint16_t v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
inline std::uint32_t load32(const std::uint8_t* p) noexcept {
    std::uint32_t v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
inline std::uint64_t load64(const std::uint8_t* p) noexcept {
    std::uint64_t v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
// The image of a constant in memory order, and the other way.
constexpr std::uint16_t be16(std::uint16_t v) noexcept { return __builtin_bswap16(v); }
inline std::uint16_t load16_be(const std::uint8_t* p) noexcept { return be16(load16(p)); }

}  // namespace cachewire::net
