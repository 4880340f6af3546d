#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Takes a burst from the queue that the worker reads now and gives each packet a lane.
//
// Lines touched, and why:
//   mbuf line 0     the driver wrote or passed it; length and flags stand here. Fetched `prefetch_header` lanes ahead,
//   because a
//                   software device hands over pointers whose lines another lcore wrote.
//   header line 0   only asked for, for the first `prefetch_header` lanes; the parse stage goes on asking from there.
//   lane            written whole: four stores to a line that stays in L1.
// Not the mbuf's line 1: nothing of a received packet stands there.
#include "base/prefetch.h"
#include "net/headers.h"
#include "pipeline/pipeline.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace cachewire::pipeline::stages {

struct Rx {
    static constexpr StageId kId = StageId::rx;
    static constexpr FieldSet kReads = field::none;
    static constexpr FieldSet kWrites = field::mbuf | field::in_port | field::frame_length;

    template <class Burst>
    static void process(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
        std::array<rte_mbuf*, kMaxLanes> mbufs;
        const RxQueue& queue = worker.rx_queue;
        const auto wanted = static_cast<std::uint16_t>(std::min<unsigned>(snapshot.burst, kMaxLanes));
        const unsigned n = rte_eth_rx_burst(queue.ethdev, queue.queue, mbufs.data(), wanted);
        burst.begin(n);
        if (n == 0) return;

        const unsigned ahead = snapshot.prefetch_header;
        for (unsigned i = 0; i < std::min(ahead, n); ++i) base::prefetch_read(mbufs[i]);
        std::uint64_t bytes = 0;
        for (unsigned i = 0; i < n; ++i) {
            if (i + ahead < n) base::prefetch_read(mbufs[i + ahead]);
            auto&& lane = burst.lane(static_cast<typename Burst::LaneIndex>(i));
            begin_lane(lane, mbufs[i], queue.port);
            bytes += lane.frame_length;
            if (i < ahead) base::prefetch_read(rte_pktmbuf_mtod(mbufs[i], const void*));
        }
        worker.ledger.rx += n;
        PortCounters& counters = worker.ports[queue.port];
        counters.rx_packets.add(n);
        counters.rx_bytes.add(bytes);
        const Port& port = snapshot.ports[queue.port];
        if (!port.admin_up || port.max_frame_bytes != UINT32_MAX) drop_unwanted(port, counters, burst);
    }

    // A port that is down goes on being emptied, so that nothing old comes in when it goes up.
    template <class Burst>
    static void drop_unwanted(const Port& port, PortCounters& counters, Burst& burst) noexcept {
        burst.filter([&](auto i) {
            if (!port.admin_up) return burst.drop(i, DropReason::port_down);
            if (burst.lane(i).frame_length <= port.max_frame_bytes) [[likely]]
                return true;
            counters.rx_oversize.add(1);
            return burst.drop(i, DropReason::frame_oversize);
        });
    }

    // Tags that the device took off are bytes that came over the wire: each of the two flags stands for one.
    static std::uint32_t stripped_tags(std::uint64_t ol_flags) noexcept {
        return ((ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0) + ((ol_flags & RTE_MBUF_F_RX_QINQ_STRIPPED) != 0);
    }

    template <class LaneRef>
    static void begin_lane(LaneRef& lane, rte_mbuf* mbuf, std::uint16_t in_port) noexcept {
        lane = {};
        lane.mbuf = mbuf;
        lane.session = kNoSession;
        lane.frame_length = mbuf->pkt_len + stripped_tags(mbuf->ol_flags) * net::kTagBytes;
        lane.rule = kNoRule;
        lane.in_port = in_port;
        lane.in_interface = kNoInterface;
        lane.tenant = kNoTenant;
        lane.next_hop = kNoNextHop;
        lane.policer = kNoPolicer;
    }
};

}  // namespace cachewire::pipeline::stages
