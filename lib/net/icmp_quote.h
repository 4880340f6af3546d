#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The packet that an ICMP or ICMPv6 error speaks about, as far as it is quoted: IP header and 8 bytes are enough (RFC
// 792; RFC 4443 2.4c quotes more). Nothing of it has to be right but what names the flow, and nothing of it is
// believed: whoever looks it up decides what it may do.
#include <cstddef>
#include <cstdint>

#include "net/flow_key.h"
#include "net/prefix.h"

namespace cachewire::net {

// An error message of either family has 8 bytes before the quote (RFC 792, RFC 4443 3).
inline constexpr unsigned kIcmpErrorBytes = 8;
// IPv6 header, all extension headers that are walked, 8 bytes.
inline constexpr unsigned kMaxQuoteBytes = 40 + 256 + 8;

enum class Quote : std::uint8_t {
    flow,       // addresses, protocol and ports are known
    no_flow,    // whole, but names no flow: a later fragment, or an ICMP error itself
    malformed,  // cut short within what names a flow, or no header that could be one
};

// `quote`: what follows the ICMP error's own 8 bytes, `length` bytes of it. On `flow`, src, dst, ports and protocol of
// `key` are those of the quoted packet, in its own direction; the rest of `key` is left alone.
Quote read_icmp_quote(Family family, const std::uint8_t* quote, std::size_t length, FlowKey& key) noexcept;

}  // namespace cachewire::net
