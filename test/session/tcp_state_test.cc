// SPDX-License-Identifier: BSD-3-Clause
// The life of a session, packet by packet: tables of (direction, TCP flags) and the state after each.
#include <string>
#include <vector>

#include "session/keys.h"
#include "session/table.h"
#include "support/catch.h"

using namespace cachewire;
using session::Begin;
using session::State;
using session::Table;

namespace {

using namespace test::tcp_flags;
constexpr bool kForward = false, kReverse = true;
using test::kHz;

struct Packet {
    bool reverse;
    std::uint8_t flags;
    State after;
};
using Packets = std::vector<Packet>;
struct Life {
    std::string what;
    Packets packets;
};

void live(std::uint8_t proto, const Life& life) {
    Table table(4, -1, kHz, {});
    const net::FlowKey key = test::key_v4(1, 1, 2, 2, proto);
    session::Found found;
    REQUIRE(table.insert(key, test::hash_of(key), 0, found) == Table::Insert::created);
    for (std::size_t i = 0; i < life.packets.size(); ++i) {
        INFO(life.what << ", packet " << i);
        const Packet& packet = life.packets[i];
        table.touch(found.index, packet.reverse, packet.flags, 60, 0);
        CHECK(static_cast<int>(table.hot(found.index).state()) == static_cast<int>(packet.after));
        // The gauges follow.
        for (unsigned state = 0; state < session::kStates; ++state)
            CHECK(table.use(1).states[state].read() == (static_cast<State>(state) == packet.after ? 1 : 0));
        CHECK(table.use(1).expendable.read() == (session::is_expendable(packet.after) ? 1 : 0));
    }
}

Packets operator+(Packets first, const Packets& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

const Packets kHandshake = {
    {kForward, S, State::fresh}, {kReverse, S | A, State::fresh}, {kForward, A, State::established}};
const Packets kClosed = {{kForward, F | A, State::half_close}, {kReverse, F | A, State::time_wait}};

}  // namespace

TEST_CASE("life: TCP", "[session]") {
    using enum State;
    const Life lives[] = {
        {"a SYN that is never answered", {{kForward, S, fresh}, {kForward, S, fresh}}},
        {"a SYN that is answered and never confirmed",
         {{kForward, S, fresh}, {kReverse, S | A, fresh}, {kReverse, S | A, fresh}}},
        {"data in both directions", kHandshake + Packets{{kReverse, A, established}, {kForward, A, established}}},
        {"a SYN in the middle changes nothing: the end it was sent to answers it (RFC 5961 4.2)",
         kHandshake + Packets{{kForward, S, established}, {kReverse, S | A, established}, {kReverse, S, established}}},
        {"refused", {{kForward, S, fresh}, {kReverse, R | A, closed}}},
        {"simultaneous open",
         {{kForward, S, fresh},
          {kReverse, S, fresh},
          {kForward, S | A, fresh},
          {kReverse, S | A, fresh},
          {kForward, A, established}}},
        {"the answer overtaken by the confirmation",
         {{kForward, S, fresh}, {kForward, A, one_sided}, {kReverse, S | A, one_sided}, {kForward, A, established}}},
        {"the confirmation is a FIN",
         {{kForward, S, fresh}, {kReverse, S | A, fresh}, {kForward, F | A, half_close}, {kReverse, F | A, time_wait}}},
    };
    for (const Life& life : lives) live(session::kProtoTcp, life);
}

TEST_CASE("life: TCP, one direction only", "[session]") {
    using enum State;
    const Life lives[] = {
        {"the client's, as behind a server that answers directly",
         {{kForward, S, fresh}, {kForward, A, one_sided}, {kForward, A, one_sided}}},
        {"with its end: the other side's FIN is never seen",
         {{kForward, S, fresh}, {kForward, A, one_sided}, {kForward, F | A, one_sided}}},
        {"reset", {{kForward, S, fresh}, {kForward, A, one_sided}, {kForward, R, closed}, {kForward, A, closed}}},
        {"the server's, picked up at its SYN and ACK", {{kForward, S | A, fresh}, {kForward, A, one_sided}}},
        {"picked up in the middle", {{kForward, A, one_sided}, {kForward, A, one_sided}}},
        {"picked up in the middle, both directions after all",
         {{kForward, A, one_sided}, {kReverse, A, one_sided}, {kForward, A, established}}},
        {"SYN and FIN forged: not confirmed by that",
         {{kForward, S, fresh}, {kForward, F, fresh}, {kForward, F | A, one_sided}}},
    };
    for (const Life& life : lives) live(session::kProtoTcp, life);
}

TEST_CASE("life: FIN", "[session]") {
    using enum State;
    const Life lives[] = {
        {"from the client's side", kHandshake + Packets{{kForward, F | A, half_close},
                                                        {kReverse, A, half_close},
                                                        {kReverse, F | A, time_wait},
                                                        {kForward, A, time_wait}}},
        {"from the server's side", kHandshake + Packets{{kReverse, F | A, half_close}, {kForward, F | A, time_wait}}},
        {"sent twice is one FIN", kHandshake + Packets{{kForward, F | A, half_close}, {kForward, F | A, half_close}}},
        {"late", kHandshake + kClosed + Packets{{kReverse, F | A, time_wait}, {kForward, F | A, time_wait}}},
        {"half closed is a state to stay in",
         kHandshake + Packets{{kForward, F | A, half_close}, {kReverse, A, half_close}, {kForward, A, half_close}}},
        {"forged, of both sides: the connection goes on",
         kHandshake + kClosed + Packets{{kForward, A, time_wait}, {kReverse, A, time_wait}}},
    };
    for (const Life& life : lives) live(session::kProtoTcp, life);
}

TEST_CASE("life: RST puts a connection on probation", "[session]") {
    using enum State;
    const Life lives[] = {
        {"true: its sender is silent, whatever the other side still sends",
         kHandshake + Packets{{kReverse, R, reset_reverse},
                              {kForward, A, reset_reverse},
                              {kForward, F | A, reset_reverse},
                              {kReverse, R, reset_reverse}}},
        {"forged: its sender goes on", kHandshake + Packets{{kReverse, R, reset_reverse}, {kReverse, A, established}}},
        {"forged, of the client",
         kHandshake +
             Packets{{kForward, R | A, reset_forward}, {kReverse, A, reset_forward}, {kForward, A, established}}},
        {"forged, twice", kHandshake + Packets{{kForward, R, reset_forward},
                                               {kForward, A, established},
                                               {kForward, R, reset_forward},
                                               {kForward, A, established}}},
        {"forged, of a half closed one",
         kHandshake + Packets{{kForward, F | A, half_close}, {kReverse, R, reset_reverse}, {kReverse, A, half_close}}},
        {"a SYN is no sign that it was forged",
         kHandshake + Packets{{kReverse, R, reset_reverse}, {kReverse, S | A, reset_reverse}}},
        {"RFC 1337: TIME-WAIT does not end by it",
         kHandshake + kClosed + Packets{{kReverse, R, time_wait}, {kForward, R, time_wait}}},
        {"of one that was never confirmed ends it",
         {{kForward, S, fresh}, {kReverse, S | A, fresh}, {kForward, R, closed}, {kForward, A, closed}}},
    };
    for (const Life& life : lives) live(session::kProtoTcp, life);
}

// A random sequence number would make no difference: nothing here looks at it. The end host does.
TEST_CASE("life: a blind RST does not cut the data path, a true one shortens the time-out", "[session]") {
    const auto established = [](Table& table) {
        const net::FlowKey key = test::key_v4(1, 1, 2, 2, session::kProtoTcp);
        session::Found found;
        REQUIRE(table.insert(key, test::hash_of(key), 0, found) == Table::Insert::created);
        for (const Packet& p : kHandshake) table.touch(found.index, p.reverse, p.flags, 60, 0);
        return found.index;
    };
    session::OutcomeTable outcomes;
    const session::Timeouts timeouts{.established_tcp = 600, .closed = 5};
    SECTION("blind; more data; then idle for longer than any transient time-out") {
        Table table(4, -1, kHz, timeouts);
        const std::uint32_t index = established(table);
        table.touch(index, kForward, R, 60, 1 * kHz);
        CHECK(table.expire(3 * kHz, 10, outcomes) == 0);
        table.touch(index, kForward, A, 1500, 4 * kHz);
        CHECK(table.expire(500 * kHz, 10, outcomes) == 0);
        table.touch(index, kReverse, A, 1500, 500 * kHz);
        CHECK(table.hot(index).state() == State::established);
        CHECK(table.expire(1200 * kHz, 10, outcomes) == 1);
        CHECK(table.use(1).expired.read() == 1);
    }
    SECTION("true") {
        Table table(4, -1, kHz, timeouts);
        table.touch(established(table), kReverse, R | A, 60, 1 * kHz);
        CHECK(table.expire(5 * kHz, 10, outcomes) == 0);
        CHECK(table.expire(7 * kHz, 10, outcomes) == 1);
        CHECK(table.use(1).closed.read() == 1);
    }
}

TEST_CASE("life: UDP and ICMP are established by their reply, whatever their bytes say", "[session]") {
    using enum State;
    for (const std::uint8_t proto : {test::kUdp, session::kProtoIcmp, session::kProtoIcmp6, std::uint8_t{132}})
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
        // On probation: from the side that began, so that forged packets can't turn the session round.
        const bool reset = entry.state() == State::reset_forward || entry.state() == State::reset_reverse;
        CHECK(session::can_restart(entry, kForward, S) == (over || reset));
        CHECK(session::can_restart(entry, kReverse, S) == over);
        CHECK_FALSE(session::can_restart(entry, kForward, S | A));
        CHECK_FALSE(session::can_restart(entry, kForward, F | A));
    }
    entry.proto = test::kUdp;
    CHECK_FALSE(session::can_restart(entry, kForward, S));
}

TEST_CASE("life: what may begin without a session", "[session]") {
    struct Case {
        std::string what;
        std::uint8_t proto, flags;
        Begin strict, midstream;
    };
    constexpr std::uint8_t kTcp = session::kProtoTcp;
    const Case cases[] = {
        {"SYN", kTcp, S, Begin::session, Begin::session},
        {"SYN with ECN's bits", kTcp, S | 0xc0, Begin::session, Begin::session},
        {"data", kTcp, A, Begin::nothing, Begin::session},
        {"SYN and ACK, where only replies are seen", kTcp, S | A, Begin::nothing, Begin::session},
        {"a late FIN", kTcp, F | A, Begin::nothing, Begin::packet},
        {"a late RST", kTcp, R | A, Begin::nothing, Begin::packet},
        {"a RST without ACK", kTcp, R, Begin::nothing, Begin::nothing},
        {"SYN and FIN", kTcp, S | F, Begin::nothing, Begin::nothing},
        {"no flag", kTcp, 0, Begin::nothing, Begin::nothing},
        {"UDP", test::kUdp, 0, Begin::session, Begin::session},
        {"ICMP", session::kProtoIcmp, 0, Begin::session, Begin::session},
    };
    for (const Case& c : cases) {
        INFO(c.what);
        CHECK(session::may_begin(c.proto, c.flags, false) == c.strict);
        CHECK(session::may_begin(c.proto, c.flags, true) == c.midstream);
    }
}
