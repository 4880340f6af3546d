// SPDX-License-Identifier: BSD-3-Clause
// A table that runs full: who gets a session, who loses one, and that everything comes back.
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "session/keys.h"
#include "session/table.h"
#include "support/catch.h"
#include "support/random.h"

using namespace cachewire;
using session::Found;
using session::OnFull;
using session::OutcomeTable;
using session::State;
using session::Table;
using Insert = session::Table::Insert;

namespace {

using test::kHz;

net::FlowKey key_of(std::uint32_t number, std::uint16_t tenant = 1, std::uint8_t proto = test::kUdp) {
    return test::key_v4(0x0a000000 + number, static_cast<std::uint16_t>(number >> 16 | 1), 2, 80, proto, tenant);
}

Insert add(Table& table, const net::FlowKey& key, std::uint64_t now, Found& found) {
    return table.insert(key, test::hash_of(key), now, found);
}

std::uint32_t add_established(Table& table, const net::FlowKey& key, std::uint64_t now) {
    Found found;
    REQUIRE(add(table, key, now, found) == Insert::created);
    const bool tcp = key.proto == session::kProtoTcp;
    table.touch(found.index, false, session::kTcpSyn, 60, now);
    table.touch(found.index, true, session::kTcpSyn | session::kTcpAck, 60, now);
    if (tcp) table.touch(found.index, false, session::kTcpAck, 60, now);
    REQUIRE(table.hot(found.index).state() == State::established);
    return found.index;
}

// created = active + expired + evicted + closed + killed, and the gauges agree with the entries.
void check_accounts(const Table& table, std::size_t tenants) {
    std::uint64_t active = 0;
    for (std::size_t t = 0; t < tenants; ++t) {
        const session::TenantUse& use = table.use(t);
        std::uint64_t states = 0, expendable = 0;
        for (unsigned s = 0; s < session::kStates; ++s) {
            states += use.states[s].read();
            if (session::is_expendable(static_cast<State>(s))) expendable += use.states[s].read();
        }
        CHECK(states == use.active.read());
        CHECK(expendable == use.expendable.read());
        CHECK(use.created.read() ==
              use.active.read() + use.expired.read() + use.evicted.read() + use.closed.read() + use.killed.read());
        active += use.active.read();
    }
    CHECK(active == table.stats().active);
}

}  // namespace

TEST_CASE("pressure: below the mark nothing is evicted", "[session]") {
    Table table(1000, -1, kHz, {});
    OutcomeTable outcomes;
    Found found;
    for (std::uint32_t i = 0; i < 900; ++i) REQUIRE(add(table, key_of(i), 0, found) == Insert::created);
    CHECK_FALSE(table.needs_relief());
    CHECK(table.relieve(outcomes) == 0);
    REQUIRE(add(table, key_of(900), 0, found) == Insert::created);
    CHECK(table.needs_relief());
    CHECK(table.relieve(outcomes) == 1);
    CHECK_FALSE(table.needs_relief());
    CHECK(table.stats().active == 900);
    check_accounts(table, 4);
}

TEST_CASE("pressure: relief looks at a bounded number of entries for each session that began", "[session]") {
    Table table(10'000, -1, kHz, {});
    OutcomeTable outcomes;
    Found found;
    // Established first, so that the walk has a long way to those that may go.
    for (std::uint32_t i = 0; i < 9000; ++i) add_established(table, key_of(i), 0);
    for (std::uint32_t i = 9000; i < 9010; ++i) REQUIRE(add(table, key_of(i), 0, found) == Insert::created);
    unsigned calls = 0;
    for (; table.stats().evicted == 0 && calls < 10'000; ++calls) {
        if (!table.needs_relief()) REQUIRE(add(table, key_of(20'000 + calls), 0, found) == Insert::created);
        table.relieve(outcomes);
    }
    // The first relief was for ten; 9000 entries then take 16 for each one that began.
    CHECK(calls >= (9000 - 10 * Table::kReliefEntries) / Table::kReliefEntries);
    CHECK(calls <= 9000 / Table::kReliefEntries + 2);
    CHECK(table.use(1).states[static_cast<unsigned>(State::established)].read() == 9000);
    check_accounts(table, 4);
}

TEST_CASE("pressure: the tenant that has more than its share of unconfirmed sessions loses them", "[session]") {
    Table table(1000, -1, kHz, {});
    OutcomeTable outcomes;
    Found found;
    // Tenant 1 has most of the table, all of it established, and a few new sessions. Tenant 2 floods.
    for (std::uint32_t i = 0; i < 600; ++i) add_established(table, key_of(i, 1), 0);
    for (std::uint32_t i = 600; i < 620; ++i) REQUIRE(add(table, key_of(i, 1), 0, found) == Insert::created);
    for (std::uint32_t i = 0; i < 5000; ++i) {
        if (table.needs_relief()) table.relieve(outcomes);
        const Insert result = add(table, key_of(i, 2), 0, found);
        REQUIRE((result == Insert::created || result == Insert::table_full));
    }
    CHECK(table.use(1).evicted.read() == 0);
    CHECK(table.use(1).active.read() == 620);
    CHECK(table.use(2).evicted.read() > 4000);
    CHECK(table.use(2).active.read() <= 380);
    // And tenant 1 still gets new ones, the other pays for them.
    for (std::uint32_t i = 620; i < 720; ++i) {
        if (table.needs_relief()) table.relieve(outcomes);
        REQUIRE(add(table, key_of(i, 1), 0, found) == Insert::created);
    }
    CHECK(table.use(1).evicted.read() == 0);
    check_accounts(table, 4);
}

TEST_CASE("pressure: deny_new refuses whom has more than its share, from the mark on", "[session]") {
    Table table(1000, -1, kHz, {});
    table.configure({.high_watermark_percent = 50, .on_full = OnFull::deny_new}, 1);
    Found found;
    for (std::uint32_t i = 0; i < 500; ++i) REQUIRE(add(table, key_of(i, 1), 0, found) == Insert::created);
    CHECK(add(table, key_of(500, 1), 0, found) == Insert::table_full);
    for (std::uint32_t i = 0; i < 500; ++i) {
        INFO(i);
        // Until the two are equal, then neither has less than the other.
        REQUIRE(add(table, key_of(i, 2), 0, found) == (i < 500 ? Insert::created : Insert::table_full));
    }
    CHECK(add(table, key_of(1, 3), 0, found) == Insert::table_full);  // there is nothing left
    CHECK_FALSE(table.needs_relief());
    CHECK(table.use(1).table_full.read() == 1);
    CHECK(table.use(3).table_full.read() == 1);
    CHECK(table.stats().evicted == 0);
}

TEST_CASE("pressure: with the mark at the whole capacity the table relieves itself when it is full", "[session]") {
    Table table(100, -1, kHz, {});
    table.configure({.high_watermark_percent = 100}, 1);
    OutcomeTable outcomes;
    Found found;
    for (std::uint32_t i = 0; i < 100; ++i) REQUIRE(add(table, key_of(i), 0, found) == Insert::created);
    CHECK_FALSE(table.needs_relief());
    CHECK(add(table, key_of(100), 0, found) == Insert::table_full);
    CHECK(table.relieve(outcomes) == 1);
    CHECK(add(table, key_of(100), 0, found) == Insert::created);
}

TEST_CASE("pressure: ten million spoofed tuples leave established sessions alone, and the capacity comes back",
          "[session]") {
    constexpr std::uint32_t kCapacity = 65536, kLong = 1000, kFlood = 10'000'000, kBurst = 32;
    const session::Timeouts timeouts{};
    Table table(kCapacity, -1, kHz, timeouts);
    OutcomeTable outcomes;
    std::vector<std::uint32_t> established;
    for (std::uint32_t i = 0; i < kLong; ++i)
        established.push_back(add_established(table, key_of(0x00f00000 + i, 1, session::kProtoTcp), 0));
    std::uint64_t now = 0;
    std::uint64_t refused = 0;
    for (std::uint32_t i = 0; i < kFlood; i += kBurst) {
        // Two minutes in all. Now and then a packet of the long sessions, the walk as the worker does it.
        now = std::uint64_t{i} * 120 * kHz / kFlood;
        if (table.needs_relief()) table.relieve(outcomes);
        for (std::uint32_t k = 0; k < kBurst; ++k) {
            Found found;
            // SYNs and UDP, in two tenants, most of them in one.
            const std::uint32_t n = i + k;
            const net::FlowKey key = key_of(n, n % 16 == 0 ? 2 : 1, n % 2 == 0 ? session::kProtoTcp : test::kUdp);
            const Insert result = add(table, key, now, found);
            if (result == Insert::created)
                table.touch(found.index, false, session::kTcpSyn, 60, now);
            else
                ++refused;
        }
        table.expire(now, 16, outcomes);
        if (i % (kBurst * 1000) == 0)
            for (const std::uint32_t index : established) table.touch(index, i % 64 == 0, session::kTcpAck, 1000, now);
    }
    CHECK(refused < kFlood / 1000);
    for (std::uint32_t i = 0; i < kLong; ++i) {
        const Found found = test::look_up(table, key_of(0x00f00000 + i, 1, session::kProtoTcp));
        REQUIRE(found.index == established[i]);
        REQUIRE(table.hot(found.index).state() == State::established);
    }
    CHECK(table.stats().active >= kCapacity * 9 / 10);
    check_accounts(table, 4);

    now += (timeouts.fresh + 2) * kHz;
    table.expire(now, kCapacity, outcomes);
    CHECK(table.stats().active == kLong);
    // The walk comes by within half the clock's range.
    for (const std::uint64_t end = now + (timeouts.established_tcp + 2) * kHz; now < end; now += 1000 * kHz)
        table.expire(now, kCapacity, outcomes);
    table.expire(now, kCapacity, outcomes);
    CHECK(table.stats().active == 0);
    CHECK(outcomes.size() == 0);
    check_accounts(table, 4);
    // Fully back: as many fit as at the start.
    Found found;
    for (std::uint32_t i = 0; i < kCapacity; ++i) REQUIRE(add(table, key_of(i), now, found) == Insert::created);
}

TEST_CASE("pressure: after churn of many times the table's size what is used is what lives", "[session]") {
    constexpr std::uint32_t kCapacity = 4096;
    Table table(kCapacity, -1, kHz, {});
    OutcomeTable outcomes;
    std::mt19937_64 rng = test::random_engine();
    INFO("seed " << test::seed());
    std::vector<std::uint32_t> alive;
    std::uint32_t next = 0;
    for (int round = 0; round < 50; ++round) {  // 50 x 5 x the table
        for (std::uint32_t i = 0; i < 5 * kCapacity; ++i) {
            if (alive.size() < kCapacity * 85 / 100 && rng() % 2 == 0) {
                Found found;
                REQUIRE(add(table, key_of(next++), 0, found) == Insert::created);
                alive.push_back(found.index);
            } else if (!alive.empty()) {
                const std::size_t at = rng() % alive.size();
                table.erase(alive[at], outcomes);
                alive[at] = alive.back();
                alive.pop_back();
            }
        }
        REQUIRE(table.stats().active == alive.size());
        REQUIRE(std::set<std::uint32_t>(alive.begin(), alive.end()).size() == alive.size());
        REQUIRE(table.used_end() <= kCapacity);
    }
    for (const std::uint32_t index : alive) table.erase(index, outcomes);
    Found found;
    for (std::uint32_t i = 0; i < kCapacity; ++i) REQUIRE(add(table, key_of(next++), 0, found) == Insert::created);
}

// Whoever knows the code and guesses the seed can fill two buckets, and no look-up gets longer by it: both are one
// line. Whoever does not know the seed can't aim.
TEST_CASE("pressure: tuples chosen for one seed collide there, within the look-up's bound, and not under another",
          "[session]") {
    constexpr std::uint32_t kCapacity = 1024, kChosen = 64;
    const net::HashSeed known{}, secret{0x1234567890abcdef, 0xfedcba0987654321, 0x0f1e2d3c4b5a6979};
    session::Index index(nullptr, session::Index::buckets_for(kCapacity));
    const session::Index::Place aim = index.place(net::flow_hash(key_of(0), known));
    std::vector<net::FlowKey> chosen;
    for (std::uint32_t n = 0; chosen.size() < kChosen; ++n) {
        const session::Index::Place at = index.place(net::flow_hash(key_of(n), known));
        if (std::set<std::uint32_t>{at.first, at.second} == std::set<std::uint32_t>{aim.first, aim.second})
            chosen.push_back(key_of(n));
    }
    const auto created = [&](const net::HashSeed& seed) {
        Table table(kCapacity, -1, kHz, {});
        unsigned n = 0;
        for (const net::FlowKey& key : chosen) {
            Found found;
            n += table.insert(key, net::flow_hash(key, seed), 0, found) == Insert::created ? 1 : 0;
        }
        CHECK(table.stats().bucket_full == kChosen - n);
        return n;
    };
    // All of them have the same two candidates, so none can move on.
    CHECK(created(known) == 2 * session::kBucketSlots);
    CHECK(created(secret) == kChosen);
}

TEST_CASE("pressure: what sixteen million sessions a worker need is known before it is taken", "[session]") {
    constexpr std::uint32_t kSessions = 16'000'000;
    const std::size_t bytes = Table::memory_needed(kSessions);
    // 2^22 buckets of 64 B, twice 64 B a session, a header, in whole pages of 2 MiB.
    const std::size_t exact = 64 + (std::size_t{1} << 22) * 64 + std::size_t{kSessions} * 128;
    CHECK(session::Index::buckets_for(kSessions) == 1u << 22);
    CHECK(bytes >= exact);
    CHECK(bytes < exact + (2u << 20));
    CHECK(bytes % (2u << 20) == 0);
    CHECK(Table::memory_needed(session::kMaxCapacity) > std::size_t{session::kMaxCapacity} * 128);
}
