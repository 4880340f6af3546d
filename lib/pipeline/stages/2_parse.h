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
//   port            the snapshot's, one for the whole burst; tagged packets read its table by VLAN ID, a line of it.
#include "base/prefetch.h"
#include "pipeline/parser.h"
#include "pipeline/pipeline.h"
#include "pipeline/pull_up.h"
#include "pipeline/twin.h"
#include "pipeline/wire.h"
#include "pipeline/wire_parser.h"

#include <rte_mbuf.h>

#include <algorithm>
#include <cstdint>

namespace cachewire::pipeline::stages {

struct Parse {
    static constexpr StageId kId = StageId::parse;
    static constexpr FieldSet kReads = field::mbuf | field::in_port;
    static constexpr FieldSet kWrites = field::offsets | field::l3_length | field::tenant | field::key | field::hash;

    template <class Burst>
    static void process(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
        // RX has asked for the first ones' headers, and all that it received are live, or nearly.
        const std::size_t distance = snapshot.prefetch_header, bound = burst.live().bound();
        const Port* const ports = snapshot.ports.data();
        burst.filter([&](auto i) __attribute__((always_inline)) {
            if (i + distance < bound) base::prefetch_read(rte_pktmbuf_mtod(burst.lane(i + distance).mbuf, const void*));
            return parse_lane(ports[burst.lane(i).in_port], snapshot, burst, i);
        });
        if (burst.has_raw()) [[unlikely]]
            send_raw(worker, snapshot, burst);
    }

  private:
    static constexpr std::uint64_t kStripped = RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED;

    template <class Burst, class LaneIndex>
    [[gnu::always_inline]] static bool parse_lane(const Port& port, const Snapshot& snapshot, Burst& burst,
                                                  LaneIndex i) noexcept {
        auto&& lane = burst.lane(i);
        const net::HashSeed& seed = snapshot.hash_seed;
        rte_mbuf* const mbuf = lane.mbuf;
        const std::uint32_t length = mbuf->pkt_len;
        if (mbuf->data_len < length) [[unlikely]] {
            if (mbuf->data_len < kHeaderBytes && !pull_up(mbuf, std::min(length, kHeaderBytes)))
                return burst.drop(i, DropReason::headers_chained);
        }
        std::optional<DropReason> drop;
        const bool quiet = is_quiet(*mbuf);
        const auto checksum = quiet_checksum(*mbuf);
        // Padding behind the datagram is nobody's: no policer bills it and no session counts it.
        if (quiet && parser::parse_plain_frame(rte_pktmbuf_mtod(mbuf, const std::uint8_t*), length, checksum, port,
                                               seed, lane, burst.key(i), drop)) {
            if (drop) [[unlikely]]
                return refuse(port, snapshot, burst, i, *drop);
            lane.frame_length = std::uint32_t{lane.l3_offset} + lane.l3_length;  // no tag is off
            return true;
        }
        drop = parse_rest(*mbuf, port, seed, burst, i);
        if (drop) return refuse(port, snapshot, burst, i, *drop);
        lane.frame_length -= length - lane.l3_offset - lane.l3_length;
        return true;
    }

    template <class Burst, class LaneIndex>
    [[gnu::cold, gnu::noinline]] static bool refuse(const Port& port, const Snapshot& snapshot, Burst& burst,
                                                    LaneIndex i, DropReason reason) noexcept {
        if (port.wire_next_hop != kNoNextHop) return refuse_wire(port, burst, i, reason);
        if (reason == DropReason::multicast || reason == DropReason::martian_destination)
            if (const auto twin = twin_takes_refused(snapshot, burst, i, reason)) return burst.punt(i, *twin);
        if (reason == DropReason::arp) return burst.punt(i, PuntReason::arp);
        if (reason == DropReason::nd) return burst.punt(i, PuntReason::nd);
        return burst.drop(i, reason);
    }

    // A device without tags or a complaint to report: the common packet's checksum is `good` or `unknown`.
    static bool is_quiet(const rte_mbuf& mbuf) noexcept {
        return (mbuf.ol_flags & (kStripped | RTE_MBUF_F_RX_IP_CKSUM_BAD)) == 0;
    }

    static IpChecksum::Value quiet_checksum(const rte_mbuf& mbuf) noexcept {
        return (mbuf.ol_flags & RTE_MBUF_F_RX_IP_CKSUM_GOOD) != 0 ? IpChecksum::good : IpChecksum::unknown;
    }

    // Stands apart, so that untagged packets' instructions stay together.
    template <class Burst, class LaneIndex>
    [[gnu::noinline]] static std::optional<DropReason> parse_rest(const rte_mbuf& mbuf, const Port& port,
                                                                  const net::HashSeed& seed, Burst& burst,
                                                                  LaneIndex i) noexcept {
        if (std::optional<DropReason> drop;
            is_quiet(mbuf) &&
            parser::parse_tagged_frame(rte_pktmbuf_mtod(&mbuf, const std::uint8_t*), mbuf.pkt_len, quiet_checksum(mbuf),
                                       port, seed, burst.lane(i), burst.key(i), drop))
            return drop;
        return parse_rare(mbuf, port, seed, burst, i);
    }

    template <class Burst, class LaneIndex>
    [[gnu::noinline]] static std::optional<DropReason> parse_rare(const rte_mbuf& mbuf, const Port& port,
                                                                  const net::HashSeed& seed, Burst& burst,
                                                                  LaneIndex i) noexcept {
        auto&& lane = burst.lane(i);
        if (port.wire_next_hop == kNoNextHop)
            return parser::parse_any_frame(frame_of(mbuf), port, seed, lane, burst.key(i));
        const auto drop = parser::parse_wire_frame(frame_of(mbuf), port, seed, lane, burst.key(i));
        if (!drop) put_on_wire(port, lane);
        return drop;
    }

    // The route is known by the port.
    static void put_on_wire(const Port& port, auto&& lane) noexcept {
        lane.next_hop = port.wire_next_hop;
        lane.flags |= kLaneWire | kLaneRouteKnown;
    }

    template <class Burst, class LaneIndex>
    static bool refuse_wire(const Port& port, Burst& burst, LaneIndex i, DropReason reason) noexcept {
        if (reason != DropReason::arp && reason != DropReason::nd && reason != DropReason::not_ip)
            return burst.drop(i, reason);
        if (!port.wire_non_ip) return burst.drop(i, DropReason::pair_non_ip);
        auto&& lane = burst.lane(i);
        put_on_wire(port, lane);
        lane.l3_length = static_cast<std::uint16_t>(std::min(lane.mbuf->pkt_len - lane.l3_offset, 65535u));
        return burst.set_raw(i);
    }

    static Frame frame_of(const rte_mbuf& mbuf) noexcept {
        Frame frame{rte_pktmbuf_mtod(&mbuf, const std::uint8_t*), mbuf.pkt_len};
        const std::uint64_t checksum = mbuf.ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK;
        if (checksum == RTE_MBUF_F_RX_IP_CKSUM_GOOD) frame.ip_checksum = IpChecksum::good;
        if (checksum == RTE_MBUF_F_RX_IP_CKSUM_BAD) frame.ip_checksum = IpChecksum::bad;
        if ((mbuf.ol_flags & kStripped) != 0) add_stripped_tags(mbuf, frame);
        return frame;
    }

    // With QINQ_STRIPPED alone the outer tag is off and the inner one, though reported, still in the data
    // (rte_mbuf_core.h).
    static void add_stripped_tags(const rte_mbuf& mbuf, Frame& frame) noexcept {
        const bool outer = (mbuf.ol_flags & RTE_MBUF_F_RX_QINQ_STRIPPED) != 0;
        const bool inner = (mbuf.ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0;
        frame.stripped_tags = static_cast<std::uint8_t>(outer + inner);
        frame.stripped_tci[0] = outer ? mbuf.vlan_tci_outer : mbuf.vlan_tci;
        frame.stripped_tci[1] = mbuf.vlan_tci;
    }
};

}  // namespace cachewire::pipeline::stages
