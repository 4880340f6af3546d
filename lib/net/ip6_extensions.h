#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The IPv6 extension headers between the fixed header and the upper layer (RFC 8200 4), walked once with a bound on
// number and bytes, so that no packet costs more than any other by much.
#include <cstddef>
#include <cstdint>
#include <span>

#include "net/headers.h"

namespace cachewire::net {

inline constexpr unsigned kMaxIp6Extensions = 8;
inline constexpr unsigned kMaxIp6ExtensionBytes = 256;

// The headers that are walked. ESP, mobility, HIP and Shim6 count as upper layers: what follows them is not ours to
// read.
inline bool is_ip6_extension(std::uint8_t next_header) noexcept {
    constexpr std::uint64_t kWalked = 1ull << kProtoHopByHop | 1ull << kProtoRouting | 1ull << kProtoFragment |
                                      1ull << kProtoAuthentication | 1ull << kProtoDestinationOptions;
    return next_header < 64 && ((kWalked >> next_header) & 1) != 0;
}

struct Ip6Chain {
    enum class Verdict : std::uint8_t { ok, truncated, over_limit, order, routing_type_0, jumbogram, fragment_length };
    Verdict verdict = Verdict::ok;
    std::uint8_t proto = kProtoNoNext;  // of the upper layer; of a later fragment what its fragment header names
    bool has_options = false;           // any header but a fragment header
    std::uint16_t upper_offset = 0;     // from the IPv6 header's first byte
    std::uint16_t fragment =
        0;  // offset in 8-byte units << 3 | M; 0: no fragment, or one that is the whole packet (RFC 6946)
};
static_assert(sizeof(Ip6Chain) == 8);  // comes back in a register

// `datagram` begins with the fixed header and ends with the IPv6 payload (`length` bytes, 40 at least); of it the first
// min(length, 40 + kMaxIp6ExtensionBytes) bytes are read at most.
Ip6Chain walk_ip6_extensions(const std::uint8_t* datagram, std::size_t length) noexcept;

}  // namespace cachewire::net
