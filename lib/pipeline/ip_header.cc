// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/ip_header.h"

#include "net/ip4_options.h"

namespace cachewire::pipeline::parser {

[[gnu::cold]] Drop check_ip4_start(const std::uint8_t* header, std::size_t available) noexcept {
    if (header[0] >> 4 != 4) return DropReason::ip4_version;  // RFC 1812 5.2.2(3)
    const std::size_t length = std::size_t{header[0] & 0xfu} * 4;
    if (length < net::kIp4Bytes || length > available) return DropReason::ip4_header_length;  // RFC 1812 5.2.2(4)
    if (!net::ip4_options_ok({header + net::kIp4Bytes, length - net::kIp4Bytes})) return DropReason::ip4_options;
    return {};
}

[[gnu::cold]] bool ip4_options_checksum_ok(const std::uint8_t* header) noexcept {
    return net::checksum({header, std::size_t{header[0] & 0xfu} * 4}) == 0;
}

// RFC 791 3.2: pieces but the last are multiples of 8 bytes; the whole has a 16-bit total length.
[[gnu::cold]] Drop check_ip4_fragment(std::uint32_t fragment, std::uint32_t total_length,
                                      std::uint32_t header_length) noexcept {
    if ((fragment & 1) != 0 && (total_length - header_length) % 8 != 0) return DropReason::fragment_length;
    if ((fragment & ~7u) + total_length > 65535) return DropReason::fragment_length;
    return {};
}

[[gnu::cold]] Drop refuse_chain(net::Ip6Chain::Verdict verdict) noexcept {
    using Verdict = net::Ip6Chain::Verdict;
    switch (verdict) {
        case Verdict::ok:
            return {};
        case Verdict::truncated:
            return DropReason::ip6_extension_truncated;
        case Verdict::over_limit:
            return DropReason::ip6_extension_limit;
        case Verdict::order:
            return DropReason::ip6_extension_order;
        case Verdict::routing_type_0:
            return DropReason::ip6_routing_header;
        case Verdict::jumbogram:
            return DropReason::ip6_payload_length;
        case Verdict::fragment_length:
            return DropReason::fragment_length;
    }
    return {};
}

}  // namespace cachewire::pipeline::parser
