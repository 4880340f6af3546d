// SPDX-License-Identifier: BSD-3-Clause
#include "net/fragment.h"

#include "net/headers.h"
#include "net/ip6_extensions.h"

namespace cachewire::net {

FragmentField read_fragment_ip4(const std::uint8_t* header) noexcept {
    return {load16_be(header + 4), static_cast<std::uint16_t>((load16_be(header + 6) & 0x1fffu) * 8),
            static_cast<std::uint16_t>((header[0] & 0xfu) * 4)};
}

FragmentField read_fragment_ip6(const std::uint8_t* header, std::size_t length) noexcept {
    std::size_t offset = kIp6Bytes;
    std::uint8_t next = header[6];
    for (unsigned count = 0; count < kMaxIp6Extensions && is_ip6_extension(next) && offset + 8 <= length; ++count) {
        const std::uint8_t* extension = header + offset;
        if (next == kProtoFragment)
            return {__builtin_bswap32(load32(extension + 4)),
                    static_cast<std::uint16_t>(load16_be(extension + 2) & 0xfff8u),
                    static_cast<std::uint16_t>(offset + 8)};
        // RFC 4302 2.2 counts in 4 bytes, RFC 8200 4 in 8.
        offset += next == kProtoAuthentication ? (extension[1] + 2u) * 4 : (extension[1] + 1u) * 8;
        next = extension[0];
    }
    return {};
}

}  // namespace cachewire::net
