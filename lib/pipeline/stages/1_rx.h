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
        const auto wanted = static_cast<std::uint16_t>(std::min<unsigned>(snapshot.burst, worker.rx_wanted));
        const unsigned n = rte_eth_rx_burst(queue.ethdev, queue.queue, mbufs.data(), wanted);
        burst.begin(n);
        if (n == 0) return;

        const unsigned ahead = snapshot.prefetch_header;
        for (unsigned i = 0; i < std::min(ahead, n); ++i) base::prefetch_read(mbufs[i]);
        const auto fresh = fresh_lane(queue.port);
        std::uint64_t bytes = 0;
        for (unsigned i = 0; i < n; ++i) {
            if (i + ahead < n) base::prefetch_read(mbufs[i + ahead]);
            const auto at = static_cast<typename Burst::LaneIndex>(i);
            if constexpr (requires { burst.bind(at, mbufs[i]); }) burst.bind(at, mbufs[i]);
            auto&& lane = burst.lane(at);
            bytes += begin_lane(lane, fresh, mbufs[i]);
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
    static std::uint32_t frame_length(const rte_mbuf& mbuf) noexcept {
        const std::uint64_t flags = mbuf.ol_flags;
        if ((flags & (RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED)) == 0) [[likely]]
            return mbuf.pkt_len;
        const unsigned tags =
            ((flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0) + ((flags & RTE_MBUF_F_RX_QINQ_STRIPPED) != 0);
        return mbuf.pkt_len + tags * net::kTagBytes;
    }

    // Returns the frame's length.
    static std::uint32_t begin_lane(auto&& lane, const Lane& fresh, rte_mbuf* mbuf) noexcept {
        const std::uint32_t length = frame_length(*mbuf);
        lane = fresh;
        lane.mbuf = mbuf;
        lane.frame_length = length;
        if constexpr (requires { lane.begin(); }) lane.begin();
        return length;
    }

    // What every lane of the burst begins with. It stays in registers: 28 instructions a packet where each lane's
    // fields were set one by one took 42.
    static Lane fresh_lane(std::uint16_t in_port) noexcept {
        Lane lane{};
        lane.session = kNoSession;
        lane.rule = kNoRule;
        lane.in_port = in_port;
        lane.in_interface = kNoInterface;
        lane.tenant = kNoTenant;
        lane.next_hop = kNoNextHop;
        lane.policer = kNoPolicer;
        return lane;
    }
};

}  // namespace cachewire::pipeline::stages
