// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/wire.h"

#include <cstring>

#include <rte_mbuf.h>

#include "net/headers.h"
#include "pipeline/port_state.h"
#include "pipeline/stages/6_qos.h"

namespace cachewire::pipeline {

namespace {

constexpr std::uint64_t kStripped = RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED;

bool put_tag(rte_mbuf* mbuf, std::uint16_t tpid, std::uint16_t tci) noexcept {
    if (mbuf->data_len < 12) return false;
    char* const frame = rte_pktmbuf_prepend(mbuf, net::kTagBytes);
    if (frame == nullptr) return false;
    std::memmove(frame, frame + net::kTagBytes, 12);
    tpid = net::be16(tpid);
    tci = net::be16(tci);
    std::memcpy(frame + 12, &tpid, 2);
    std::memcpy(frame + 14, &tci, 2);
    return true;
}

// What the device took off, as it was on the wire: an outer tag that had an inner one beside it was 802.1ad.
bool put_tags_back(rte_mbuf* mbuf) noexcept {
    const std::uint64_t flags = mbuf->ol_flags;
    if ((flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0 && !put_tag(mbuf, net::kEtherTypeVlan, mbuf->vlan_tci)) return false;
    return (flags & RTE_MBUF_F_RX_QINQ_STRIPPED) == 0 ||
           put_tag(mbuf, net::kEtherTypeServiceVlan, mbuf->vlan_tci_outer);
}

bool send_one(WorkerState& worker, const Snapshot& snapshot, Burst& burst, Burst::LaneIndex i) noexcept {
    const Lane& lane = burst.lane(i);
    const route::NextHop& hop = snapshot.next_hops[lane.next_hop];
    const Port& port = snapshot.ports[hop.port];
    rte_mbuf* const mbuf = lane.mbuf;
    if (!port.sends) return burst.drop(i, why_not_sent(port));
    if (lane.l3_length > hop.mtu) return burst.drop(i, DropReason::mtu_exceeded);
    if ((mbuf->ol_flags & kStripped) != 0 && !put_tags_back(mbuf)) return burst.drop(i, DropReason::headers_chained);
    if (mbuf->nb_segs != 1 && !port.sends_chains && rte_pktmbuf_linearize(mbuf) != 0)
        return burst.drop(i, DropReason::tx_chained);
    // What RX said of the packet must not reach the driver as a request; as in the TX stage.
    mbuf->ol_flags &= RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
    mbuf->packet_type = 0;
    put_label(mbuf, {lane.tenant, lane.traffic_class});
    if (!worker.tx[hop.port].push(mbuf)) {
        worker.ports[hop.port].tx_dropped.add(1);
        return burst.drop(i, DropReason::tx_full);
    }
    ++worker.ledger.held;
    return false;
}

}  // namespace

[[gnu::noinline]] void send_wire(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
    burst.filter(
        [&](auto i) { return (burst.lane(i).flags & kLaneWire) == 0 || send_one(worker, snapshot, burst, i); });
}

[[gnu::noinline]] void send_raw(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
    const LaneSet others = burst.exchange_live(burst.take_raw());
    // There was no header to read: the keys are those of packets that had these lanes before.
    for (const auto i : burst.live()) burst.key(i) = {};
    stages::Qos::police(worker, snapshot, burst);
    send_wire(worker, snapshot, burst);
    burst.exchange_live(others);
}

}  // namespace cachewire::pipeline
