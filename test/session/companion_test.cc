// SPDX-License-Identifier: BSD-3-Clause
// Companions, with a stand-in for a translator: it gives the reply another tuple, and another tenant.
#include <vector>

#include "session/keys.h"
#include "session/table.h"
#include "support/catch.h"

using namespace cachewire;
using session::Found;
using session::OutcomeTable;
using session::Table;
using Insert = session::Table::Insert;

namespace {

using test::kHz;
constexpr std::uint16_t kInside = 1, kOutside = 2;
constexpr std::uint32_t kPublic = 0xcb007101;

// Source translation: who talks to whom from inside, and what the answer looks like outside.
net::FlowKey request(std::uint32_t number) {
    return test::key_v4(0x0a000000 + number, 4000, 0xc6336401, 80, session::kProtoTcp, kInside);
}
net::FlowKey answer(std::uint32_t number) {
    return test::key_v4(0xc6336401, 80, kPublic, static_cast<std::uint16_t>(10000 + number), session::kProtoTcp,
                        kOutside);
}

std::uint32_t add(Table& table, std::uint32_t number, std::uint64_t now = 0) {
    Found found;
    REQUIRE(table.insert(request(number), test::hash_of(request(number)), now, found) == Insert::created);
    REQUIRE(table.add_companion(found.index, answer(number), test::hash_of(answer(number))) == Insert::created);
    return found.index;
}

}  // namespace

TEST_CASE("companion: both tuples, both ways round, find the one entry that holds state", "[session]") {
    Table table(100, -1, kHz, {});
    const std::uint32_t index = add(table, 1);
    Found lonely;
    REQUIRE(table.insert(request(2), test::hash_of(request(2)), 0, lonely) == Insert::created);
    struct Case {
        net::FlowKey key;
        bool reverse;
    };
    // The translated request, as it would be seen outside, is in forward direction like the request itself.
    const Case cases[] = {
        {request(1), false}, {test::reversed(request(1)), true}, {answer(1), true}, {test::reversed(answer(1)), false}};
    for (const Case& c : cases) {
        const Found found = test::look_up(table, c.key);
        CHECK(found.index == index);
        CHECK(found.reverse == c.reverse);
        Found again;
        CHECK(table.insert(c.key, test::hash_of(c.key), 0, again) == Insert::exists);
        CHECK((again.index == index && again.reverse == c.reverse));
        CHECK(table.add_companion(lonely.index, c.key, test::hash_of(c.key)) == Insert::exists);
    }
    net::FlowKey other = answer(1);
    other.tenant = kInside;
    CHECK(test::look_up(table, other).index == session::kNone);
}

TEST_CASE("companion: a whole burst of both tuples resolves, in whatever order", "[session]") {
    Table table(100, -1, kHz, {});
    std::vector<std::uint32_t> index;
    for (std::uint32_t i = 0; i < 16; ++i) index.push_back(add(table, i));
    std::vector<net::FlowKey> keys;
    std::vector<std::uint32_t> hashes;
    for (std::uint32_t i = 0; i < 64; ++i) {
        keys.push_back(i % 4 == 0   ? request(i % 16)
                       : i % 4 == 1 ? answer(i % 16)
                       : i % 4 == 2 ? answer(100 + i)
                                    : test::reversed(request(i % 16)));
        hashes.push_back(test::hash_of(keys.back()));
    }
    std::vector<const net::FlowKey*> pointers;
    for (const auto& key : keys) pointers.push_back(&key);
    std::vector<Found> found(64);
    table.lookup(pointers, hashes, found);
    for (std::uint32_t i = 0; i < 64; ++i) {
        INFO(i);
        CHECK(found[i].index == (i % 4 == 2 ? session::kNone : index[i % 16]));
        if (i % 4 != 2) CHECK(found[i].reverse == (i % 4 != 0));
    }
}

TEST_CASE("companion: it ends with its session, whichever way that ends", "[session]") {
    Table table(100, -1, kHz, {});
    OutcomeTable outcomes;
    const std::uint32_t index = add(table, 1);
    SECTION("erased") { table.erase(index, outcomes); }
    SECTION("expired") {
        CHECK(table.expire(4 * kHz, 100, outcomes) == 0);
        CHECK(table.expire(100 * kHz, 100, outcomes) == 1);
    }
    SECTION("evicted") {
        table.configure({.high_watermark_percent = 1}, 1);
        Found found;
        const net::FlowKey key = test::pool_key(5, false);
        REQUIRE(table.insert(key, test::hash_of(key), 0, found) == Insert::created);
        CHECK(table.relieve(outcomes) == 1);
        CHECK(test::look_up(table, key).index == found.index);
        table.erase(found.index, outcomes);
    }
    SECTION("begun again: the translator has to decide anew") {
        table.touch(index, false, session::kTcpRst, 60, 0);
        REQUIRE(session::can_restart(table.hot(index), false, session::kTcpSyn));
        table.restart(index, outcomes, request(1), 0);
        CHECK(table.use(kInside).closed.read() == 1);
    }
    CHECK(test::look_up(table, request(1)).index == session::kNone);
    CHECK(test::look_up(table, answer(1)).index == session::kNone);
    CHECK(table.stats().active == 0);
    CHECK(table.stats().companions == 0);
    // Both entries are free again.
    for (std::uint32_t i = 0; i < 50; ++i) add(table, i);
}

TEST_CASE("companion: it takes room but is no session", "[session]") {
    Table table(4, -1, kHz, {});
    OutcomeTable outcomes;
    const std::uint32_t first = add(table, 1);
    add(table, 2);
    CHECK(table.stats().active == 2);
    CHECK(table.stats().companions == 2);
    CHECK(table.use(kInside).active.read() == 2);
    CHECK(table.use(kOutside).active.read() == 0);
    Found found;
    CHECK(table.insert(request(3), test::hash_of(request(3)), 0, found) == Insert::table_full);
    table.erase(first, outcomes);
    CHECK(table.insert(request(3), test::hash_of(request(3)), 0, found) == Insert::created);
    const std::uint32_t third = found.index;
    CHECK(table.insert(request(4), test::hash_of(request(4)), 0, found) == Insert::created);
    CHECK(table.add_companion(third, answer(3), test::hash_of(answer(3))) == Insert::table_full);
    // The session lives on without it.
    CHECK(test::look_up(table, request(3)).index == third);
    unsigned visited = 0;
    table.expire(0, 100, outcomes, [&](const session::HotEntry& entry) {
        ++visited;
        CHECK_FALSE(entry.is_companion());
    });
    CHECK(visited == 3);
}
