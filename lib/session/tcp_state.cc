// SPDX-License-Identifier: BSD-3-Clause
#include "session/tcp_state.h"

namespace cachewire::session {

namespace {

constexpr std::uint8_t kBothFins = kFinForward | kFinReverse;

State after_confirmation(const HotEntry& entry) noexcept {
    return (entry.state_and_flags & kBothFins) != 0 ? State::half_close : State::established;
}

// A side that has reset its connection sends nothing more in it. So when that side goes on, the RST was not its own.
bool was_forged(State state, bool reverse, std::uint8_t tcp_flags) noexcept {
    return reverse == (state == State::reset_reverse) &&
           (tcp_flags & (kTcpSyn | kTcpAck | kTcpRst | kTcpFin)) == kTcpAck;
}

}  // namespace

void advance_tcp(HotEntry& entry, bool reverse, std::uint8_t tcp_flags) noexcept {
    if (reverse) entry.state_and_flags |= kReplySeen;
    const State state = entry.state();
    // RFC 1337: a RST must not end TIME-WAIT early. Only a new connection leaves these two.
    if (state == State::closed || state == State::time_wait) return;
    if (state == State::reset_forward || state == State::reset_reverse) {
        if (was_forged(state, reverse, tcp_flags)) entry.set_state(after_confirmation(entry));
        return;
    }
    const bool begun = state == State::established || state == State::half_close;
    if ((tcp_flags & kTcpRst) != 0)
        return entry.set_state(!begun ? State::closed : reverse ? State::reset_reverse : State::reset_forward);
    if ((tcp_flags & kTcpFin) != 0) entry.state_and_flags |= reverse ? kFinReverse : kFinForward;
    if ((entry.state_and_flags & kBothFins) == kBothFins) return entry.set_state(State::time_wait);
    const bool acknowledges = !reverse && (tcp_flags & (kTcpSyn | kTcpAck)) == kTcpAck;
    const bool replied = (entry.state_and_flags & kReplySeen) != 0;
    if (begun || (acknowledges && replied)) {
        entry.set_state(after_confirmation(entry));
    } else if (acknowledges) {
        entry.set_state(State::one_sided);
    }
}

}  // namespace cachewire::session
