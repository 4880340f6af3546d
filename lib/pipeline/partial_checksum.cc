// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/partial_checksum.h"

#include <cstring>

#include <netinet/in.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include "net/checksum.h"

namespace cachewire::pipeline {

namespace {

constexpr unsigned kTcpField = 16, kUdpField = 6;  // RFC 9293 3.1, RFC 768

std::uint64_t pseudo_header_sum(const net::FlowKey& key, std::uint32_t l4_length) noexcept {
    const std::size_t skip = key.is_v4() ? 12 : 0;
    std::uint64_t sum = net::checksum_add(0, std::span(key.src.bytes).subspan(skip));
    sum = net::checksum_add(sum, std::span(key.dst.bytes).subspan(skip));
    return sum + __builtin_bswap32(l4_length) + __builtin_bswap32(std::uint32_t{key.proto});
}

}  // namespace

bool complete_checksum(rte_mbuf* mbuf, unsigned l4_offset, unsigned l4_length, const net::FlowKey& key) noexcept {
    if ((key.match_flags & net::kFragment) != 0) return false;
    if (key.proto != IPPROTO_TCP && key.proto != IPPROTO_UDP) return false;
    const unsigned at = key.proto == IPPROTO_TCP ? kTcpField : kUdpField;
    if (at + 2 > l4_length || l4_offset + at + 2 > mbuf->data_len) return false;
    auto* field = rte_pktmbuf_mtod_offset(mbuf, std::uint8_t*, l4_offset + at);
    std::uint16_t found;
    std::memcpy(&found, field, 2);
    if (found != net::fold_checksum(pseudo_header_sum(key, l4_length))) [[likely]]
        return false;

    // The field is part of the sum, and what stands in it is what the pseudo-header would add.
    std::uint16_t sum = 0;
    if (rte_raw_cksum_mbuf(mbuf, l4_offset, l4_length, &sum) != 0) return false;
    sum = static_cast<std::uint16_t>(~sum);
    // RFC 768: a computed zero goes out as all ones. For TCP both are the same number.
    if (sum == 0 && key.proto == IPPROTO_UDP) sum = 0xffff;
    std::memcpy(field, &sum, 2);
    return true;
}

}  // namespace cachewire::pipeline
