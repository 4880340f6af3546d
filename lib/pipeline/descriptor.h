#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What the pipeline knows of a packet, one line a lane, in L1 from RX to TX. The mbuf's own second line is never
// touched and no mbuf dynfield is used: per-packet metadata there costs a line per packet that no prefetch had asked
// for.
#include <cstddef>
#include <cstdint>

#include "base/cache_line.h"
#include "net/flow_key.h"

struct rte_mbuf;

namespace cachewire::pipeline {

inline constexpr std::uint32_t kNoSession = 0xffffffff;
inline constexpr std::uint16_t kNoNextHop = 0;  // next hop 0 of every snapshot means "no route"
inline constexpr std::uint16_t kNoPolicer = 0xffff;
inline constexpr std::uint32_t kNoRule = 0xffffffff;

// Lane::flags
inline constexpr std::uint16_t kLaneIpv6 = 1 << 0;
inline constexpr std::uint16_t kLaneReverse = 1 << 1;       // the session's reverse direction
inline constexpr std::uint16_t kLaneVerdictKnown = 1 << 2;  // hit with a fresh policy generation: ACL is skipped
inline constexpr std::uint16_t kLaneRouteKnown = 1 << 3;    // hit with a fresh route generation: LPM is skipped
inline constexpr std::uint16_t kLaneLearn = 1 << 4;    // reply of a stateless list's session, whose memo knows none yet
inline constexpr std::uint16_t kLaneInstall = 1 << 5;  // miss that becomes a session once permitted and routed
inline constexpr std::uint16_t kLaneStale = 1 << 6;    // hit whose memo has to be renewed
inline constexpr std::uint16_t kLaneIcmpError = 1 << 7;  // ICMP error: speaks about another packet's flow, not its own
inline constexpr std::uint16_t kLaneBypass = 1 << 8;     // neither uses nor makes a memo: fragments, options, ...
inline constexpr std::uint16_t kLaneShadow = 1 << 9;     // memo hit that is derived anew and compared
inline constexpr std::uint16_t kLaneRetried = 1 << 10;   // came back from the slow path: waits no second time
inline constexpr std::uint16_t kLanePieces = 1 << 11;    // longer than its next hop's MTU, and leaves in pieces
// A piece of a datagram has been at the worker that knows its first piece's ports, and there was no first piece.
inline constexpr std::uint16_t kLaneFollowed = 1 << 12;
inline constexpr std::uint16_t kLaneStray = 1 << 13;
inline constexpr std::uint16_t kLaneWire = 1 << 14;  // of a transparent pair: leaves as it came, by the other port

struct alignas(base::kCacheLine) Lane {
    rte_mbuf* mbuf;              // 0   rx -> tx
    std::uint32_t hash;          // 8   parse: keyed symmetric hash over tenant and tuple
    std::uint32_t session;       // 12  session: index or kNoSession
    std::uint32_t frame_length;  // 16  rx: L2 bytes without FCS, all segments, stripped tag counted back in; parse:
                                 //     without what pads the frame behind the datagram
    std::uint32_t rule;          // 20  acl: matching rule's index in its list, kNoRule for the default
    std::uint16_t l3_length;     // 24  parse: IP header's first byte to the datagram's last, without L2 padding
    std::uint16_t l3_offset;     // 26  parse: of the IP header from the frame's start
    std::uint16_t l4_offset;     // 28  parse: of the upper-layer header from the frame's start; 0 where there is none
    std::uint16_t in_port;       // 30  rx: index in the snapshot
    std::uint16_t in_interface;  // 32  parse: index in the snapshot
    std::uint16_t tenant;        // 34  parse: slot in the snapshot; 0 until it is known
    std::uint16_t next_hop;      // 36  route: index in the snapshot's next hops
    std::uint16_t flags;         // 38
    std::uint16_t outcome;       // 40  acl: interned outcome
    std::uint16_t policer;       // 42  acl
    std::uint8_t traffic_class;  // 44  acl: a rule's; qos: by DSCP or PCP where there was none
    std::uint8_t colour;         // 45  qos: the worst of its policers
    std::uint8_t ttl;            // 46  parse: TTL or hop limit as received
    std::uint8_t reserved0;      // 47
    std::uint16_t policy_hop;    // 48  acl: a rule's next hop, in place of the route's; 0: none
    std::uint16_t reserved1[3];  // 50  kept for an outer header and a translation
    std::uint64_t reserved2;     // 56
};
static_assert(sizeof(Lane) == base::kCacheLine && offsetof(Lane, policy_hop) == 48);

}  // namespace cachewire::pipeline
