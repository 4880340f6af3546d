// SPDX-License-Identifier: BSD-3-Clause
#include "net/martian.h"

#include <algorithm>

namespace cachewire::net {

namespace {

bool is_unspecified_or_loopback(const Address& a) noexcept {
    return std::all_of(a.bytes.begin(), a.bytes.end() - 1, [](std::uint8_t b) { return b == 0; }) && a.bytes[15] <= 1;
}

bool is_net_0_or_127_or_link_local(std::uint32_t a) noexcept {
    return (a >> 24) == 0 || (a >> 24) == 127 || (a >> 16) == 0xa9fe;
}

}  // namespace

DestinationClass destination_class(const Address& address) noexcept {
    if (address.is_v4()) {
        const std::uint32_t a = address.v4();
        if (a == 0xffffffff) return DestinationClass::broadcast;
        if (a >> 28 == 0xe) return DestinationClass::multicast;
        if (a >> 28 == 0xf || is_net_0_or_127_or_link_local(a)) return DestinationClass::martian;
        return DestinationClass::unicast;
    }
    if (address.bytes[0] == 0xff) return DestinationClass::multicast;
    if (is_unspecified_or_loopback(address) || is_link_local(address)) return DestinationClass::martian;
    return DestinationClass::unicast;
}

bool is_martian_source(const Address& address) noexcept {
    if (address.is_v4()) {
        const std::uint32_t a = address.v4();
        return a >= 0xe0000000 || is_net_0_or_127_or_link_local(a);
    }
    return address.bytes[0] == 0xff || is_unspecified_or_loopback(address) || is_link_local(address);
}

}  // namespace cachewire::net
