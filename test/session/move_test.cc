// SPDX-License-Identifier: BSD-3-Clause
// A session that goes from one worker's table to another's: what it has is there, what it had is given back, and what
// tenants share is neither taken twice nor lost.
#include "session/move.h"

#include <memory>

#include "keys.h"
#include "session/table.h"
#include "support/catch.h"

using namespace cachewire;
using namespace cachewire::session;
using namespace cachewire::test;

namespace {

struct MoveRig {
    explicit MoveRig(std::uint32_t capacity = 64)
        : quotas(std::make_shared<SharedQuotas>()), from(64, -1, kHz, {}, quotas), to(capacity, -1, kHz, {}, quotas) {
        for (RuleCounters* rules : {&from_rules, &to_rules}) rules->put(0);
        from.count_rules_in(&from_rules);
        to.count_rules_in(&to_rules);
    }
    Table::Insert insert(const net::FlowKey& key, std::uint32_t& index) {
        Found found{};
        const auto result = from.insert(key, hash_of(key), 5 * kHz, quota, found);
        index = found.index;
        return result;
    }
    Found look_up_there(const net::FlowKey& key) {
        const net::FlowKey* keys[] = {&key};
        const std::uint32_t hashes[] = {hash_of(key)};
        Found found[1];
        to.lookup(keys, hashes, found);
        return found[0];
    }

    Quota quota{.sessions = 2};
    std::shared_ptr<SharedQuotas> quotas;
    RuleCounters from_rules, to_rules;
    OutcomeTable from_outcomes, to_outcomes;
    Table from, to;
};

}  // namespace

TEST_CASE("move: a session arrives with state, counts, memo, rule and companion", "[session]") {
    MoveRig rig;
    const net::FlowKey key = tcp(1, tcp_flags::S);
    net::FlowKey reply = reversed(key);
    reply.tenant = 2;
    std::uint32_t index = 0;
    REQUIRE(rig.insert(key, index) == Table::Insert::created);
    rig.from.memoize(index, rig.from_outcomes, {.permit = 1, .traffic_class = 3}, 7, 9);
    rig.from.hot(index).next_hop[0] = 11;
    rig.from.hot(index).route_generation = 5;
    REQUIRE(rig.from.add_companion(index, reply, hash_of(reply)) == Table::Insert::created);
    rig.from.touch(index, false, kTcpSyn, 100, 5 * kHz);
    rig.from.touch(index, true, kTcpSyn | kTcpAck, 60, 5 * kHz);
    rig.from.touch(index, false, kTcpAck, 50, 6 * kHz);
    const State state = rig.from.hot(index).state();

    // Another outcome has the first index there.
    const std::uint16_t other = rig.to_outcomes.intern({.traffic_class = 1});
    MovedSession moved;
    rig.from.hand_out(index, rig.from_outcomes, moved);
    CHECK(rig.from.stats().active == 0);
    CHECK(rig.from.stats().companions == 0);
    CHECK(rig.from_outcomes.size() == 0);
    CHECK(rig.from_rules.held(0) == 0);
    CHECK(rig.from.use(1).states[static_cast<unsigned>(state)].read() == 0);
    CHECK(rig.from_rules.hits(9).packets.read() == 3);

    REQUIRE(rig.to.take_in(moved, rig.to_outcomes));
    const Found found = rig.look_up_there(key);
    REQUIRE(found.index != kNone);
    CHECK(!found.reverse);
    CHECK(rig.look_up_there(reply).index == found.index);
    CHECK(rig.look_up_there(reply).reverse);
    const HotEntry& hot = rig.to.hot(found.index);
    CHECK(hot.state() == state);
    CHECK(hot.outcome != other);
    CHECK(rig.to_outcomes[hot.outcome] == Outcome{.permit = 1, .traffic_class = 3});
    CHECK(hot.policy_generation == 7);
    CHECK(hot.next_hop[0] == 11);
    CHECK(hot.route_generation == 5);
    CHECK(rig.to.cold(found.index).packets[0] == 2);
    CHECK(rig.to.cold(found.index).bytes[1] == 60);
    CHECK(rig.to.cold(found.index).rule == 9);
    CHECK(rig.to.use(1).states[static_cast<unsigned>(state)].read() == 1);
    CHECK(rig.to.stats().active == 1);
    CHECK(rig.to.stats().created == 0);
    CHECK(rig.to_rules.held(0) == 1);
    CHECK(rig.to_rules.hits(9).sessions.read() == 0);  // counted where it began

    // What it counts from now on is credited there, and it ends there.
    rig.to.touch(found.index, false, kTcpAck, 10, 7 * kHz);
    rig.to.erase(found.index, rig.to_outcomes);
    CHECK(rig.to_rules.hits(9).packets.read() == 1);
    CHECK(rig.to_rules.held(0) == 0);
    CHECK(rig.to_outcomes.size() == 1);
    CHECK(rig.to.stats().companions == 0);
}

TEST_CASE("move: what a session has of its tenant's quota goes along", "[session]") {
    MoveRig rig;
    std::uint32_t first = 0, second = 0, third = 0;
    REQUIRE(rig.insert(udp(1, 1), first) == Table::Insert::created);
    REQUIRE(rig.insert(udp(1, 2), second) == Table::Insert::created);
    MovedSession moved;
    rig.from.hand_out(first, rig.from_outcomes, moved);
    CHECK(rig.insert(udp(1, 3), third) == Table::Insert::quota_denied);
    REQUIRE(rig.to.take_in(moved, rig.to_outcomes));
    CHECK(rig.insert(udp(1, 3), third) == Table::Insert::quota_denied);
}

TEST_CASE("move: a session without room counts as evicted, and its quota is free again", "[session]") {
    MoveRig rig(1);
    std::uint32_t first = 0, second = 0;
    REQUIRE(rig.insert(udp(1, 1), first) == Table::Insert::created);
    REQUIRE(rig.insert(udp(1, 2), second) == Table::Insert::created);
    MovedSession moved;
    rig.from.hand_out(first, rig.from_outcomes, moved);
    CHECK(rig.to.take_in(moved, rig.to_outcomes));
    rig.from.hand_out(second, rig.from_outcomes, moved);
    CHECK(!rig.to.take_in(moved, rig.to_outcomes));
    CHECK(rig.to.stats().active == 1);
    CHECK(rig.to.stats().evicted == 1);
    CHECK(rig.to_outcomes.size() == 0);
}

TEST_CASE("move: entries that begin meanwhile are noted", "[session]") {
    MoveRig rig;
    std::uint64_t bits = 0;
    std::uint32_t index = 0;
    rig.insert(udp(1, 1), index);
    rig.from.note_new(&bits);
    CHECK(bits == 0);
    rig.insert(udp(1, 2), index);
    CHECK(bits == std::uint64_t{1} << index);
    rig.from.note_new(nullptr);
    rig.insert(udp(2, 3), index);
    CHECK((bits >> index & 1) == 0);
}
