#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The packet's new face, and into the buffer of its egress port: TTL, Ethernet header, length. Sending is flush_tx(),
// at the end of the worker's iteration.
//
// Lines touched, all of them already here: the packet's header line (parse read it), written: TTL, checksum, Ethernet
// header; mbuf line 0 (RX wrote it), written: data offset, lengths, flags; the next hop's line (the route stage fetched
// it), read. mbuf line 1 is not touched for packets in one segment: no TX offload is asked for, so no driver reads it
// on our behalf. Frames in several segments walk them only where L2 padding has to go.
#include <cstdint>
#include <cstring>

#include "net/checksum.h"
#include "net/headers.h"
#include "net/marking.h"
#include "pipeline/fragment.h"
#include "pipeline/mss_clamp.h"
#include "pipeline/partial_checksum.h"
#include "pipeline/pipeline.h"
#include "pipeline/port_state.h"
#include "pipeline/snapshot.h"
#include "pipeline/wire.h"
#include "pipeline/worker_state.h"
#include "route/next_hop.h"

#include <rte_mbuf.h>

namespace cachewire::pipeline::stages {

struct Tx {
    static constexpr StageId kId = StageId::tx;
    static constexpr FieldSet kReads = field::mbuf | field::in_port | field::key | field::offsets | field::l3_length |
                                       field::next_hop | field::verdict;
    static constexpr FieldSet kWrites = field::none;

    template <class Burst>
    static void process(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
        if (snapshot.partial_checksums) complete_checksums(snapshot, burst);
        if (snapshot.mss_clamps) clamp_mss(snapshot, burst);
        if (burst.has_pieces()) [[unlikely]]
            send_pieces(worker, snapshot, burst);
        if (burst.has_wire()) [[unlikely]]
            send_wire(worker, snapshot, burst);
        if (snapshot.schedulers) [[unlikely]]
            label_all(burst);
        const route::NextHop* const next_hops = snapshot.next_hops.data();
        const Port* const ports = snapshot.ports.data();
        const TrafficClass* const classes = snapshot.traffic_classes.data();
        unsigned held = 0;
        burst.send_all([&](auto i) __attribute__((always_inline)) {
            auto&& lane = burst.lane(i);
            const route::NextHop& next_hop = next_hops[lane.next_hop];
            const Port& port = ports[next_hop.port];
            if (!port.sends) return burst.drop(i, why_not_sent(port));
            // Read before the frame is written, or each of its bytes could be one of these.
            rte_mbuf* const mbuf = lane.mbuf;
            const unsigned l2_length = next_hop.l2_length, length = l2_length + lane.l3_length;
            // The frame begins so much earlier, or later where this is negative.
            const int longer = static_cast<int>(l2_length) - static_cast<int>(lane.l3_offset);
            if (!rewrite(mbuf, lane, next_hop, l2_length, longer, classes))
                return burst.drop(i, DropReason::headers_chained);
            // L2 padding ends here, so that nobody's bytes leave in it; the device pads anew.
            if (mbuf->nb_segs != 1) [[unlikely]] {
                cut_chain(mbuf, longer, length);
                if (!port.sends_chains && !make_linear(mbuf)) return burst.drop(i, DropReason::tx_chained);
            } else {
                mbuf->pkt_len = length;
                mbuf->data_len = static_cast<std::uint16_t>(length);
            }
            if (!worker.tx[next_hop.port].push(mbuf)) {
                worker.ports[next_hop.port].tx_dropped.add(1);
                worker.class_tx_dropped[next_hop.port][lane.traffic_class].add(1);
                return burst.drop(i, DropReason::tx_full);
            }
            ++held;
            return true;
        });
        worker.ledger.held += held;
    }

  private:
    [[gnu::noinline]] static bool make_linear(rte_mbuf* mbuf) noexcept { return rte_pktmbuf_linearize(mbuf) == 0; }

    // Whatever port each leaves by: a line that is written below anyway.
    template <class Burst>
    [[gnu::cold, gnu::noinline]] static void label_all(Burst& burst) noexcept {
        for (const auto i : burst.live()) {
            auto&& lane = burst.lane(i);
            put_label(lane.mbuf, {lane.tenant, lane.traffic_class});
        }
    }

    // Behind the checksums, or a piece would carry a half-finished one.
    template <class Burst>
    [[gnu::cold, gnu::noinline]] static void send_pieces(WorkerState& worker, const Snapshot& snapshot,
                                                         Burst& burst) noexcept {
        burst.filter([&](auto i) {
            auto&& lane = burst.lane(i);
            if ((lane.flags & kLanePieces) == 0) return true;
            const auto refused = send_in_pieces(worker, snapshot, lane);
            return refused ? burst.drop(i, *refused) : false;
        });
    }

    // False: the first segment has no headroom for the longer Ethernet header. Lengths are the caller's.
    [[gnu::always_inline]] static bool rewrite(rte_mbuf* mbuf, auto& lane, const route::NextHop& next_hop,
                                               unsigned l2_length, int longer, const TrafficClass* classes) noexcept {
        if (longer > static_cast<int>(rte_pktmbuf_headroom(mbuf))) return false;
        mbuf->data_off = static_cast<std::uint16_t>(mbuf->data_off - longer);
        auto* frame = rte_pktmbuf_mtod(mbuf, std::uint8_t*);
        std::uint16_t ether_type;
        if ((lane.flags & kLaneIpv6) != 0) {
            --frame[l2_length + 7];  // RFC 8200 3: hop limit
            ether_type = net::kEtherTypeIp6;
        } else {
            net::decrement_ttl_ip4(frame + l2_length);
            ether_type = net::kEtherTypeIp4;
        }
        write_ethernet(frame, next_hop, l2_length, net::be16(ether_type), classes, lane);
        // What RX said of the packet (a stripped tag, checksums, a type) must not reach the driver as a request or the
        // next owner as a fact; only what says who owns the buffer stays.
        mbuf->ol_flags &= RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
        mbuf->packet_type = 0;
        return true;
    }

    static void write_ethernet(std::uint8_t* frame, const route::NextHop& next_hop, unsigned l2_length,
                               std::uint16_t ether_type_be, const TrafficClass* classes, const auto& lane) noexcept {
        std::memcpy(frame, next_hop.l2_header.data(), 12);
        if (l2_length > 14) {
            std::memcpy(frame + 12, next_hop.l2_header.data() + 12, 4);
            if (l2_length > 18) std::memcpy(frame + 16, next_hop.l2_header.data() + 16, 4);
            net::set_pcp(frame, l2_length, classes[lane.traffic_class].pcp);
        }
        std::memcpy(frame + l2_length - 2, &ether_type_be, 2);
    }

    // Parsed headers lie in the first segment, so that one has become longer. Stands apart, as it frees segments.
    [[gnu::noinline]] static void cut_chain(rte_mbuf* mbuf, int longer, std::uint32_t length) noexcept {
        mbuf->data_len = static_cast<std::uint16_t>(mbuf->data_len + longer);
        mbuf->pkt_len += static_cast<std::uint32_t>(longer);
        if (mbuf->pkt_len <= length) return;
        mbuf->pkt_len = length;
        rte_mbuf* segment = mbuf;
        std::uint16_t segments = 1;
        for (; length > segment->data_len; ++segments) {
            length -= segment->data_len;
            segment = segment->next;
        }
        segment->data_len = static_cast<std::uint16_t>(length);
        rte_pktmbuf_free(segment->next);
        segment->next = nullptr;
        mbuf->nb_segs = segments;
    }
};

}  // namespace cachewire::pipeline::stages
