// SPDX-License-Identifier: BSD-3-Clause
// Requests, with the worker's side called by hand, and once with two threads.
#include "session/request.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "session/keys.h"
#include "support/catch.h"
#include "support/parsed.h"
#include "support/random.h"

using namespace cachewire;
using session::Filter;
using session::Found;
using session::Mailbox;
using session::OutcomeTable;
using session::Request;
using session::State;
using session::Table;
using Insert = session::Table::Insert;
using Kind = session::Request::Kind;

namespace {

using test::kHz;
using test::prefix;

struct RequestRig {
    std::uint32_t add(const net::FlowKey& key, std::uint64_t at = 0) {
        Found found;
        REQUIRE(table.insert(key, test::hash_of(key), at, found) == Insert::created);
        return found.index;
    }
    // Serves until answered; returns how often that was.
    unsigned ask(const Request& request) {
        REQUIRE(mailbox->post(request));
        unsigned turns = 0;
        for (; !mailbox->answered(); ++turns) mailbox->serve(table, outcomes, now);
        return turns;
    }
    Table table{4096, -1, kHz, {}};
    OutcomeTable outcomes;
    std::unique_ptr<Mailbox> mailbox = std::make_unique<Mailbox>();
    std::uint64_t now = 0;
};

}  // namespace

TEST_CASE("request: a list comes in pages, each session once, a few entries at a time", "[session]") {
    RequestRig rig;
    constexpr std::uint32_t kSessions = 1000;
    for (std::uint32_t i = 0; i < kSessions; ++i) rig.add(test::pool_key(i, false));
    rig.table.erase(500, rig.outcomes);
    std::set<std::uint32_t> seen;
    Request request{.kind = Kind::list, .max_views = 50};
    unsigned pages = 0;
    for (;; ++pages) {
        const unsigned turns = rig.ask(request);
        CHECK(turns >= 50 / Mailbox::kEntriesATime);
        CHECK(turns <= 50 / Mailbox::kEntriesATime + 2);
        const Mailbox::Answer& answer = rig.mailbox->answer();
        REQUIRE(answer.count <= 50);
        for (std::uint32_t i = 0; i < answer.count; ++i) REQUIRE(seen.insert(answer.views[i].index).second);
        if (answer.next == session::kNone) break;
        request.cursor = answer.next;
    }
    CHECK(pages == 19);
    CHECK(seen.size() == kSessions - 1);
    CHECK_FALSE(seen.contains(500));
    // More than there is room for is cut, not overrun; past the end is nothing.
    rig.ask({.kind = Kind::list, .max_views = 100'000});
    CHECK(rig.mailbox->answer().count == Mailbox::kMaxViews);
    rig.ask({.kind = Kind::list, .cursor = 100'000, .max_views = 10});
    CHECK(rig.mailbox->answer().count == 0);
    CHECK(rig.mailbox->answer().next == session::kNone);
}

TEST_CASE("request: one session by its tuple, from either direction, with all that is known of it", "[session]") {
    RequestRig rig;
    net::FlowKey key = test::key_v4(1, 1000, 2, 80, session::kProtoTcp, 3);
    key.dscp = 46;
    const std::uint32_t index = rig.add(key, 1 * kHz);
    rig.table.memoize(index, rig.outcomes, {.permit = true, .traffic_class = 2, .policer = 7}, 1, 17);
    rig.table.touch(index, false, session::kTcpSyn, 100, 2 * kHz);
    rig.table.touch(index, true, session::kTcpSyn | session::kTcpAck, 200, 3 * kHz);
    net::FlowKey reply = test::key_v4(2, 80, 9, 9, session::kProtoTcp, 3);
    REQUIRE(rig.table.add_companion(index, reply, test::hash_of(reply)) == Insert::created);
    rig.now = 60 * kHz;
    for (const net::FlowKey& asked : {key, test::reversed(key), reply}) {
        CHECK(rig.ask({.kind = Kind::get, .key = asked, .hash = test::hash_of(asked)}) == 1);
        const Mailbox::Answer& answer = rig.mailbox->answer();
        REQUIRE(answer.count == 1);
        const session::SessionView& view = answer.views[0];
        CHECK(view.index == index);
        CHECK(view.hot.src == key.src);
        CHECK(view.hot.state() == State::fresh);
        CHECK((view.cold.packets[0] == 1 && view.cold.packets[1] == 1));
        CHECK((view.cold.bytes[0] == 100 && view.cold.bytes[1] == 200));
        CHECK(view.cold.rule == 17);
        CHECK(view.cold.dscp == 46);
        REQUIRE(view.outcome);
        CHECK(view.outcome->policer == 7);
        REQUIRE(view.companion);
        CHECK(view.companion->dst == reply.dst);
        CHECK(view.age_cycles <= 59 * kHz + rig.table.cycles_per_tick());
        CHECK(view.age_cycles + rig.table.cycles_per_tick() >= 59 * kHz);
        CHECK(view.idle_cycles <= 57 * kHz);
        CHECK(view.idle_cycles + 2 * rig.table.cycles_per_tick() >= 57 * kHz);
    }
    key.dst_port_be = 0;
    rig.ask({.kind = Kind::get, .key = key, .hash = test::hash_of(key)});
    CHECK(rig.mailbox->answer().count == 0);
}

TEST_CASE("request: kill ends what the filter fits and nothing else", "[session]") {
    struct Case {
        std::string what;
        Filter filter;
        unsigned killed;
    };
    const Case cases[] = {
        {"all", {}, 8},
        {"a tenant", {.tenant = 1}, 4},
        {"a tenant that has none", {.tenant = 3}, 0},
        {"a protocol", {.proto = session::kProtoTcp}, 2},
        {"a source", {.src = prefix("10.0.0.0/30")}, 4},
        {"a source of the other family", {.src = prefix("::/0")}, 0},
        {"a destination", {.dst = prefix("0.0.0.0/0")}, 8},
        {"a source port", {.src_port = 1001}, 1},
        {"a destination port", {.dst_port = 80}, 8},
        {"the other side's port", {.dst_port = 1001}, 0},
        {"a state", {.states = 1u << static_cast<unsigned>(State::established)}, 3},
        {"several", {.tenant = 2, .proto = test::kUdp, .src = prefix("10.0.0.0/29")}, 3},
    };
    for (const Case& c : cases) {
        INFO(c.what);
        RequestRig rig;
        for (std::uint32_t i = 0; i < 8; ++i) {
            const std::uint32_t index = rig.add(test::key_v4(0x0a000000 + i, static_cast<std::uint16_t>(1000 + i), 2,
                                                             80, i % 4 == 0 ? session::kProtoTcp : test::kUdp,
                                                             static_cast<std::uint16_t>(1 + i / 4)));
            if (i < 3) rig.table.set_state(index, State::established);
        }
        // Many free entries behind them.
        for (std::uint32_t i = 0; i < 100; ++i) rig.table.erase(rig.add(test::pool_key(i, false)), rig.outcomes);
        rig.ask({.kind = Kind::kill, .filter = c.filter});
        CHECK(rig.mailbox->answer().killed == c.killed);
        CHECK(rig.table.stats().active == 8 - c.killed);
        CHECK(rig.table.stats().killed == 100 + c.killed);
    }
}

TEST_CASE("request: the worker keeps what it has not done, and takes no second one", "[session]") {
    RequestRig rig;
    for (std::uint32_t i = 0; i < 100; ++i) rig.add(test::pool_key(i, false));
    const Request request{.kind = Kind::kill};
    CHECK(rig.mailbox->answered());
    REQUIRE(rig.mailbox->post(request));
    CHECK_FALSE(rig.mailbox->post(request));
    rig.mailbox->serve(rig.table, rig.outcomes, 0);
    CHECK_FALSE(rig.mailbox->answered());
    CHECK(rig.table.stats().active == 100 - Mailbox::kEntriesATime);
    CHECK_FALSE(rig.mailbox->post(request));
    while (!rig.mailbox->answered()) rig.mailbox->serve(rig.table, rig.outcomes, 0);
    rig.mailbox->serve(rig.table, rig.outcomes, 0);  // nothing to do
    CHECK(rig.mailbox->answer().killed == 100);
    CHECK(rig.mailbox->post(request));
}

TEST_CASE("request: control and worker on threads of their own", "[session]") {
    RequestRig rig;
    std::atomic<bool> stop{false};
    std::thread worker([&] {
        // Sessions come and go all the time.
        std::uint32_t next = 0;
        for (std::uint64_t now = 0; !stop.load(std::memory_order_relaxed); ++now) {
            const net::FlowKey key = test::pool_key(next++, false);
            Found found;
            rig.table.insert(key, test::hash_of(key), now, found);
            rig.table.expire(now, 16, rig.outcomes);
            rig.mailbox->serve(rig.table, rig.outcomes, now);
        }
    });
    std::uint64_t views = 0;
    for (int round = 0; round < 500; ++round) {
        const bool kills = round % 10 == 9;
        REQUIRE(rig.mailbox->post({.kind = kills ? Kind::kill : Kind::list, .filter = {.tenant = 2}, .max_views = 20}));
        while (!rig.mailbox->answered()) std::this_thread::yield();
        const Mailbox::Answer& answer = rig.mailbox->answer();
        for (std::uint32_t i = 0; i < answer.count; ++i) REQUIRE(answer.views[i].hot.tenant == 2);
        views += answer.count;
    }
    stop = true;
    worker.join();
    CHECK(views > 0);
}

TEST_CASE("request: the heaviest sessions, heaviest first", "[session]") {
    RequestRig rig;
    constexpr std::uint32_t kSessions = 1000;
    auto rng = test::random_engine();
    INFO("seed " << test::seed());
    std::vector<std::pair<std::uint64_t, std::uint32_t>> by_bytes, by_packets;  // the plain way: all of them, sorted
    for (std::uint32_t i = 0; i < kSessions; ++i) {
        const std::uint32_t index = rig.add(test::pool_key(i, false));
        std::uint64_t bytes = 0, packets = 0;
        for (unsigned k = rng() % 20; k-- > 0; ++packets) {
            const std::uint32_t length = 60 + rng() % 1000000;
            rig.table.touch(index, rng() % 2 == 0, 0, length, 0);
            bytes += length;
            if (rng() % 4 == 0) rig.table.flush(index);  // some of it is in the cold entry
        }
        if (i == 7) {  // has ended: not among them
            rig.table.erase(index, rig.outcomes);
            continue;
        }
        by_bytes.emplace_back(bytes, index);
        by_packets.emplace_back(packets, index);
    }
    for (auto* all : {&by_bytes, &by_packets}) std::sort(all->rbegin(), all->rend());
    for (const std::uint32_t count : {1u, 10u, Mailbox::kMaxViews}) {
        const unsigned turns = rig.ask({.kind = Kind::top, .max_views = count, .weight = session::Weight::bytes});
        CHECK(turns >= kSessions / Mailbox::kEntriesATime);
        const Mailbox::Answer& answer = rig.mailbox->answer();
        REQUIRE(answer.count == count);
        CHECK(answer.next == session::kNone);
        for (std::uint32_t i = 0; i < count; ++i) REQUIRE(answer.views[i].bytes() == by_bytes[i].first);

        rig.ask({.kind = Kind::top, .max_views = count, .weight = session::Weight::packets});
        REQUIRE(answer.count == count);
        for (std::uint32_t i = 0; i < count; ++i) REQUIRE(answer.views[i].packets() == by_packets[i].first);
    }
    rig.ask({.kind = Kind::top, .filter = {.proto = 99}, .max_views = 10});
    CHECK(rig.mailbox->answer().count == 0);
}

TEST_CASE("request: a heaviest session that ends before the walk has come round is left out", "[session]") {
    RequestRig rig;
    for (std::uint32_t i = 0; i < 100; ++i) rig.table.touch(rig.add(test::pool_key(i, false)), false, 0, 100 + i, 0);
    REQUIRE(rig.mailbox->post({.kind = Kind::top, .max_views = 3}));
    rig.table.touch(0, false, 0, 100000, 0);
    rig.mailbox->serve(rig.table, rig.outcomes, 0);  // has seen the first 32 entries
    REQUIRE_FALSE(rig.mailbox->answered());
    rig.table.erase(0, rig.outcomes);
    while (!rig.mailbox->answered()) rig.mailbox->serve(rig.table, rig.outcomes, 0);
    REQUIRE(rig.mailbox->answer().count == 2);  // its place is not given to another one
    CHECK(rig.mailbox->answer().views[0].bytes() == 199);
    CHECK(rig.mailbox->answer().views[1].bytes() == 198);
}
