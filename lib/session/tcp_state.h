#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The life of a TCP connection as its flags tell it. Sequence numbers are not followed, so any packet may be forged: no
// single packet cuts a connection that goes on, it only shortens how long the session may be idle. docs/session.md has
// the whole table.
#include <cstdint>

#include "session/entry.h"

namespace cachewire::session {

inline constexpr std::uint8_t kProtoIcmp = 1, kProtoTcp = 6, kProtoIcmp6 = 58;
inline constexpr std::uint8_t kTcpFin = 0x01, kTcpSyn = 0x02, kTcpRst = 0x04, kTcpAck = 0x10;

// The first segment of a connection: SYN and none of ACK, RST, FIN.
inline bool begins_connection(std::uint8_t tcp_flags) noexcept {
    return (tcp_flags & (kTcpSyn | kTcpAck | kTcpRst | kTcpFin)) == kTcpSyn;
}

// What a packet without a session may do where state rules hold.
enum class Begin : std::uint8_t {
    session,  // begins one
    packet,   // passes, but is the end of something and begins nothing
    nothing
};
inline Begin may_begin(std::uint8_t proto, std::uint8_t tcp_flags, bool midstream) noexcept {
    if (proto != kProtoTcp || begins_connection(tcp_flags)) return Begin::session;
    if (!midstream || (tcp_flags & kTcpAck) == 0) return Begin::nothing;
    return (tcp_flags & (kTcpFin | kTcpRst)) != 0 ? Begin::packet : Begin::session;
}

// A packet that begins a connection found one that is over: its tuple is free to be used again (RFC 9293 3.6.1). After
// a RST that may be forged only the side that began may begin again, or two forged packets would turn a session round.
inline bool can_restart(const HotEntry& entry, bool reverse, std::uint8_t tcp_flags) noexcept {
    if (entry.proto != kProtoTcp || !begins_connection(tcp_flags)) return false;
    const State state = entry.state();
    if (state == State::reset_forward || state == State::reset_reverse) return !reverse;
    return state == State::time_wait || state == State::closed;
}

// Moves the state on. Not for State::free.
void advance_tcp(HotEntry& entry, bool reverse, std::uint8_t tcp_flags) noexcept;

}  // namespace cachewire::session
