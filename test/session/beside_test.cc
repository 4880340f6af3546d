// SPDX-License-Identifier: BSD-3-Clause
// What stands beside an entry is zero where a session begins, however it begins, and else is left alone.
#include "session/beside.h"

#include <algorithm>
#include <cstring>

#include "keys.h"
#include "session/table.h"
#include "support/catch.h"

using namespace cachewire;
using namespace cachewire::session;
using namespace cachewire::test;

namespace {

void mark_beside(Table& table, std::size_t use, std::uint32_t index, int value) {
    std::memset(table.beside(use) + std::size_t{index} * Besides::kBytes, value, Besides::kBytes);
}
bool beside_is(const Table& table, std::size_t use, std::uint32_t index, int value) {
    const std::byte* const at = table.beside(use) + std::size_t{index} * Besides::kBytes;
    return std::all_of(at, at + Besides::kBytes, [&](std::byte b) { return b == std::byte(value); });
}
std::uint32_t begin_beside(Table& table, const net::FlowKey& key) {
    Found found{};
    REQUIRE(table.insert(key, hash_of(key), 5 * kHz, found) == Table::Insert::created);
    return found.index;
}

}  // namespace

TEST_CASE("beside: nothing is made that nobody asked for, and a second time changes nothing", "[session]") {
    Table table(64, -1, kHz, {});
    const std::size_t before = table.stats().memory_bytes;
    for (std::size_t use = 0; use < Besides::kUses; ++use) CHECK(table.beside(use) == nullptr);
    const std::uint32_t index = begin_beside(table, udp(1));
    table.make_beside(1);
    CHECK(table.beside(0) == nullptr);
    REQUIRE(table.beside(1) != nullptr);
    CHECK(Besides::memory_needed(64) >= 64 * Besides::kBytes);
    CHECK(table.stats().memory_bytes == before + Besides::memory_needed(64));
    CHECK(beside_is(table, 1, index, 0));  // of a session that was there before
    mark_beside(table, 1, index, 7);
    const std::byte* const at = table.beside(1);
    table.make_beside(1);
    CHECK(table.beside(1) == at);
    CHECK(beside_is(table, 1, index, 7));
}

TEST_CASE("beside: an entry that is used again begins at zero, and others keep what they have", "[session]") {
    Table table(64, -1, kHz, {});
    OutcomeTable outcomes;
    table.make_beside(0);
    table.make_beside(2);
    const std::uint32_t first = begin_beside(table, udp(1, 1)), second = begin_beside(table, udp(1, 2));
    for (const std::size_t use : {0, 2})
        for (const std::uint32_t index : {first, second}) mark_beside(table, use, index, 9);
    table.erase(first, outcomes);
    REQUIRE(begin_beside(table, udp(1, 3)) == first);
    for (const std::size_t use : {0, 2}) {
        CHECK(beside_is(table, use, first, 0));
        CHECK(beside_is(table, use, second, 9));
    }
    table.touch(second, true, 0, 100, 6 * kHz);
    CHECK(beside_is(table, 0, second, 9));
}

TEST_CASE("beside: a connection over the tuple of one that is over begins at zero", "[session]") {
    Table table(64, -1, kHz, {});
    OutcomeTable outcomes;
    table.make_beside(0);
    const net::FlowKey syn = tcp(1, tcp_flags::S);
    const std::uint32_t index = begin_beside(table, syn);
    mark_beside(table, 0, index, 9);
    table.restart(index, outcomes, syn, 6 * kHz);
    CHECK(beside_is(table, 0, index, 0));
}

TEST_CASE("beside: a session from another worker begins at zero", "[session]") {
    const auto quotas = std::make_shared<SharedQuotas>();
    Table from(64, -1, kHz, {}, quotas), to(64, -1, kHz, {}, quotas);
    OutcomeTable from_outcomes, to_outcomes;
    for (Table* table : {&from, &to}) table->make_beside(0);
    const std::uint32_t old = begin_beside(to, udp(1, 1));
    mark_beside(to, 0, old, 9);
    to.erase(old, to_outcomes);
    const std::uint32_t index = begin_beside(from, udp(1, 2));
    mark_beside(from, 0, index, 5);
    MovedSession moved;
    from.hand_out(index, from_outcomes, moved);
    REQUIRE(to.take_in(moved, to_outcomes));
    CHECK(beside_is(to, 0, old, 0));
}
