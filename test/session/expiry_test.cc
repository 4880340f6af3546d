// SPDX-License-Identifier: BSD-3-Clause
#include <vector>

#include "session/keys.h"
#include "session/table.h"
#include "support/catch.h"

using namespace cachewire;
using session::Found;
using session::OutcomeTable;
using session::State;
using session::Table;

namespace {

using test::kHz;

std::uint32_t add(Table& table, const net::FlowKey& key, std::uint64_t now) {
    Found found;
    REQUIRE(table.insert(key, test::hash_of(key), now, found) == Table::Insert::created);
    return found.index;
}

// Lets an untouched session age in small steps of time from `begin` and says at which age the walk ended it.
std::uint64_t age_at_end(Table& table, OutcomeTable& outcomes, std::uint64_t begin, std::uint64_t step,
                         std::uint64_t limit) {
    for (std::uint64_t age = 0; age <= limit; age += step)
        if (table.expire(begin + age, 1000, outcomes) == 1) return age;
    return limit;
}

}  // namespace

TEST_CASE("expiry: a tick is between an eighth and a quarter of a second", "[session]") {
    for (const std::uint64_t hz : {std::uint64_t{1000}, std::uint64_t{1'000'000'000}, std::uint64_t{2'100'000'000},
                                   std::uint64_t{5'000'000'000}}) {
        Table table(1, -1, hz, {});
        CHECK(table.cycles_per_tick() * 8 >= hz);
        CHECK(table.cycles_per_tick() * 4 < hz);
    }
}

TEST_CASE("expiry: each state and protocol ends after its own time-out, never before it", "[session]") {
    const session::Timeouts timeouts{.fresh = 5,
                                     .established_udp = 30,
                                     .established_tcp = 300,
                                     .half_close = 120,
                                     .time_wait = 31,
                                     .closed = 6,
                                     .icmp = 10};
    struct Case {
        std::uint8_t proto;
        State state;
        std::uint32_t seconds;
    };
    const Case cases[] = {
        {test::kUdp, State::fresh, 5},
        {session::kProtoTcp, State::fresh, 5},
        {test::kUdp, State::established, 30},
        {132, State::established, 30},
        {session::kProtoTcp, State::established, 300},
        {session::kProtoIcmp, State::established, 10},
        {session::kProtoIcmp6, State::established, 10},
        {session::kProtoTcp, State::half_close, 120},
        {session::kProtoTcp, State::time_wait, 31},
        {session::kProtoTcp, State::closed, 6},
    };
    for (const Case& c : cases) {
        for (const std::uint64_t begin :
             {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128}, std::uint64_t{123456789}}) {
            INFO("proto " << unsigned{c.proto} << " state " << static_cast<int>(c.state) << " from " << begin);
            Table table(4, -1, kHz, timeouts);
            OutcomeTable outcomes;
            table.set_state(add(table, test::key_v4(1, 1, 2, 2, c.proto), begin), c.state);
            const std::uint64_t age = age_at_end(table, outcomes, begin, 50, 400 * kHz);
            CHECK(age >= c.seconds * kHz);
            CHECK(age <= c.seconds * kHz + 2 * table.cycles_per_tick() + 50);
        }
    }
}

TEST_CASE("expiry: a packet renews the session", "[session]") {
    Table table(4, -1, kHz, {});
    OutcomeTable outcomes;
    const std::uint32_t index = add(table, test::pool_key(0, false), 0);
    for (std::uint64_t now = 0; now < 100'000 * kHz; now += 4 * kHz) {
        REQUIRE(table.expire(now, 10, outcomes) == 0);
        table.touch(index, false, 0, 64, now);
    }
}

TEST_CASE("expiry: a time-out longer than the clock's range is kept, through several wraps", "[session]") {
    constexpr std::uint32_t kDay = 86400;
    const session::Timeouts timeouts{.established_tcp = kDay};
    for (const std::uint64_t begin : {std::uint64_t{0}, std::uint64_t{4'194'304 - 128}, std::uint64_t{987654321}}) {
        Table table(4, -1, kHz, timeouts);
        OutcomeTable outcomes;
        table.set_state(add(table, test::key_v4(1, 1, 2, 2, session::kProtoTcp), begin), State::established);
        for (const std::uint64_t step : {std::uint64_t{1000}, std::uint64_t{2'000'000}}) {
            INFO("from " << begin << ", walked every " << step / kHz << " s");
            table.touch(0, false, session::kTcpAck, 64, begin);
            const std::uint64_t age = age_at_end(table, outcomes, begin, step, 3 * std::uint64_t{kDay} * kHz);
            CHECK(age >= kDay * kHz);
            CHECK(age <= kDay * kHz + 2 * table.cycles_per_tick() + step);
            table.set_state(add(table, test::key_v4(1, 1, 2, 2, session::kProtoTcp), begin), State::established);
        }
    }
}

TEST_CASE("expiry: old idle time does not count after a packet, whatever the clock reads", "[session]") {
    // Idle past a quarter of the range, so that idle time is on the cold side; then a packet at every value of the
    // stamp.
    const session::Timeouts timeouts{.established_tcp = 4000};
    OutcomeTable outcomes;
    Table table(1, -1, kHz, timeouts);
    const std::uint64_t tick = table.cycles_per_tick();
    const std::uint32_t index = add(table, test::key_v4(1, 1, 2, 2, session::kProtoTcp), 0);
    table.set_state(index, State::established);
    std::uint64_t now = 0;
    for (int round = 0; round < 2000; ++round) {
        const std::uint64_t last_packet = now;
        for (int walk = 0; walk < 3; ++walk) {  // 3 x 10000 ticks of 128 ms: 3840 of 4000 seconds
            now = last_packet + static_cast<std::uint64_t>(walk + 1) * 10000 * tick;
            REQUIRE(table.expire(now, 1, outcomes) == 0);
        }
        now += static_cast<std::uint64_t>(round % 97) * tick;
        table.touch(index, false, session::kTcpAck, 64, now);
    }
}

TEST_CASE("expiry: a call looks at no more entries than it may, and the next goes on there", "[session]") {
    constexpr unsigned kSessions = 100;
    Table table(1000, -1, kHz, {});
    OutcomeTable outcomes;
    for (unsigned i = 0; i < kSessions; ++i) add(table, test::pool_key(i, false), 0);
    const std::uint64_t late = 1000 * kHz;
    unsigned visited = 0;
    CHECK(table.expire(0, 30, outcomes, [&](session::HotEntry&) { ++visited; }) == 0);
    CHECK(visited == 30);
    for (const unsigned expected : {30u, 30u, 30u, 10u, 0u}) CHECK(table.expire(late, 30, outcomes) == expected);
    CHECK(table.stats().active == 0);
    CHECK(table.stats().expired == kSessions);
    CHECK(table.expire(late, 1'000'000, outcomes) == 0);  // more than there are: once round and no further
}

TEST_CASE("expiry: after a flood and the time-outs the capacity is fully back", "[session]") {
    constexpr std::uint32_t kCapacity = 2048;
    Table table(kCapacity, -1, kHz, {});
    OutcomeTable outcomes;
    std::uint64_t now = 0;
    std::uint32_t next = 0;
    for (int wave = 0; wave < 5; ++wave) {
        for (std::uint32_t i = 0; i < kCapacity; ++i) add(table, test::pool_key(next++, false), now);
        Found found;
        const net::FlowKey extra = test::pool_key(next, false);
        REQUIRE(table.insert(extra, test::hash_of(extra), now, found) == Table::Insert::table_full);
        now += 10 * kHz;
        REQUIRE(table.expire(now, kCapacity, outcomes) == kCapacity);
        REQUIRE(table.stats().active == 0);
    }
}

TEST_CASE("expiry: a generation that the walk comes by never looks fresh again", "[session]") {
    session::HotEntry hot{};
    hot.policy_generation = 10;
    hot.route_generation = 20;
    for (std::uint32_t change = 1; change < 300'000; ++change) {
        const auto policy = static_cast<std::uint16_t>(10 + change);
        const auto route = static_cast<std::uint16_t>(20 + change);
        REQUIRE(hot.policy_generation != policy);
        REQUIRE(hot.route_generation != route);
        if (change % 30'000 == 0) session::keep_generations_stale(hot, policy, route);
    }
    // And a fresh one stays as it is.
    hot.policy_generation = hot.route_generation = 7;
    session::keep_generations_stale(hot, 7, 7);
    CHECK((hot.policy_generation == 7 && hot.route_generation == 7));
}
