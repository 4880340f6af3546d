#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// `pipeline.metadata: mbuf_dynfield`: the layout that the descriptor replaced, kept so that both can be measured in one
// binary. The stages are the same ones, instantiated for another kind of burst:
//
//   - Tenant, service (class and policer), policy (rule and outcome) and timestamp of a packet live in a registered
//     dynamic field of its mbuf, so in the mbuf's second line, and stages read them from there. Written through to the
//     lane too, a store that stays in L1: hand-off, slow path and whatever else takes a Lane find it complete.
//   - What RX and the parser fetch ahead is the mbuf's first line and the header. Nobody fetches buckets or sessions.
//   - A session's statistics are no deltas in its first line: every packet goes to its second one.
//
// Better than it need be: one dynamic field and not four, so one offset; offsets, lengths and hash stay in the lane.
#include <cstddef>
#include <cstdint>
#include <memory>

#include <rte_mbuf_core.h>

#include "base/clock.h"
#include "pipeline/burst.h"

namespace cachewire::pipeline {

// The dynamic field. rx -> tx, the worker that has the packet.
struct MbufFields {
    std::uint64_t timestamp;     // rx: TSC; install: the session's last packet
    std::uint32_t rule;          // policy
    std::uint16_t outcome;       // policy
    std::uint16_t tenant;        // parse
    std::uint16_t policer;       // service
    std::uint8_t traffic_class;  // service
    std::uint8_t reserved;
};
static_assert(sizeof(MbufFields) == 24);

inline MbufFields& fields_of(rte_mbuf* mbuf, std::size_t offset) noexcept {
    return *reinterpret_cast<MbufFields*>(reinterpret_cast<std::byte*>(mbuf) + offset);
}

// One of them: read from the mbuf, written to both.
template <class T>
class InMbuf {
  public:
    InMbuf(T& lane, T& mbuf) noexcept : lane_(lane), mbuf_(mbuf) {}
    operator T() const noexcept { return mbuf_; }
    InMbuf& operator=(T value) noexcept {
        lane_ = mbuf_ = value;
        return *this;
    }

  private:
    T& lane_;
    T& mbuf_;
};

// A lane as stages see it. Names as in Lane; what is missing here does not compile, and belongs here then.
class MbufLane {
    Lane& lane_;
    std::size_t offset_;
    std::uint64_t now_;

  public:
    MbufLane(Lane& lane, std::size_t offset, std::uint64_t now) noexcept
        : MbufLane(lane, fields_of(lane.mbuf, offset), offset, now) {}
    MbufLane& operator=(const Lane& fresh) noexcept {
        lane_ = fresh;
        return *this;
    }
    // RX, once the lane has its mbuf: what stood in the field was another packet's.
    void begin() noexcept {
        fields_of(lane_.mbuf, offset_) = {
            now_, lane_.rule, lane_.outcome, lane_.tenant, lane_.policer, lane_.traffic_class, 0};
    }
    operator const Lane&() const noexcept { return lane_; }

    rte_mbuf*& mbuf;
    std::uint32_t& hash;
    std::uint32_t& session;
    std::uint32_t& frame_length;
    std::uint16_t& l3_length;
    std::uint16_t& l3_offset;
    std::uint16_t& l4_offset;
    std::uint16_t& in_port;
    std::uint16_t& in_interface;
    std::uint16_t& next_hop;
    std::uint16_t& policy_hop;
    std::uint16_t& flags;
    std::uint8_t& colour;
    std::uint8_t& ttl;
    InMbuf<std::uint32_t> rule;
    InMbuf<std::uint16_t> outcome;
    InMbuf<std::uint16_t> tenant;
    InMbuf<std::uint16_t> policer;
    InMbuf<std::uint8_t> traffic_class;

  private:
    MbufLane(Lane& lane, MbufFields& fields, std::size_t offset, std::uint64_t now) noexcept
        : lane_(lane),
          offset_(offset),
          now_(now),
          mbuf(lane.mbuf),
          hash(lane.hash),
          session(lane.session),
          frame_length(lane.frame_length),
          l3_length(lane.l3_length),
          l3_offset(lane.l3_offset),
          l4_offset(lane.l4_offset),
          in_port(lane.in_port),
          in_interface(lane.in_interface),
          next_hop(lane.next_hop),
          policy_hop(lane.policy_hop),
          flags(lane.flags),
          colour(lane.colour),
          ttl(lane.ttl),
          rule(lane.rule, fields.rule),
          outcome(lane.outcome, fields.outcome),
          tenant(lane.tenant, fields.tenant),
          policer(lane.policer, fields.policer),
          traffic_class(lane.traffic_class, fields.traffic_class) {}
};

// Is a Burst for who needs no more than one.
class MbufBurst : public Burst {
  public:
    static constexpr bool kPrefetchesSessions = false;
    static constexpr bool kCountsInHotLine = false;

    explicit MbufBurst(std::size_t offset) noexcept : offset_(offset) {}
    void begin(unsigned n) noexcept {
        Burst::begin(n);
        now_ = base::now_tsc();
    }
    // Before a lane is asked for: its fields lie in the mbuf.
    void bind(LaneIndex i, rte_mbuf* mbuf) noexcept { Burst::lane(i).mbuf = mbuf; }
    [[nodiscard]] MbufLane lane(LaneIndex i) noexcept { return {Burst::lane(i), offset_, now_}; }
    [[nodiscard]] std::uint64_t timestamp(LaneIndex i) noexcept {
        return fields_of(Burst::lane(i).mbuf, offset_).timestamp;
    }

  private:
    std::size_t offset_;
    std::uint64_t now_ = 0;
};

struct WorkerState;
struct Snapshot;
struct RxQueue;

// Registers the dynamic field. Throws base::MachineError when mbufs have no room for it left. Once EAL runs.
std::unique_ptr<MbufBurst> make_mbuf_burst();

// Worker::receive() in this layout. In a unit of its own, so that the other one's code stays what it is.
unsigned receive_by_mbuf(WorkerState& worker, const Snapshot& snapshot, const RxQueue& queue,
                         std::uint64_t budget) noexcept;

}  // namespace cachewire::pipeline
