#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Reads each packet's headers once and fills lane and key; what is malformed or not for a router leaves by its reason.
// The checks stand in pipeline/parser.h.
//
// Lines touched, and why:
//   mbuf line 0     address, length, flags; in L1 since RX.
//   header line 0   everything of IPv4 up to the TCP flags lies in it; IPv6 and tags reach into line 1. Fetched
//                   `prefetch_header` lanes ahead.
//   lane and key    written, stay in L1.
//   port            the snapshot's, one for the whole burst.
#include "base/prefetch.h"
#include "pipeline/parser.h"
#include "pipeline/pipeline.h"
#include "pipeline/pull_up.h"

#include <rte_mbuf.h>

#include <algorithm>
#include <cstdint>

namespace cachewire::pipeline::stages {

struct Parse {
    static constexpr StageId kId = StageId::parse;
    static constexpr FieldSet kReads = field::mbuf | field::in_port;
    static constexpr FieldSet kWrites = field::offsets | field::l3_length | field::tenant | field::key | field::hash;

    template <class Burst>
    static void process(WorkerState&, const Snapshot& snapshot, Burst& burst) noexcept {
        const auto live = burst.live();
        const unsigned count = burst.size();
        unsigned ahead = snapshot.prefetch_header;
        burst.filter([&](auto i) {
            if (ahead < count) base::prefetch_read(rte_pktmbuf_mtod(burst.lane(live[ahead]).mbuf, const void*));
            ++ahead;
            return parse_lane(snapshot, burst, i);
        });
    }

  private:
    template <class Burst, class LaneIndex>
    static bool parse_lane(const Snapshot& snapshot, Burst& burst, LaneIndex i) noexcept {
        auto&& lane = burst.lane(i);
        rte_mbuf* const mbuf = lane.mbuf;
        if (mbuf->data_len < std::min(mbuf->pkt_len, kHeaderBytes) &&
            !pull_up(mbuf, std::min(mbuf->pkt_len, kHeaderBytes)))
            return burst.drop(i, DropReason::headers_chained);

        Parsed parsed;
        const auto reason =
            parse_packet(frame_of(*mbuf), snapshot.ports[lane.in_port], snapshot.hash_seed, parsed, burst.key(i));
        lane.tenant = parsed.tenant;
        if (reason) return burst.drop(i, *reason);
        // Padding behind the datagram is nobody's: no policer bills it and no session counts it.
        lane.frame_length -= mbuf->pkt_len - parsed.l3_offset - parsed.l3_length;
        lane.hash = parsed.hash;
        lane.l3_length = parsed.l3_length;
        lane.l3_offset = parsed.l3_offset;
        lane.l4_offset = parsed.l4_offset;
        lane.in_interface = parsed.in_interface;
        lane.flags = parsed.flags;
        lane.ttl = parsed.ttl;
        return true;
    }

    static Frame frame_of(const rte_mbuf& mbuf) noexcept {
        Frame frame{rte_pktmbuf_mtod(&mbuf, const std::uint8_t*), mbuf.pkt_len};
        const std::uint64_t flags = mbuf.ol_flags;
        const std::uint64_t checksum = flags & RTE_MBUF_F_RX_IP_CKSUM_MASK;
        if (checksum == RTE_MBUF_F_RX_IP_CKSUM_GOOD) frame.ip_checksum = IpChecksum::good;
        if (checksum == RTE_MBUF_F_RX_IP_CKSUM_BAD) frame.ip_checksum = IpChecksum::bad;
        if ((flags & (RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED)) != 0) add_stripped_tags(mbuf, frame);
        return frame;
    }

    // With QINQ_STRIPPED alone the outer tag is off and the inner one, though reported, still in the data
    // (rte_mbuf_core.h).
    static void add_stripped_tags(const rte_mbuf& mbuf, Frame& frame) noexcept {
        if ((mbuf.ol_flags & RTE_MBUF_F_RX_QINQ_STRIPPED) != 0)
            frame.stripped_tci[frame.stripped_tags++] = mbuf.vlan_tci_outer;
        if ((mbuf.ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0)
            frame.stripped_tci[frame.stripped_tags++] = mbuf.vlan_tci;
    }
};

}  // namespace cachewire::pipeline::stages
