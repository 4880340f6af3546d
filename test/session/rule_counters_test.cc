// SPDX-License-Identifier: BSD-3-Clause
// Hits by rule: what the memo answers is counted in the session and reaches its rule exactly once.
#include "session/rule_counters.h"

#include <map>

#include "keys.h"
#include "session/table.h"
#include "support/catch.h"
#include "support/random.h"

namespace cachewire::session {

namespace {

constexpr std::uint64_t kNanosecondHz = 1'000'000'000;
constexpr std::uint32_t kLength = 100;

struct CountersRig {
    Table table{64, -1, kNanosecondHz, {}};
    OutcomeTable outcomes{16};
    RuleCounters rules;

    CountersRig() {
        table.count_rules_in(&rules);
        rules.put(0);
        rules.put(1);
    }
    std::uint32_t add(std::uint32_t flow) {
        const net::FlowKey key = test::pool_key(flow, false);
        Found found{};
        REQUIRE(table.insert(key, test::hash_of(key), 0, found) == Table::Insert::created);
        return found.index;
    }
    void judge(std::uint32_t index, std::uint32_t rule) { table.memoize(index, outcomes, {.permit = 1}, 1, rule); }
    void touch(std::uint32_t index, bool reverse = false) { table.touch(index, reverse, 0, kLength, 0); }
    [[nodiscard]] std::uint64_t packets(std::uint32_t rule) const { return rules.hits(rule).packets.read(); }
    [[nodiscard]] std::uint64_t sessions(std::uint32_t rule) const { return rules.hits(rule).sessions.read(); }
};

}  // namespace

TEST_CASE("rule counters: a session's packets reach its rule when flushed, judged anew, and at its end", "[session]") {
    CountersRig rig;
    const std::uint32_t a = rig.add(0);
    rig.judge(a, 7);
    CHECK(rig.sessions(7) == 1);
    CHECK(rig.rules.held(0) == 1);
    for (int i = 0; i < 5; ++i) rig.touch(a, i % 2 != 0);
    CHECK(rig.packets(7) == 0);
    rig.table.flush(a);
    CHECK(rig.packets(7) == 5);
    CHECK(rig.rules.hits(7).bytes.read() == std::uint64_t{5} * kLength);
    rig.touch(a);
    rig.judge(a, 300);  // in the second chunk
    CHECK(rig.packets(7) == 6);
    CHECK(rig.rules.held(0) == 0);
    CHECK(rig.rules.held(1) == 1);
    rig.judge(a, 300);
    CHECK(rig.sessions(300) == 1);
    rig.touch(a);
    rig.touch(a);
    rig.table.erase(a, rig.outcomes);
    CHECK(rig.packets(300) == 2);
    CHECK(rig.rules.held(1) == 0);
}

TEST_CASE("rule counters: a packet that its own rule has judged doesn't count for the session's", "[session]") {
    CountersRig rig;
    const std::uint32_t a = rig.add(0);
    rig.judge(a, 7);
    rig.touch(a);
    rig.table.touch_apart(a, false, 0, kLength, 0);
    rig.touch(a);
    rig.table.flush(a);
    CHECK(rig.packets(7) == 2);
    CHECK(rig.table.cold(a).packets[0] == 3);
}

TEST_CASE("rule counters: sessions of an expiry walk are credited, half-range flushes too", "[session]") {
    CountersRig rig;
    const std::uint32_t a = rig.add(0);
    rig.judge(a, 7);
    for (unsigned i = 0; i < 40000; ++i) rig.touch(a);
    CHECK(rig.packets(7) == 32768);
    rig.table.expire(1000 * kNanosecondHz, 64, rig.outcomes);
    CHECK(rig.packets(7) == 40000);
    CHECK(rig.rules.held(0) == 0);
}

TEST_CASE("rule counters: numbers without memory and tables without counters count nothing", "[session]") {
    CountersRig rig;
    const std::uint32_t a = rig.add(0);
    rig.judge(a, 1u << 20);
    rig.touch(a);
    rig.judge(a, kNoRuleId);
    rig.rules.count(kNoRuleId, 1, 1);
    rig.table.count_rules_in(nullptr);
    rig.judge(a, 7);
    rig.table.flush(a);
    CHECK(rig.packets(7) == 0);
}

// Whatever happens to sessions, each packet counts for the rule that had judged its session when it came.
TEST_CASE("rule counters: random touches, verdicts and ends add up", "[session]") {
    CountersRig rig;
    auto engine = test::random_engine();
    const auto below = [&](unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(engine); };
    std::map<std::uint32_t, std::uint32_t> alive;  // flow -> entry
    std::map<std::uint32_t, std::uint32_t> rule_of;
    std::map<std::uint32_t, std::uint64_t> expected;
    for (unsigned step = 0; step < 20000; ++step) {
        const std::uint32_t flow = below(30);
        const auto found = alive.find(flow);
        if (found == alive.end()) {
            alive[flow] = rig.add(flow);
            rig.judge(alive[flow], rule_of[flow] = below(512));
        } else if (below(20) == 0) {
            rig.judge(found->second, rule_of[flow] = below(512));
        } else if (below(40) == 0) {
            rig.table.erase(found->second, rig.outcomes);
            alive.erase(found);
        } else if (below(10) == 0) {
            rig.table.touch_apart(found->second, false, 0, kLength, 0);
        } else {
            rig.touch(found->second, below(2) != 0);
            ++expected[rule_of[flow]];
        }
    }
    for (const auto& [flow, index] : alive) rig.table.flush(index);
    for (std::uint32_t rule = 0; rule < 512; ++rule) {
        INFO("rule " << rule);
        REQUIRE(rig.packets(rule) == expected[rule]);
        REQUIRE(rig.rules.hits(rule).bytes.read() == expected[rule] * kLength);
    }
    CHECK(rig.rules.held(0) + rig.rules.held(1) == alive.size());
}

}  // namespace cachewire::session
