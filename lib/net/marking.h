#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Priorities as they stand on the wire: DSCP in the IP header (RFC 2474), PCP in VLAN tags (IEEE 802.1Q 9.6). Pure
// functions; callers have checked the lengths.
#include <cstdint>
#include <cstring>

#include "net/checksum.h"
#include "net/headers.h"

namespace cachewire::net {

// Another DSCP; the two ECN bits beside it stay (RFC 3168 5). IPv4's checksum follows by RFC 1624.
inline void set_dscp(std::uint8_t* header, bool ip6, std::uint8_t dscp) noexcept {
    if (ip6) {  // version, traffic class and flow label are 4, 8 and 20 bits
        header[0] = static_cast<std::uint8_t>((header[0] & 0xf0) | dscp >> 2);
        header[1] = static_cast<std::uint8_t>((header[1] & 0x3f) | dscp << 6);
        return;
    }
    std::uint16_t before, after, sum;
    std::memcpy(&before, header, 2);
    header[1] = static_cast<std::uint8_t>((header[1] & 0x03) | dscp << 2);
    std::memcpy(&after, header, 2);
    std::memcpy(&sum, header + 10, 2);
    sum = update_checksum(sum, before, after);
    std::memcpy(header + 10, &sum, 2);
}

// In each tag of a frame whose Ethernet header has `l2_length` bytes, where it is 0 now.
inline void set_pcp(std::uint8_t* frame, unsigned l2_length, unsigned pcp) noexcept {
    for (unsigned tag = 12; tag + 4 <= l2_length - 2; tag += 4)
        frame[tag + 2] = static_cast<std::uint8_t>(frame[tag + 2] | pcp << 5);
}

// RFC 2597 6: AFx1, AFx2 and AFx3 differ in drop precedence 1, 2 and 3. 0 for what is no AF.
inline unsigned drop_precedence(std::uint8_t dscp) noexcept {
    const unsigned af_class = dscp >> 3, precedence = dscp >> 1 & 3;
    return af_class >= 1 && af_class <= 4 && (dscp & 1) == 0 ? precedence : 0;
}

}  // namespace cachewire::net
