// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/fragment.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <rte_mbuf.h>

#include "net/checksum.h"
#include "net/headers.h"
#include "net/marking.h"
#include "pipeline/port_state.h"

namespace cachewire::pipeline {

namespace {

constexpr std::uint16_t kMoreFragments = 0x2000, kOffset = 0x1fff;

void put16(std::uint8_t* out, unsigned value) noexcept {
    out[0] = static_cast<std::uint8_t>(value >> 8);
    out[1] = static_cast<std::uint8_t>(value);
}

// The header of every piece but the first: options without the copied bit stay behind (RFC 791 3.1). Returns its
// length.
unsigned later_header(const std::uint8_t* header, unsigned length, std::uint8_t* out) noexcept {
    std::memcpy(out, header, net::kIp4Bytes);
    unsigned size = net::kIp4Bytes;
    for (unsigned at = net::kIp4Bytes; at < length;) {
        const std::uint8_t type = header[at];
        if (type == 0) break;
        const unsigned bytes = type == 1 ? 1 : at + 1 < length ? header[at + 1] : 0;
        if (bytes == 0 || at + bytes > length) break;  // the parser has seen that there is none such
        if ((type & 0x80) != 0) {
            std::memcpy(out + size, header + at, bytes);
            size += bytes;
        }
        at += bytes;
    }
    while (size % 4 != 0) out[size++] = 0;
    out[0] = static_cast<std::uint8_t>(0x40 | size / 4);
    return size;
}

struct Cut {
    std::array<std::uint8_t, 60> first, later;
    unsigned first_bytes, later_bytes;  // of the headers
    unsigned first_room, later_room;    // payload of a piece, a multiple of 8
    unsigned payload;                   // of the parent
    std::uint16_t field;                // the parent's own flags and offset
};

std::uint16_t usable(const rte_mbuf& mbuf) noexcept {
    return static_cast<std::uint16_t>(rte_pktmbuf_data_room_size(mbuf.pool) - RTE_PKTMBUF_HEADROOM);
}

bool plan(const Lane& lane, const route::NextHop& hop, Cut& cut) noexcept {
    const auto* header = rte_pktmbuf_mtod_offset(lane.mbuf, const std::uint8_t*, lane.l3_offset);
    cut.first_bytes = (header[0] & 0xfu) * 4;
    std::memcpy(cut.first.data(), header, cut.first_bytes);
    cut.later_bytes = later_header(header, cut.first_bytes, cut.later.data());
    cut.payload = lane.l3_length - cut.first_bytes;
    cut.field = net::load16_be(header + 6);
    // One buffer a piece: where the MTU is over it, pieces are shorter than they might be.
    const unsigned room = std::min<unsigned>(hop.mtu, usable(*lane.mbuf) - hop.l2_length);
    if (room < cut.first_bytes + 8) return false;
    cut.first_room = (room - cut.first_bytes) & ~7u;
    cut.later_room = (room - cut.later_bytes) & ~7u;
    return true;
}

unsigned pieces(const Cut& cut) noexcept {
    const unsigned rest = cut.payload > cut.first_room ? cut.payload - cut.first_room : 0;
    return 1 + (rest + cut.later_room - 1) / cut.later_room;
}

// One piece: Ethernet and IPv4 headers, TTL one less, and `bytes` of the parent's payload from `offset`.
void write_piece(const Lane& lane, const route::NextHop& hop, const Cut& cut, unsigned pcp, unsigned offset,
                 unsigned bytes, rte_mbuf* piece) noexcept {
    const bool first = offset == 0;
    const unsigned header_bytes = first ? cut.first_bytes : cut.later_bytes;
    const unsigned total = header_bytes + bytes;
    piece->data_len = static_cast<std::uint16_t>(hop.l2_length + total);
    piece->pkt_len = piece->data_len;
    auto* frame = rte_pktmbuf_mtod(piece, std::uint8_t*);
    std::memcpy(frame, hop.l2_header.data(), hop.l2_length - 2u);
    net::set_pcp(frame, hop.l2_length, pcp);
    const std::uint16_t ether_type = net::be16(net::kEtherTypeIp4);
    std::memcpy(frame + hop.l2_length - 2, &ether_type, 2);
    std::uint8_t* header = frame + hop.l2_length;
    std::memcpy(header, first ? cut.first.data() : cut.later.data(), header_bytes);
    put16(header + 2, total);
    const bool more = offset + bytes < cut.payload || (cut.field & kMoreFragments) != 0;
    put16(header + 6, (more ? kMoreFragments : 0u) | ((cut.field & kOffset) + offset / 8));
    --header[8];
    put16(header + 10, 0);
    const std::uint16_t sum = net::checksum({header, header_bytes});
    std::memcpy(header + 10, &sum, 2);
    std::uint8_t* to = header + header_bytes;
    const std::uint32_t from = lane.l3_offset + cut.first_bytes + offset;
    const void* data = rte_pktmbuf_read(lane.mbuf, from, bytes, to);
    if (data != to && data != nullptr) std::memcpy(to, data, bytes);
}

}  // namespace

std::optional<DropReason> send_in_pieces(WorkerState& worker, const Snapshot& snapshot, const Lane& lane) noexcept {
    const route::NextHop& hop = snapshot.next_hops[lane.next_hop];
    if (const Port& port = snapshot.ports[hop.port]; !port.sends) return why_not_sent(port);
    Cut cut;
    if (!plan(lane, hop, cut)) return DropReason::mtu_exceeded;
    const unsigned count = pieces(cut);
    port::TxBuffer& tx = worker.tx[hop.port];
    if (tx.size() + count > port::kTxBufferSize) {
        worker.ports[hop.port].tx_dropped.add(1);
        worker.class_tx_dropped[hop.port][lane.traffic_class].add(1);
        return DropReason::tx_full;
    }
    std::array<rte_mbuf*, port::kTxBufferSize> mbufs;
    if (rte_pktmbuf_alloc_bulk(lane.mbuf->pool, mbufs.data(), count) != 0) return DropReason::no_mbuf;
    unsigned offset = 0;
    for (unsigned i = 0; i < count; ++i) {
        const unsigned bytes = std::min(i == 0 ? cut.first_room : cut.later_room, cut.payload - offset);
        write_piece(lane, hop, cut, snapshot.traffic_classes[lane.traffic_class].pcp, offset, bytes, mbufs[i]);
        offset += bytes;
        put_label(mbufs[i], {lane.tenant, lane.traffic_class});
        tx.push(mbufs[i]);
    }
    rte_pktmbuf_free(lane.mbuf);
    ++worker.ledger.consumed;
    worker.ledger.originated += count;
    worker.ledger.held += count;
    return {};
}

}  // namespace cachewire::pipeline
