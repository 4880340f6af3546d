// SPDX-License-Identifier: BSD-3-Clause
#include "session/table.h"

#include <bit>
#include <string>
#include <vector>

#include "base/error.h"
#include "session/keys.h"
#include "support/catch.h"

using namespace cachewire;
using session::Found;
using session::Outcome;
using session::OutcomeTable;
using session::State;
using session::Table;
using Insert = session::Table::Insert;

namespace {

using test::kHz;

std::uint32_t add(Table& table, const net::FlowKey& key, std::uint64_t now = 0) {
    Found found;
    REQUIRE(table.insert(key, test::hash_of(key), now, found) == Insert::created);
    return found.index;
}

}  // namespace

TEST_CASE("table: both directions find one session, for both families", "[session]") {
    Table table(100, -1, kHz, {});
    for (const std::uint32_t number : {0u, 1u, 2u, 3u}) {  // v4 and v6, UDP, TCP, ICMP
        const net::FlowKey key = test::pool_key(number, false);
        const std::uint32_t index = add(table, key);
        const Found forward = test::look_up(table, key);
        CHECK(forward.index == index);
        CHECK_FALSE(forward.reverse);
        const Found reply = test::look_up(table, test::reversed(key));
        CHECK(reply.index == index);
        CHECK(reply.reverse);
    }
}

TEST_CASE("table: every byte of the identity counts, and no other", "[session]") {
    Table table(100, -1, kHz, {});
    const net::FlowKey key = test::pool_key(1, false);
    const std::uint32_t hash = test::hash_of(key);
    const std::uint32_t index = add(table, key);
    for (std::size_t byte = 0; byte < sizeof key; ++byte) {
        net::FlowKey other = key;
        reinterpret_cast<std::uint8_t*>(&other)[byte] ^= 0x10;
        // The hash stays: tags match, only the key can tell.
        INFO("byte " << byte);
        CHECK(test::look_up(table, other, hash).index == (byte < 39 ? session::kNone : index));
        CHECK(test::look_up(table, test::reversed(other), hash).index == (byte < 39 ? session::kNone : index));
    }
    // Ports swapped without the addresses, and the reverse, are other flows.
    net::FlowKey half = key;
    std::swap(half.src_port_be, half.dst_port_be);
    CHECK(test::look_up(table, half, hash).index == session::kNone);
    CHECK(test::look_up(table, test::reversed(half), hash).index == session::kNone);
}

TEST_CASE("table: a packet between two equal ends is in forward direction", "[session]") {
    Table table(10, -1, kHz, {});
    const net::FlowKey key = test::key_v4(1, 7, 1, 7);
    add(table, key);
    CHECK_FALSE(test::look_up(table, key).reverse);
}

TEST_CASE("table: keys of one hash are told apart, up to both buckets", "[session]") {
    Table table(1000, -1, kHz, {});
    OutcomeTable outcomes;
    constexpr std::uint32_t kHash = 0xdeadbeef;
    Found found;
    for (std::uint32_t i = 0; i < 16; ++i) {
        REQUIRE(table.insert(test::pool_key(i, false), kHash, 0, found) == Insert::created);
        CHECK(found.index == i);
    }
    CHECK(table.insert(test::pool_key(16, false), kHash, 0, found) == Insert::bucket_full);
    CHECK(found.index == session::kNone);
    CHECK(table.stats().bucket_full == 1);

    std::vector<net::FlowKey> keys;
    for (std::uint32_t i = 0; i < 17; ++i) keys.push_back(test::pool_key(i, i % 3 == 0));
    std::vector<const net::FlowKey*> pointers;
    for (const auto& key : keys) pointers.push_back(&key);
    const std::vector<std::uint32_t> hashes(17, kHash);
    std::vector<Found> all(17);
    table.lookup(pointers, hashes, all);
    for (std::uint32_t i = 0; i < 16; ++i) {
        CHECK(all[i].index == i);
        CHECK(all[i].reverse == (i % 3 == 0));
    }
    CHECK(all[16].index == session::kNone);

    table.erase(5, outcomes);
    CHECK(test::look_up(table, test::pool_key(5, false), kHash).index == session::kNone);
    CHECK(table.insert(test::pool_key(16, false), kHash, 0, found) == Insert::created);
    CHECK(test::look_up(table, test::pool_key(16, false), kHash).index == found.index);
}

TEST_CASE("table: the second packet of a new flow joins, in either direction", "[session]") {
    Table table(10, -1, kHz, {});
    const net::FlowKey key = test::pool_key(0, false);
    const std::uint32_t index = add(table, key);
    Found found;
    CHECK(table.insert(key, test::hash_of(key), 0, found) == Insert::exists);
    CHECK((found.index == index && !found.reverse));
    CHECK(table.insert(test::reversed(key), test::hash_of(key), 0, found) == Insert::exists);
    CHECK((found.index == index && found.reverse));
    CHECK(table.stats().active == 1);
}

TEST_CASE("table: its capacity fits, one more does not, and what is erased is free again", "[session]") {
    constexpr std::uint32_t kCapacity = 4096;  // exactly half of the slots
    Table table(kCapacity, -1, kHz, {});
    OutcomeTable outcomes;
    for (std::uint32_t i = 0; i < kCapacity; ++i) add(table, test::pool_key(i, false));
    Found found;
    const net::FlowKey extra = test::pool_key(kCapacity, false);
    CHECK(table.insert(extra, test::hash_of(extra), 0, found) == Insert::table_full);
    CHECK(table.insert(test::pool_key(0, true), test::hash_of(test::pool_key(0, true)), 0, found) == Insert::exists);
    CHECK(table.stats().table_full == 1);
    CHECK(table.stats().active == kCapacity);

    for (std::uint32_t i = 0; i < kCapacity; ++i) table.erase(i, outcomes);
    CHECK(table.stats().active == 0);
    for (std::uint32_t i = 0; i < kCapacity; ++i) add(table, test::pool_key(kCapacity + i, true));
    CHECK(table.stats().active == kCapacity);
    CHECK(table.stats().created == std::uint64_t{2} * kCapacity);
}

TEST_CASE("table: a new session holds the key and its first packet's fields, and nothing else", "[session]") {
    Table table(10, -1, kHz, {});
    net::FlowKey key = test::pool_key(1, false);
    key.in_interface_be = 0x1234;
    key.tcp_flags = 2;
    key.dscp = 46;
    key.icmp_type = 8;
    key.icmp_code = 3;
    key.match_flags = net::kL4Known | net::kHasOptions;
    key.pcp = 5;
    const std::uint32_t index = add(table, key, 77);
    const session::HotEntry& hot = table.hot(index);
    CHECK(hot.state() == State::fresh);
    CHECK(hot.outcome == session::kNoOutcome);
    CHECK((hot.next_hop[0] == 0 && hot.next_hop[1] == 0 && hot.packets[0] == 0 && hot.bytes[1] == 0));
    CHECK(table.cold(index).created_ticks == 77u >> std::countr_zero(table.cycles_per_tick()));
    CHECK(table.cold(index).hash == test::hash_of(key));

    const net::FlowKey again = session::forward_key(hot, table.cold(index));
    CHECK(std::memcmp(&again, &key, sizeof key) == 0);
}

TEST_CASE("table: counts are flushed at half range and never lost", "[session]") {
    Table table(10, -1, kHz, {});
    const std::uint32_t index = add(table, test::pool_key(0, false));
    constexpr std::uint64_t kPackets = 100000;
    constexpr std::uint32_t kLength = 65000;  // bytes come to half range first
    for (std::uint64_t i = 0; i < kPackets; ++i) table.touch(index, i % 4 == 0, 0, i % 4 == 0 ? 64 : kLength, 0);
    const session::HotEntry& hot = table.hot(index);
    CHECK((hot.packets[0] < 0x8000 && hot.packets[1] < 0x8000));
    table.flush(index);
    CHECK(table.cold(index).packets[0] == kPackets * 3 / 4);
    CHECK(table.cold(index).packets[1] == kPackets / 4);
    CHECK(table.cold(index).bytes[0] == kPackets * 3 / 4 * kLength);
    CHECK(table.cold(index).bytes[1] == kPackets / 4 * 64);
    CHECK((hot.packets[0] == 0 && hot.bytes[0] == 0));
}

TEST_CASE("table: a session gives its outcome back exactly once, however it ends", "[session]") {
    Table table(10, -1, kHz, {});
    OutcomeTable outcomes(2);
    const Outcome first{.permit = true, .traffic_class = 1};
    const Outcome second{.permit = true, .traffic_class = 2};
    const Outcome third{.permit = true, .traffic_class = 3};
    const std::uint32_t a = add(table, test::pool_key(0, false));
    const std::uint32_t b = add(table, test::pool_key(1, false));
    const std::uint16_t one = table.memoize(a, outcomes, first, 5, 17);
    CHECK(table.memoize(b, outcomes, first, 5, 17) == one);
    CHECK(outcomes.references(one) == 2);
    CHECK(table.hot(a).policy_generation == 5);
    CHECK(table.cold(a).rule == 17);

    SECTION("renewed with the same verdict") {
        CHECK(table.memoize(a, outcomes, first, 6, 18) == one);
        CHECK(outcomes.references(one) == 2);
    }
    SECTION("renewed with another, then with one that no index is left for") {
        const std::uint16_t two = table.memoize(a, outcomes, second, 6, 18);
        CHECK(outcomes.references(one) == 1);
        CHECK(outcomes.references(two) == 1);
        CHECK(table.memoize(b, outcomes, third, 6, 19) == session::kNoOutcome);
        CHECK(outcomes.size() == 1);
        table.erase(b, outcomes);
        CHECK(outcomes.size() == 1);
        table.erase(a, outcomes);
        CHECK(outcomes.size() == 0);
    }
    SECTION("erased") {
        table.erase(a, outcomes);
        CHECK(outcomes.references(one) == 1);
        table.erase(b, outcomes);
        CHECK(outcomes.size() == 0);
    }
    SECTION("expired") {
        CHECK(table.expire(100 * kHz, 10, outcomes) == 2);
        CHECK(outcomes.size() == 0);
    }
    SECTION("begun again") {
        table.restart(a, outcomes, test::pool_key(0, true), 0);
        CHECK(outcomes.references(one) == 1);
        CHECK(table.hot(a).outcome == session::kNoOutcome);
    }
}

TEST_CASE("table: a connection that begins again turns the session round and forgets the old one", "[session]") {
    Table table(10, -1, kHz, {});
    OutcomeTable outcomes;
    const net::FlowKey key = test::pool_key(1, false);
    const std::uint32_t index = add(table, key);
    table.memoize(index, outcomes, {.permit = true}, 3, 4);
    session::remember_next_hop(table.hot(index), false, 9, 1);
    table.touch(index, false, session::kTcpRst, 60, 0);
    REQUIRE(session::can_restart(table.hot(index), false, session::kTcpSyn));
    table.restart(index, outcomes, test::reversed(key), 5);
    const Found found = test::look_up(table, key);
    CHECK((found.index == index && found.reverse));
    CHECK_FALSE(test::look_up(table, test::reversed(key)).reverse);
    CHECK(table.hot(index).state() == State::fresh);
    CHECK(table.hot(index).next_hop[0] == 0);
    CHECK(table.age_cycles(index, 5) < table.cycles_per_tick());
    CHECK(table.stats().active == 1);
    CHECK(table.stats().created == 2);
}

TEST_CASE("table: one route generation covers both next hops", "[session]") {
    session::HotEntry hot{};
    session::remember_next_hop(hot, false, 5, 1);
    session::remember_next_hop(hot, true, 6, 1);
    CHECK((hot.next_hop[0] == 5 && hot.next_hop[1] == 6));
    session::remember_next_hop(hot, true, 7, 2);
    CHECK((hot.next_hop[0] == (5 | session::kOldNextHop) && hot.next_hop[1] == 7));
}

TEST_CASE("table: memory is what it said it would be", "[session]") {
    for (const std::uint32_t capacity : {1u, 1000u, 100000u}) {
        Table table(capacity, -1, kHz, {});
        CHECK(table.stats().memory_bytes == Table::memory_needed(capacity));
        CHECK(table.stats().capacity == capacity);
    }
}

TEST_CASE("table: what can't be built says what it needs", "[session]") {
    CHECK_THROWS_AS(Table(0, -1, kHz, {}), base::MachineError);
    CHECK_THROWS_AS(Table(session::kMaxCapacity + 1, -1, kHz, {}), base::MachineError);
    try {
        Table table(100, 1000, kHz, {});
        FAIL("a table on NUMA node 1000");
    } catch (const base::MachineError& e) {
        CHECK(std::string(e.what()).find("session table of 100 sessions") != std::string::npos);
    }
}

// Hidden: 2.2 GB and a minute. Run as `session_test "[huge]"`.
TEST_CASE("table: 16 million sessions on one worker", "[.][huge]") {
    constexpr std::uint32_t kSessions = 16'000'000;
    CHECK(Table::memory_needed(kSessions) >> 20 == 2210);
    Table table(kSessions, -1, 1000, {});
    session::OutcomeTable outcomes;
    const auto key = [](std::uint32_t i) { return test::key_v4(0x0a000000 + i, 1000, 0xc6120001, 53); };
    for (std::uint32_t i = 0; i < kSessions; ++i) {
        session::Found found;
        REQUIRE(table.insert(key(i), test::hash_of(key(i)), 0, found) == Table::Insert::created);
    }
    CHECK(table.stats().active == kSessions);
    session::Found found;
    CHECK(table.insert(key(kSessions), test::hash_of(key(kSessions)), 0, found) == Table::Insert::table_full);
    for (std::uint32_t i = 0; i < kSessions; ++i) {
        const net::FlowKey k = key(i);
        const net::FlowKey* const keys[] = {&k};
        const std::uint32_t hash = test::hash_of(k);
        table.lookup(keys, {&hash, 1}, {&found, 1});
        REQUIRE((found.index != session::kNone && !found.reverse));
    }
    while (table.stats().active != 0) REQUIRE(table.expire(60'000, 1 << 20, outcomes) != 0);
}
