#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// From a worker to the lcore that schedules a port: a ring for each pair of them, one producer, one consumer, nobody
// waits. The element says all that the scheduler has to know, so that lcore looks at no packet before it sends it.
//
// Between its TX stage and the end of its iteration a worker keeps a packet's tenant and class in the mbuf's first
// line, in the place that DPDK has for a scheduler; the TX stage writes that line in any case.
//
// Ledger: as in handoff.h. The worker's line counts what it gave as `held`, the scheduler's takes it off, and the
// packets are published behind the worker's line.
#include <array>
#include <bit>
#include <cstdint>

#include <rte_mbuf.h>

#include "base/spsc_ring.h"
#include "pipeline/snapshot.h"
#include "qos/scheduler.h"

namespace cachewire::pipeline {

// 16 KiB: a millisecond of a million packets a second.
inline constexpr std::uint32_t kFeedSlots = 1024;
using FeedRing = base::SpscRing<qos::Scheduled, kFeedSlots>;

struct Label {
    std::uint16_t tenant;
    std::uint8_t traffic_class;  // slot, or kOwnFrame
};
inline constexpr std::uint8_t kOwnFrame = kMaxClasses;  // from the slow path or a twin: ARP, ICMP, BGP
inline constexpr std::size_t kLabels = kMaxClasses + 1;

inline void put_label(rte_mbuf* mbuf, Label label) noexcept {
    mbuf->hash.sched.queue_id = label.tenant;
    mbuf->hash.sched.traffic_class = label.traffic_class;
}
inline Label label_of(const rte_mbuf* mbuf) noexcept {
    return {static_cast<std::uint16_t>(mbuf->hash.sched.queue_id), mbuf->hash.sched.traffic_class};
}
// What counts by class counts own frames as of none.
inline std::uint8_t class_slot(Label label) noexcept {
    return label.traffic_class == kOwnFrame ? std::uint8_t{0} : label.traffic_class;
}

// worker: rw
struct SchedulerFeeds {
    std::array<FeedRing*, kMaxPorts> to{};  // by snapshot port; null: no scheduler, and packets go to the device
    std::uint64_t unpublished = 0;          // a bit a port whose ring has elements that can't be seen yet

    void publish() noexcept {
        for (; unpublished != 0; unpublished &= unpublished - 1)
            to[static_cast<unsigned>(std::countr_zero(unpublished))]->publish();
    }
};

}  // namespace cachewire::pipeline
