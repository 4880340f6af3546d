#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A session in two parts. The hot entry is the one line that every packet of the session reads and writes; the cold
// entry is touched at creation, at state changes, when counts are flushed, by the expiry walk and by requests, never
// per packet. Written by the owning worker alone. Both hold numbers and no pointers, so that their mapping may stand
// anywhere.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE4_1__)
#include <smmintrin.h>
#endif

#include "base/cache_line.h"
#include "net/flow_key.h"

namespace cachewire::session {

// fresh: nobody has confirmed it. one_sided: TCP, its first side goes on and no reply has been seen. reset_*: closed on
// probation, by that direction's RST, which may be forged.
enum class State : std::uint8_t {
    free,
    fresh,
    established,
    half_close,
    time_wait,
    closed,
    one_sided,
    reset_forward,
    reset_reverse
};
inline constexpr std::size_t kStates = 9;
inline constexpr std::uint32_t kNone = 0xffffffff;      // no entry
inline constexpr std::uint32_t kSameRule = 0xfffffffe;  // ColdEntry::reverse_rule: replies go by the session's rule

// Those that may go when the table runs full: not confirmed yet, or over.
inline constexpr bool is_expendable(State state) noexcept {
    return state == State::fresh || state == State::one_sided || state == State::closed || state == State::time_wait;
}
// Those whose end counts as closed and not as expired.
inline constexpr bool is_over(State state) noexcept {
    return state == State::closed || state == State::time_wait || state == State::reset_forward ||
           state == State::reset_reverse;
}

// HotEntry::state_and_flags: low four bits State, then flags.
inline constexpr std::uint8_t kStateMask = 0x0f;
inline constexpr std::uint8_t kCompanion = 0x10;   // points to the forward entry, which alone holds state
inline constexpr std::uint8_t kFinForward = 0x20;  // TCP: the forward direction has sent its FIN
inline constexpr std::uint8_t kFinReverse = 0x40;
inline constexpr std::uint8_t kReplySeen = 0x80;  // the reverse direction has sent something

// HotEntry::last_seen, lowest bit: the expiry walk wrote it, not a packet.
inline constexpr std::uint16_t kNoPacketSince = 1;

// Why a field is hot: every packet of the session needs it, to find the session, to be forwarded, or to be counted.
struct alignas(base::kCacheLine) HotEntry {
    net::Address src;                 // 0   look-up compares the whole key; it stands in forward direction
    net::Address dst;                 // 16
    std::uint16_t src_port_be;        // 32
    std::uint16_t dst_port_be;        // 34
    std::uint16_t tenant;             // 36
    std::uint8_t proto;               // 38
    std::uint8_t state_and_flags;     // 39  read by every packet, written at state changes
    std::uint16_t outcome;            // 40  the memoised verdict's index; kNoOutcome: none
    std::uint16_t next_hop[2];        // 42  forward, reverse; 0: not known; see kOldNextHop
    std::uint16_t policy_generation;  // 46  compared with the tenant's by every packet, a difference means stale
    std::uint16_t route_generation;   // 48  compared with the VRF's by every packet; of both next hops
    std::uint16_t last_seen;          // 50  coarse clock, written by every packet
    std::uint16_t packets[2];         // 52  deltas, written by every packet, flushed to the cold entry at half range
    std::uint32_t bytes[2];           // 56  deltas, the same; bytes[0] links the free list while the state is free;
                                      //     bytes[1] of a companion is the forward entry's number

    [[nodiscard]] bool is_companion() const noexcept { return (state_and_flags & kCompanion) != 0; }
    [[nodiscard]] State state() const noexcept { return static_cast<State>(state_and_flags & kStateMask); }
    void set_state(State state) noexcept {
        state_and_flags = static_cast<std::uint8_t>((state_and_flags & ~kStateMask) | static_cast<std::uint8_t>(state));
    }
};
static_assert(sizeof(HotEntry) == base::kCacheLine);
static_assert(offsetof(HotEntry, src_port_be) == offsetof(net::FlowKey, src_port_be));
static_assert(offsetof(HotEntry, proto) == offsetof(net::FlowKey, proto));
static_assert(offsetof(HotEntry, state_and_flags) == 39 && offsetof(HotEntry, bytes) == 56);

// Why a field is cold: no packet that hits a fresh memo needs it.
struct alignas(base::kCacheLine) ColdEntry {
    // First-packet fields (FlowKey's last 8 bytes): a verdict is a function of the key and these, and is derived only
    // for new and stale sessions.
    std::uint16_t in_interface_be;                                         // 0
    std::uint8_t tcp_flags, dscp, icmp_type, icmp_code, match_flags, pcp;  // 2
    std::uint32_t rule;           // 8   number of the rule that the verdict came from (rule_counters.h), or kNone
    std::uint32_t hash;           // 12  to find the buckets again when the session ends
    std::uint32_t created_ticks;  // 16  for requests; a clock of 32 bits comes round after 17 years at least
    std::uint32_t reverse_rule;   // 20  the same as `rule` for the replies' own verdict, or kSameRule: they have none
    std::uint64_t packets[2];     // 24  totals, without the hot entry's deltas
    std::uint64_t bytes[2];       // 40
    std::uint32_t idle_ticks;     // 56  the walk's: idle time before last_seen, valid with kNoPacketSince
    std::uint32_t companion;      // 60  the session's companion, or kNone; read when it ends and by requests
};
static_assert(sizeof(ColdEntry) == base::kCacheLine);
static_assert(sizeof(net::FlowKey) - net::kFlowIdentityBytes == offsetof(ColdEntry, rule));

// The key of the session's first packet, first-packet fields included: what its verdict is a function of. Revalidation
// and shadow checks classify this, never the packet at hand.
inline net::FlowKey forward_key(const HotEntry& hot, const ColdEntry& cold) noexcept {
    net::FlowKey key;
    key.src = hot.src;
    key.dst = hot.dst;
    key.src_port_be = hot.src_port_be;
    key.dst_port_be = hot.dst_port_be;
    key.tenant = hot.tenant;
    key.proto = hot.proto;
    key.in_interface_be = cold.in_interface_be;
    key.tcp_flags = cold.tcp_flags;
    key.dscp = cold.dscp;
    key.icmp_type = cold.icmp_type;
    key.icmp_code = cold.icmp_code;
    key.match_flags = cold.match_flags;
    key.pcp = cold.pcp;
    return key;
}

// HotEntry::next_hop, highest bit: of an older route generation. It is looked up anew, and only says which member of an
// ECMP group the session has had, so that it can keep it.
inline constexpr std::uint16_t kOldNextHop = 0x8000;

// Keeps the direction's next hop under the VRF's generation. One generation covers both directions: when it moves on,
// the other direction's next hop is marked as old, or it would look fresh too.
inline void remember_next_hop(HotEntry& hot, bool reverse, std::uint16_t next_hop,
                              std::uint16_t route_generation) noexcept {
    if (hot.route_generation != route_generation)
        for (std::uint16_t& old : hot.next_hop) old |= old == 0 ? std::uint16_t{0} : kOldNextHop;
    hot.next_hop[reverse ? 1 : 0] = next_hop;
    hot.route_generation = route_generation;
}

// Generations are compared for equality on 16 bits, so one that is never renewed would look fresh again after 65536
// changes. The expiry walk calls this: what is more than a quarter of the range behind is moved up to there, and stays
// stale.
inline constexpr std::uint16_t kGenerationRange = 0x4000;
inline void keep_generations_stale(HotEntry& hot, std::uint16_t policy_now, std::uint16_t route_now) noexcept {
    constexpr std::uint16_t kQuarter = kGenerationRange;
    const auto age = [](std::uint16_t now, std::uint16_t then) { return static_cast<std::uint16_t>(now - then); };
    if (age(policy_now, hot.policy_generation) > kQuarter)
        hot.policy_generation = static_cast<std::uint16_t>(policy_now - kQuarter);
    if (age(route_now, hot.route_generation) > kQuarter)
        hot.route_generation = static_cast<std::uint16_t>(route_now - kQuarter);
}

// One instruction from SSE4.1 on.
template <class Words>
inline bool is_zero(const Words& v) noexcept {
#if defined(__SSE4_1__)
    return _mm_testz_si128(reinterpret_cast<const __m128i&>(v), reinterpret_cast<const __m128i&>(v)) != 0;
#else
    return (v[0] | v[1]) == 0;
#endif
}

// Whether a packet's key is the session's, and in which direction; `reverse` means nothing without `any`. Which one it
// is can't be predicted, so there is no branch for it: a packet that does not come from the session's source can only
// be one of the other direction, and the remaining words are compared with those that stand there. A packet whose two
// ends are the same counts as forward.
struct Match {
    bool any, reverse;
};
inline Match match_key(const HotEntry& hot, const net::FlowKey& key) noexcept {
    using Words = std::uint64_t __attribute__((vector_size(16)));  // an address: SSE2 or NEON, whatever there is
    const auto load = [](const void* p, std::size_t offset, auto& value) {
        std::memcpy(&value, static_cast<const std::byte*>(p) + offset, sizeof value);
    };
    constexpr unsigned kState = 8;  // the topmost bits of `h` are no identity; `k` has ports, tenant, protocol
    Words src, dst, near, far;
    std::uint64_t k, h;
    load(&key, 0, src), load(&key, 16, dst), load(&key, 32, k);
    load(&hot, 0, near), load(&hot, 32, h);
    const bool reverse = !is_zero(src ^ near) || static_cast<std::uint16_t>(k ^ h) != 0;
    const std::size_t source = reverse ? 16 : 0;
    load(&hot, source, near), load(&hot, 16 - source, far);
    const auto ports = static_cast<std::uint32_t>(k);
    const std::uint32_t turned = reverse ? ports << 16 | ports >> 16 : ports;
    const std::uint64_t rest = ((k & 0xffffffff00000000) | turned) ^ h;
    return {is_zero((src ^ near) | (dst ^ far)) && rest << kState == 0, reverse};
}
static_assert(std::endian::native == std::endian::little);  // kState and the port swap

}  // namespace cachewire::session
