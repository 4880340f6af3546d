// SPDX-License-Identifier: BSD-3-Clause
// The life of a session, packet by packet: tables of (direction, TCP flags) and the state after each.
#include <string>
#include <vector>

#include "session/keys.h"
#include "session/table.h"
#include "support/catch.h"

using namespace cachewire;
using session::State;
using session::Table;

namespace {

constexpr std::uint8_t F = session::kTcpFin, S = session::kTcpSyn, R = session::kTcpRst, A = session::kTcpAck;
constexpr bool kForward = false, kReverse = true;

struct Packet {
    bool reverse;
    std::uint8_t flags;
    State after;
};
struct Life {
    std::string what;
    std::vector<Packet> packets;
};

void live(std::uint8_t proto, const Life& life) {
    Table table(4, -1, 1000, {});
    const net::FlowKey key = test::key_v4(1, 1, 2, 2, proto);
    session::Found found;
    REQUIRE(table.insert(key, test::hash_of(key), 0, found) == Table::Insert::created);
    for (std::size_t i = 0; i < life.packets.size(); ++i) {
        INFO(life.what << ", packet " << i);
        const Packet& packet = life.packets[i];
        table.touch(found.index, packet.reverse, packet.flags, 60, 0);
        CHECK(static_cast<int>(table.hot(found.index).state()) == static_cast<int>(packet.after));
    }
}

}  // namespace

TEST_CASE("life: TCP", "[session]") {
    using enum State;
    const std::vector<Packet> handshake = {{kForward, S, fresh}, {kReverse, S | A, fresh}, {kForward, A, established}};
    const auto after_handshake = [&](std::vector<Packet> more) {
        std::vector<Packet> all = handshake;
        all.insert(all.end(), more.begin(), more.end());
        return all;
    };
    const Life lives[] = {
        {"a SYN that is never answered", {{kForward, S, fresh}, {kForward, S, fresh}}},
        {"a SYN that is answered and never confirmed",
         {{kForward, S, fresh}, {kReverse, S | A, fresh}, {kReverse, S | A, fresh}}},
        {"one direction only", {{kForward, S, fresh}, {kForward, A, fresh}, {kForward, A, fresh}}},
        {"data in both directions", after_handshake({{kReverse, A, established}, {kForward, A, established}})},
        {"a SYN in the middle", after_handshake({{kForward, S, established}, {kReverse, S | A, established}})},
        {"closed from the client's side", after_handshake({{kForward, F | A, half_close},
                                                           {kReverse, A, half_close},
                                                           {kReverse, F | A, time_wait},
                                                           {kForward, A, time_wait}})},
        {"closed from the server's side",
         after_handshake({{kReverse, F | A, half_close}, {kForward, F | A, time_wait}})},
        {"a FIN sent twice is one FIN",
         after_handshake({{kForward, F | A, half_close}, {kForward, F | A, half_close}})},
        {"a late FIN",
         after_handshake({{kForward, F, half_close}, {kReverse, F, time_wait}, {kReverse, F, time_wait}})},
        {"reset", after_handshake({{kReverse, R, closed}, {kForward, A, closed}, {kForward, F, closed}})},
        {"refused", {{kForward, S, fresh}, {kReverse, R | A, closed}}},
        {"RFC 1337: a RST does not end TIME-WAIT",
         after_handshake({{kForward, F, half_close}, {kReverse, F, time_wait}, {kReverse, R, time_wait}})},
        {"reset while half closed", after_handshake({{kForward, F, half_close}, {kReverse, R, closed}})},
    };
    for (const Life& life : lives) live(session::kProtoTcp, life);
}

TEST_CASE("life: UDP and ICMP are established by their reply, whatever their bytes say", "[session]") {
    using enum State;
    for (const std::uint8_t proto : {test::kUdp, session::kProtoIcmp, session::kProtoIcmp6})
        live(
            proto,
            {"request and reply",
             {{kForward, R | F, fresh}, {kForward, 0, fresh}, {kReverse, R, established}, {kForward, F, established}}});
}

TEST_CASE("life: only a SYN alone begins a connection, and only over one that has ended", "[session]") {
    for (unsigned flags = 0; flags < 256; ++flags) {
        const bool alone = (flags & S) != 0 && (flags & (A | R | F)) == 0;
        CHECK(session::begins_connection(static_cast<std::uint8_t>(flags)) == alone);
    }
    session::HotEntry entry{};
    entry.proto = session::kProtoTcp;
    for (unsigned state = 0; state < session::kStates; ++state) {
        entry.set_state(static_cast<State>(state));
        const bool over = entry.state() == State::time_wait || entry.state() == State::closed;
        CHECK(session::can_restart(entry, S) == over);
        CHECK_FALSE(session::can_restart(entry, S | A));
    }
    entry.proto = test::kUdp;
    CHECK_FALSE(session::can_restart(entry, S));
}
