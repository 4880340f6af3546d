// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/mss_clamp.h"

#include <algorithm>
#include <cstring>

#include <rte_mbuf.h>

#include "net/checksum.h"
#include "net/headers.h"
#include "pipeline/pull_up.h"

namespace cachewire::pipeline {

namespace {

constexpr std::uint8_t kSyn = 2;
constexpr std::uint8_t kEnd = 0, kNop = 1, kMss = 2;

void clamp_lane(const Snapshot& snapshot, const Lane& lane) noexcept {
    const std::uint16_t out = snapshot.next_hops[lane.next_hop].interface;
    if (lane.in_interface >= snapshot.interfaces.size() || out >= snapshot.interfaces.size()) return;
    const std::uint16_t limit =
        mss_limit(snapshot.interfaces[lane.in_interface], snapshot.interfaces[out], (lane.flags & kLaneIpv6) != 0);
    if (limit == 0) return;
    // The fixed header is contiguous since the parser has read it.
    const unsigned bytes = (rte_pktmbuf_mtod_offset(lane.mbuf, const std::uint8_t*, lane.l4_offset)[12] >> 4) * 4u;
    if (!pull_up(lane.mbuf, lane.l4_offset + bytes)) return;
    clamp_mss(rte_pktmbuf_mtod_offset(lane.mbuf, std::uint8_t*, lane.l4_offset), bytes, limit);
}

}  // namespace

std::uint16_t mss_limit(const Interface& in, const Interface& out, bool ip6) noexcept {
    if (in.mss_clamp == kNoMssClamp && out.mss_clamp == kNoMssClamp) return 0;
    const unsigned headers = (ip6 ? net::kIp6Bytes : net::kIp4Bytes) + net::kTcpBytes;
    unsigned limit = 0xffff;
    for (const Interface* interface : {&in, &out}) {
        if (interface->mss_clamp == kMssClampAuto) limit = std::min(limit, std::min(in.mtu, out.mtu) - headers);
        if (interface->mss_clamp != kMssClampAuto && interface->mss_clamp != kNoMssClamp)
            limit = std::min<unsigned>(limit, interface->mss_clamp);
    }
    return static_cast<std::uint16_t>(limit);
}

bool clamp_mss(std::uint8_t* tcp, unsigned bytes, std::uint16_t limit) noexcept {
    for (unsigned at = net::kTcpBytes; at + 1 < bytes && tcp[at] != kEnd;) {
        if (tcp[at] == kNop) {
            ++at;
            continue;
        }
        const unsigned size = tcp[at + 1];
        if (size < 2 || at + size > bytes) return false;
        if (tcp[at] != kMss || size != 4) {
            at += size;
            continue;
        }
        std::uint16_t before = net::load16(tcp + at + 2), after = net::be16(limit);
        if (net::be16(before) <= limit) return false;
        std::memcpy(tcp + at + 2, &after, 2);
        // At an odd place its bytes fall into two words of the sum, which is the same as swapped in one (RFC 1071 2B).
        if ((at & 1) != 0) {
            before = net::be16(before);
            after = net::be16(after);
        }
        const std::uint16_t sum = net::update_checksum(net::load16(tcp + 16), before, after);
        std::memcpy(tcp + 16, &sum, 2);
        return true;
    }
    return false;
}

void clamp_mss(const Snapshot& snapshot, Burst& burst) noexcept {
    for (const auto i : burst.live()) {
        const net::FlowKey& key = burst.key(i);
        const bool first = (key.match_flags & (net::kL4Known | net::kLaterFragment)) == net::kL4Known;
        if (key.proto == net::kProtoTcp && (key.tcp_flags & kSyn) != 0 && first) clamp_lane(snapshot, burst.lane(i));
    }
}

}  // namespace cachewire::pipeline
