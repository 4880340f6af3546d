#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What packets that don't identify their session by themselves need before the session stage can look one up: pieces of
// datagrams get the ports of their first piece, ICMP errors the session of the packet they quote. Both are rare, read
// the packet's header line once more and stand apart from the stage's straight line.
#include <cstdint>
#include <optional>

#include "net/flow_key.h"
#include "pipeline/worker_state.h"
#include "session/table.h"

struct rte_mbuf;

namespace cachewire::pipeline {

// Where a packet's headers stand.
struct HeaderPlace {
    rte_mbuf* mbuf;
    std::uint16_t l3_offset, l4_offset, l3_length;
    bool ip6;
};

enum class Piece : std::uint8_t {
    first,    // remembered for the later ones
    later,    // its first piece is known: `key` and `hash` are as the whole datagram's
    unknown,  // no first piece within the time-out: ports stay unknown
    overlap,  // begins inside the header that the first piece was judged by
};

// `key` has a fragment bit set. On first and later, `hash` becomes the flow's.
Piece follow_first_fragment(WorkerState& worker, const net::HashSeed& seed, const HeaderPlace& at, net::FlowKey& key,
                            std::uint32_t& hash) noexcept;

struct Related {
    bool malformed;        // nothing that a quote can be
    session::Found found;  // kNone: no session of this tenant; `reverse`: of the quoted packet
};

// `key` is the ICMP error's own. It is related only when it goes to the quoted packet's source (RFC 5508 4.2 has the
// same check).
Related find_quoted_session(WorkerState& worker, const net::HashSeed& seed, const HeaderPlace& at,
                            const net::FlowKey& key) noexcept;

// The hash of the flow that an ICMP error quotes, for its owner; nullopt: it names none.
std::optional<std::uint32_t> quoted_hash(const net::HashSeed& seed, const HeaderPlace& at,
                                         const net::FlowKey& key) noexcept;

// A later piece repeats its first piece's flags, for the rules. To the session they have been said once.
inline std::uint8_t own_tcp_flags(const net::FlowKey& key) noexcept {
    return (key.match_flags & net::kLaterFragment) != 0 ? 0 : key.tcp_flags;
}

}  // namespace cachewire::pipeline
