#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Linux leaves the TCP or UDP checksum of a packet that never meets a NIC unfinished: the field holds the sum over the
// pseudo-header alone (CHECKSUM_PARTIAL). What comes in so on a veth must not go out so, or the next receiver drops it.
// Worker only; ports that real wires end in are not looked at.
#include <cstdint>

#include "pipeline/descriptor.h"
#include "pipeline/snapshot.h"

namespace cachewire::pipeline {

// Finishes the checksum when the field is the folded pseudo-header sum; returns whether it was. A full checksum that
// happens to have this value is computed again and stays what it is. Fragments are left alone: Linux finishes the
// checksum before it cuts.
bool complete_checksum(rte_mbuf* mbuf, unsigned l4_offset, unsigned l4_length, const net::FlowKey& key) noexcept;

template <class Burst>
void complete_checksums(const Snapshot& snapshot, Burst& burst) noexcept {
    for (const auto i : burst.live()) {
        auto&& lane = burst.lane(i);
        if (lane.l4_offset == 0 || !snapshot.ports[lane.in_port].partial_checksums) continue;
        complete_checksum(lane.mbuf, lane.l4_offset, lane.l3_length - (lane.l4_offset - unsigned{lane.l3_offset}),
                          burst.key(i));
    }
}

}  // namespace cachewire::pipeline
