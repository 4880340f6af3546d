// SPDX-License-Identifier: BSD-3-Clause
#include "control/slow_path/neighbor_table.h"

#include <algorithm>

#include "support/catch.h"
#include "support/random.h"

namespace cachewire::control {
namespace {

constexpr net::Mac kMac{{2, 0, 0, 0, 0, 1}}, kOther{{2, 0, 0, 0, 0, 2}};
using Kind = NeighborAction::Kind;
using Need = NeighborTable::Need;
using Phase = NeighborPhase;

NeighborKey host(std::uint32_t n, std::uint16_t interface = 0) {
    return {1, interface, net::Address::from_v4(0x0a000000 + n)};
}

// A table and a clock; what it wants done is counted as time passes.
struct NeighborRig {
    NeighborTable table;
    std::uint64_t now = 1000;
    unsigned group = 0, alone = 0, bound = 0, unbound = 0, failed = 0;
    net::Mac last{};

    NeighborRig() = default;
    explicit NeighborRig(const NeighborTable::Limits& limits) : table(limits) {}

    void count() {
        for (const NeighborAction& action : table.take_actions()) {
            group += action.kind == Kind::ask_group;
            alone += action.kind == Kind::ask_it;
            bound += action.kind == Kind::bound;
            unbound += action.kind == Kind::unbound;
            failed += action.kind == Kind::failed;
            if (action.kind == Kind::bound) last = action.mac;
        }
    }
    void pass(std::uint64_t ms) {
        for (const std::uint64_t end = now + ms; now < end;) {
            now += 100;
            table.tick(now);
            count();
        }
    }
    void reply(const NeighborKey& key, const net::Mac& mac = kMac) {
        table.hear(key, {.mac = mac, .solicited = true}, now);
        count();
    }
    Need need(const NeighborKey& key) {
        const Need need = table.need(key, now);
        count();
        return need;
    }
    Phase phase(const NeighborKey& key) const { return table.find(key)->phase; }
};

TEST_CASE("neighbors: the first packet asks, an answer binds", "[neighbor]") {
    NeighborRig rig;
    CHECK(rig.need(host(1)) == Need::waiting);
    CHECK(rig.group == 1);
    CHECK(rig.need(host(1)) == Need::waiting);
    CHECK(rig.group == 1);
    CHECK(rig.phase(host(1)) == Phase::incomplete);
    rig.pass(1500);
    CHECK(rig.group == 2);
    rig.reply(host(1));
    CHECK(rig.bound == 1);
    CHECK(rig.last == kMac);
    CHECK(rig.phase(host(1)) == Phase::reachable);
    CHECK(rig.need(host(1)) == Need::known);
    CHECK(rig.table.unresolved() == 0);
}

TEST_CASE("neighbors: silence fails after three questions, and is asked again when somebody needs it", "[neighbor]") {
    NeighborRig rig;
    rig.need(host(1));
    rig.pass(3500);
    CHECK(rig.group == 3);
    CHECK(rig.failed == 1);
    CHECK(rig.bound == 0);
    CHECK(rig.phase(host(1)) == Phase::failed);
    CHECK(rig.need(host(1)) == Need::refused);
    rig.pass(1000);
    CHECK(rig.need(host(1)) == Need::waiting);
    CHECK(rig.group == 4);
    rig.pass(4000);
    rig.pass(21000);
    CHECK(rig.table.find(host(1)) == nullptr);
    CHECK(rig.table.all().empty());
}

TEST_CASE("neighbors: one that stays is asked alone once in a while and never unbound", "[neighbor]") {
    NeighborRig rig;
    rig.need(host(1));
    rig.reply(host(1));
    for (int round = 0; round < 10; ++round) {
        const unsigned before = rig.alone;
        for (int i = 0; i < 1200 && rig.alone == before; ++i) rig.pass(100);
        REQUIRE(rig.alone == before + 1);
        CHECK(rig.phase(host(1)) == Phase::probe);
        rig.reply(host(1));
        CHECK(rig.phase(host(1)) == Phase::reachable);
    }
    CHECK(rig.now < 1000 + 10 * 100000);
    CHECK(rig.group == 1);
    CHECK(rig.bound == 1);
    CHECK(rig.unbound == 0);
}

TEST_CASE("neighbors: one that went is asked alone, then by all, then unbound", "[neighbor]") {
    NeighborRig rig;
    rig.need(host(1));
    rig.reply(host(1));
    for (int i = 0; i < 1500 && rig.unbound == 0; ++i) rig.pass(100);
    CHECK(rig.alone == 3);
    CHECK(rig.group == 1 + 3);
    CHECK(rig.unbound == 1);
    CHECK(rig.failed == 1);
    CHECK_FALSE(rig.table.find(host(1))->has_mac);
}

TEST_CASE("neighbors: a gateway that fails is asked for all the time and comes back with another MAC", "[neighbor]") {
    NeighborRig rig;
    rig.table.set_wanted({host(1)}, rig.now);
    rig.count();
    CHECK(rig.group == 1);
    rig.reply(host(1));
    for (int i = 0; i < 400 && rig.unbound == 0; ++i) rig.pass(100);
    CHECK(rig.unbound == 1);
    CHECK(rig.phase(host(1)) == Phase::failed);
    const unsigned asked = rig.group;
    rig.pass(600000);
    CHECK(rig.group - asked == 120);
    CHECK(rig.table.find(host(1)) != nullptr);
    CHECK(rig.failed == 1);
    rig.reply(host(1), kOther);
    CHECK(rig.last == kOther);
    CHECK(rig.phase(host(1)) == Phase::reachable);
    // No longer a gateway: it ages like the rest.
    rig.table.set_wanted({}, rig.now);
    rig.pass(300000);
    CHECK(rig.table.all().empty());
}

TEST_CASE("neighbors: behind a link that was away all are asked for at once, and serve until they fail", "[neighbor]") {
    NeighborRig rig;
    const auto on_interface_0 = [](const NeighborKey& key) { return key.interface == 0; };
    rig.need(host(1));
    rig.reply(host(1));
    rig.need(host(2));
    rig.reply(host(2));
    rig.need(host(3, 1));  // on another link
    rig.reply(host(3, 1));
    rig.table.set_permanent({{host(4), kMac}}, rig.now);
    rig.count();
    rig.group = rig.alone = rig.bound = 0;
    rig.table.doubt(on_interface_0, rig.now);
    rig.pass(100);
    CHECK(rig.group == 2);
    CHECK(rig.alone == 0);
    CHECK(rig.table.find(host(1))->has_mac);
    rig.reply(host(1), kOther);
    CHECK(rig.bound == 1);
    CHECK(rig.last == kOther);
    CHECK(rig.phase(host(1)) == Phase::reachable);
    rig.pass(5000);
    CHECK(rig.group == 4);  // three times for the one that is silent
    CHECK(rig.phase(host(2)) == Phase::failed);
    CHECK_FALSE(rig.table.find(host(2))->has_mac);
    CHECK(rig.phase(host(3, 1)) == Phase::reachable);
    CHECK(rig.phase(host(4)) == Phase::permanent);
    // Back at once for whoever needs it, not after the 20 s that a failure is remembered.
    rig.table.doubt(on_interface_0, rig.now);
    rig.pass(100);
    CHECK(rig.table.find(host(2)) == nullptr);
    CHECK(rig.need(host(2)) == Need::waiting);
}

TEST_CASE("neighbors: questions that went nowhere are asked again at once when the link is there", "[neighbor]") {
    NeighborRig rig;
    rig.need(host(1));
    rig.pass(2500);
    CHECK(rig.group == 3);
    rig.table.doubt([](const NeighborKey&) { return true; }, rig.now);
    rig.pass(100);
    CHECK(rig.group == 4);
    rig.pass(2500);  // and as often as if they were the first
    CHECK(rig.phase(host(1)) == Phase::incomplete);
    CHECK(rig.group == 6);
}

TEST_CASE("neighbors: a gateway that has failed is asked for at once when its link is back", "[neighbor]") {
    NeighborRig rig;
    rig.table.set_wanted({host(1)}, rig.now);
    rig.pass(4500);
    REQUIRE(rig.phase(host(1)) == Phase::failed);
    rig.group = 0;
    rig.table.doubt([](const NeighborKey&) { return true; }, rig.now);
    rig.pass(100);
    CHECK(rig.group == 1);
}

TEST_CASE("neighbors: a full table is asked for in half a second, not in one burst", "[neighbor]") {
    NeighborRig rig;
    for (std::uint32_t n = 1; n <= 4000; ++n) {
        rig.table.hear(host(n), {.mac = kMac, .creates = true}, rig.now);
        rig.count();
    }
    rig.group = 0;
    rig.table.doubt([](const NeighborKey&) { return true; }, rig.now);
    rig.table.tick(rig.now, 100000);
    rig.count();
    CHECK(rig.group == 16);
    rig.table.tick(rig.now + 250, 100000);
    rig.count();
    CHECK(rig.group == 4000);
}

TEST_CASE("neighbors: what changes an entry is what RFC 4861 7.2.5 lets change it", "[neighbor]") {
    struct Case {
        const char* what;
        NeighborTable::Word word;
        net::Mac mac;
        Phase phase;
    };
    for (const Case& c : {
             Case{"unsolicited, the same address", {kMac, false, true, false}, kMac, Phase::reachable},
             Case{"unsolicited, another address", {kOther, false, true, false}, kOther, Phase::stale},
             Case{"solicited, another address", {kOther, true, true, false}, kOther, Phase::reachable},
             Case{"another address that does not override", {kOther, true, false, false}, kMac, Phase::stale},
             Case{"solicited without an address", {std::nullopt, true, true, false}, kMac, Phase::reachable},
             Case{"unsolicited without an address", {std::nullopt, false, true, false}, kMac, Phase::reachable},
         }) {
        INFO(c.what);
        NeighborRig rig;
        rig.need(host(1));
        rig.reply(host(1));
        rig.table.hear(host(1), c.word, rig.now);
        CHECK(rig.table.find(host(1))->mac == c.mac);
        CHECK(rig.phase(host(1)) == c.phase);
    }
    NeighborRig rig;
    rig.table.hear(host(1), {kMac, true, true, false}, rig.now);
    CHECK(rig.table.all().empty());  // nobody asked
    rig.table.hear(host(1), {kMac, false, true, true}, rig.now);
    CHECK(rig.phase(host(1)) == Phase::stale);  // it asked for us
    rig.need(host(2));
    rig.table.hear(host(2), {std::nullopt, true, true, false}, rig.now);
    CHECK(rig.phase(host(2)) == Phase::incomplete);
}

TEST_CASE("neighbors: permanent ones never change by what is heard, and go with the file", "[neighbor]") {
    NeighborRig rig;
    rig.table.set_permanent({{host(1), kMac}}, rig.now);
    rig.count();
    CHECK(rig.bound == 1);
    rig.table.hear(host(1), {kOther, true, true, true}, rig.now);
    rig.pass(1000000);
    CHECK(rig.table.find(host(1))->mac == kMac);
    CHECK(rig.phase(host(1)) == Phase::permanent);
    CHECK(rig.group + rig.alone == 0);
    CHECK(rig.table.flush([](const NeighborKey&) { return true; }, rig.now) == 0);
    rig.table.set_permanent({{host(1), kOther}}, rig.now);
    rig.count();
    CHECK(rig.last == kOther);
    rig.table.set_permanent({}, rig.now);
    rig.count();
    CHECK(rig.unbound == 1);
    CHECK(rig.table.all().empty());
    // A learned one becomes permanent and loses its timer.
    rig.need(host(2));
    rig.table.set_permanent({{host(2), kMac}}, rig.now);
    rig.pass(100000);
    CHECK(rig.phase(host(2)) == Phase::permanent);
    CHECK(rig.table.unresolved() == 0);
}

TEST_CASE("neighbors: a scan fills a bounded part of the table and pushes nobody out", "[neighbor]") {
    NeighborRig rig({.entries = 100, .unresolved = 20});
    for (std::uint32_t n = 0; n < 60; ++n) {
        rig.need(host(n));
        rig.reply(host(n));
    }
    for (std::uint32_t n = 1000; n < 6000; ++n) {
        CHECK(rig.need(host(n)) == Need::waiting);
        rig.now += 1;
    }
    CHECK(rig.table.unresolved() == 20);
    CHECK(rig.table.all().size() == 80);
    CHECK(rig.unbound == 0);
    for (std::uint32_t n = 0; n < 60; ++n) CHECK(rig.table.find(host(n))->has_mac);
    CHECK(rig.failed == 5000 - 20);  // whoever waited for them hears of it
}

TEST_CASE("neighbors: a full table lets go whoever was silent for longest, and never a gateway", "[neighbor]") {
    NeighborRig rig({.entries = 50, .unresolved = 10});
    rig.table.set_wanted({host(9999)}, rig.now);
    rig.reply(host(9999));
    for (std::uint32_t n = 0; n < 200; ++n) {
        rig.table.hear(host(n), {kMac, false, true, true}, rig.now);
        rig.now += 10;
    }
    rig.count();
    CHECK(rig.table.all().size() == 51);
    CHECK(rig.table.evicted() == 150);
    CHECK(rig.table.find(host(0)) == nullptr);
    CHECK(rig.table.find(host(199)) != nullptr);
    CHECK(rig.table.find(host(9999)) != nullptr);
}

TEST_CASE("neighbors: whatever happens, bindings told are the bindings there are", "[neighbor]") {
    INFO("seed " << test::seed());
    auto random = test::random_engine();
    NeighborTable table({.entries = 40, .unresolved = 12});
    std::map<NeighborKey, net::Mac> told;
    std::uint64_t now = 1000;
    for (int step = 0; step < 50000; ++step) {
        const NeighborKey key =
            host(static_cast<std::uint32_t>(random() % 80), static_cast<std::uint16_t>(random() % 2));
        const net::Mac mac{{2, 0, 0, 0, 0, static_cast<std::uint8_t>(random() % 4)}};
        switch (random() % 7) {
            case 0:
            case 1:
                table.need(key, now);
                break;
            case 2:
            case 3:
                table.hear(key,
                           {random() % 4 != 0 ? std::optional(mac) : std::nullopt, random() % 2 != 0, random() % 2 != 0,
                            random() % 2 != 0},
                           now);
                break;
            case 4:
                now += random() % 8000;
                table.tick(now, 1 + random() % 100);
                break;
            case 5:
                if (random() % 20 == 0) table.set_wanted({key, host(1)}, now);
                break;
            case 6:
                if (random() % 20 == 0) table.set_permanent({{key, mac}}, now);
                if (random() % 50 == 0) table.flush([](const NeighborKey& k) { return k.interface == 1; }, now);
                break;
        }
        for (const NeighborAction& action : table.take_actions()) {
            if (action.kind == Kind::bound) told[action.key] = action.mac;
            if (action.kind == Kind::unbound) told.erase(action.key);
        }
        std::map<NeighborKey, net::Mac> there;
        std::size_t counted = 0;
        for (const auto& [k, neighbor] : table.all()) {
            if (neighbor.has_mac) there[k] = neighbor.mac;
            counted += !neighbor.wanted && neighbor.phase != Phase::permanent;
        }
        if (told != there || counted > 42) {
            INFO("step " << step);
            CHECK(told == there);
            CHECK(counted <= 42);  // two may have been gateways a moment ago
            break;
        }
    }
}

}  // namespace
}  // namespace cachewire::control
