// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/bypass.h"

#include <algorithm>

#include <rte_mbuf.h>

#include "net/flow_hash.h"
#include "net/fragment.h"
#include "net/headers.h"
#include "net/icmp_quote.h"
#include "pipeline/pull_up.h"

namespace cachewire::pipeline {

namespace {

const std::uint8_t* l3_of(const HeaderPlace& at) noexcept {
    return rte_pktmbuf_mtod_offset(at.mbuf, const std::uint8_t*, at.l3_offset);
}

// Bytes of the upper-layer header without options. The parser has found them in the first piece, so no honest later
// piece begins before them. Of a protocol that it doesn't know the first 8 bytes are protected.
std::uint16_t header_bytes(std::uint8_t proto) noexcept {
    switch (proto) {
        case net::kProtoTcp:
            return net::kTcpBytes;
        case net::kProtoSctp:
            return net::kSctpBytes;
        default:
            return 8;
    }
}

enum class Quoted { flow, nothing, malformed };

// `quoted`: the flow of the packet that this error is about, and goes to the source of.
Quoted read_quote(const HeaderPlace& at, const net::FlowKey& key, net::FlowKey& quoted) noexcept {
    const std::uint32_t begin = std::uint32_t{at.l4_offset} + net::kIcmpErrorBytes;
    const std::uint32_t end =
        std::min<std::uint32_t>(std::uint32_t{at.l3_offset} + at.l3_length, begin + net::kMaxQuoteBytes);
    if (begin >= end) return Quoted::malformed;
    if (!pull_up(at.mbuf, end)) return Quoted::nothing;
    quoted.tenant = key.tenant;
    const auto family = at.ip6 ? net::Family::ip6 : net::Family::ip4;
    const auto* quote = rte_pktmbuf_mtod_offset(at.mbuf, const std::uint8_t*, begin);
    const net::Quote verdict = net::read_icmp_quote(family, quote, end - begin, quoted);
    if (verdict == net::Quote::malformed) return Quoted::malformed;
    return verdict == net::Quote::flow && quoted.src == key.dst ? Quoted::flow : Quoted::nothing;
}

}  // namespace

Piece follow_first_fragment(WorkerState& worker, const net::HashSeed& seed, const HeaderPlace& at, net::FlowKey& key,
                            std::uint32_t& hash) noexcept {
    const net::FragmentField field =
        at.ip6 ? net::read_fragment_ip6(l3_of(at), at.l3_length) : net::read_fragment_ip4(l3_of(at));
    if ((key.match_flags & net::kFirstFragment) != 0) {
        // Extension headers behind the fragment header come before the upper layer's (RFC 8200 4.5).
        const int before = at.l4_offset == 0 ? 0 : at.l4_offset - at.l3_offset - field.data_offset;
        worker.fragments.remember(
            key, field.id, hash,
            {key.src_port_be, key.dst_port_be, key.tcp_flags, key.icmp_type, key.icmp_code,
             static_cast<std::uint16_t>(before + header_bytes(key.proto)), (key.match_flags & net::kL4Known) != 0},
            worker.now_tsc);
        hash = net::flow_hash(key, seed);
        return Piece::first;
    }
    const session::FirstFragment* first = worker.fragments.find(key, field.id, hash, worker.now_tsc);
    if (first == nullptr) return Piece::unknown;
    if (field.offset < first->header_bytes) return Piece::overlap;
    key.src_port_be = first->src_port_be;
    key.dst_port_be = first->dst_port_be;
    key.tcp_flags = first->tcp_flags;
    key.icmp_type = first->icmp_type;
    key.icmp_code = first->icmp_code;
    if (first->l4_known) key.match_flags |= net::kL4Known;
    hash = net::flow_hash(key, seed);
    return Piece::later;
}

Related find_quoted_session(WorkerState& worker, const net::HashSeed& seed, const HeaderPlace& at,
                            const net::FlowKey& key) noexcept {
    net::FlowKey quoted;
    const Quoted verdict = read_quote(at, key, quoted);
    Related related{verdict == Quoted::malformed, {session::kNone, false}};
    if (verdict != Quoted::flow) return related;
    const net::FlowKey* const keys[] = {&quoted};
    const std::uint32_t hash = net::flow_hash(quoted, seed);
    worker.sessions->lookup(keys, {&hash, 1}, {&related.found, 1});
    return related;
}

std::optional<std::uint32_t> quoted_hash(const net::HashSeed& seed, const HeaderPlace& at,
                                         const net::FlowKey& key) noexcept {
    net::FlowKey quoted;
    if (read_quote(at, key, quoted) != Quoted::flow) return std::nullopt;
    return net::flow_hash(quoted, seed);
}

}  // namespace cachewire::pipeline
