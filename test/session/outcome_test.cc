// SPDX-License-Identifier: BSD-3-Clause
#include "session/outcome.h"

#include <map>
#include <tuple>
#include <vector>

#include "support/catch.h"
#include "support/random.h"

using namespace cachewire::session;

TEST_CASE("outcomes: equal verdicts share an index, different ones don't", "[session]") {
    OutcomeTable table;
    const std::uint16_t a = table.intern({.permit = true, .traffic_class = 1, .policer = 7});
    const std::uint16_t b = table.intern({.permit = true, .traffic_class = 1, .policer = 8});
    CHECK(table.intern({.permit = true, .traffic_class = 1, .policer = 7}) == a);
    CHECK(a != b);
    CHECK(table.size() == 2);
    CHECK(table.references(a) == 2);
    CHECK(table[a].policer == 7);
    CHECK(table[b].policer == 8);
}

TEST_CASE("outcomes: an index is free after its last reference", "[session]") {
    OutcomeTable table(1);
    const Outcome first{.permit = true};
    const Outcome second{.permit = false};
    const std::uint16_t i = table.intern(first);
    REQUIRE(table.intern(first) == i);
    CHECK(table.intern(second) == kNoOutcome);
    table.release(i);
    CHECK(table.intern(second) == kNoOutcome);
    table.release(i);
    CHECK(table.size() == 0);
    CHECK(table.intern(second) == i);
    CHECK_FALSE(table[i].permit);
}

TEST_CASE("outcomes: every index that 16 bits leave is used, then it is full", "[session]") {
    OutcomeTable table;
    std::vector<bool> seen(kNoOutcome, false);
    for (unsigned i = 0; i < kNoOutcome; ++i) {
        const Outcome outcome{.permit = true,
                              .traffic_class = static_cast<std::uint8_t>(i >> 12),
                              .policer = static_cast<std::uint16_t>(i)};
        const std::uint16_t index = table.intern(outcome);
        REQUIRE(index != kNoOutcome);
        REQUIRE_FALSE(seen[index]);
        seen[index] = true;
    }
    CHECK(table.intern({.permit = false}) == kNoOutcome);
    CHECK(table.intern({.permit = true, .traffic_class = 0, .policer = 5}) != kNoOutcome);
    CHECK(table.size() == kNoOutcome);
    table.release(kNoOutcome);  // what a session without a memo holds
    CHECK(table.size() == kNoOutcome);
}

TEST_CASE("outcomes: a verdict and the same one with another for replies are two values", "[session]") {
    OutcomeTable table;
    const Outcome permit{.permit = true}, deny{};
    const std::uint16_t alone = table.intern(permit);
    const Verdicts both{permit, deny, 7, true, true}, reply{{}, deny, 7, false, true};
    const std::uint16_t with_reply = table.intern(both), reply_alone = table.intern(reply);
    CHECK((alone != with_reply && with_reply != reply_alone && alone != reply_alone));
    CHECK(table.intern(both) == with_reply);
    CHECK(table.intern(Verdicts{permit, deny, 8, true, true}) != with_reply);
    CHECK((table.verdicts(with_reply) == both && table.verdicts(reply_alone) == reply));
    CHECK((table.knows_forward(alone) && !table.knows_reverse(alone)));
    CHECK((!table.knows_forward(reply_alone) && table.knows_reverse(reply_alone)));
    CHECK((!table.knows_forward(kNoOutcome) && !table.knows_reverse(kNoOutcome)));
    CHECK(table.verdicts(kNoOutcome) == Verdicts{});
    CHECK(table[with_reply].permit);
    CHECK_FALSE(table.reverse(with_reply).permit);
}

TEST_CASE("outcomes: what packets can make many of leaves half of the indices", "[session]") {
    OutcomeTable table(8);
    std::uint64_t fields = 0;
    const auto with_reply = [&] { return table.intern(Verdicts{{.permit = 1}, {}, fields++, true, true}); };
    const std::uint16_t first = with_reply();
    for (int i = 0; i < 3; ++i) CHECK(with_reply() != kNoOutcome);
    CHECK(with_reply() == kNoOutcome);
    for (std::uint8_t i = 0; i < 4; ++i) CHECK(table.intern({.traffic_class = i}) != kNoOutcome);
    table.release(first);
    CHECK(with_reply() == first);
}

TEST_CASE("outcomes: random use equals a map of counts", "[session]") {
    auto rng = cachewire::test::random_engine();
    INFO("seed " << cachewire::test::seed());
    OutcomeTable table(20);
    using Key = std::tuple<bool, unsigned, unsigned>;
    std::map<Key, std::pair<std::uint16_t, std::uint32_t>> model;  // index, references
    for (int step = 0; step < 200000; ++step) {
        const Key key{rng() % 2 != 0, rng() % 3, rng() % 6};
        const auto it = model.find(key);
        if (rng() % 2 == 0) {
            const std::uint16_t index = table.intern({.permit = std::get<0>(key),
                                                      .traffic_class = static_cast<std::uint8_t>(std::get<1>(key)),
                                                      .policer = static_cast<std::uint16_t>(std::get<2>(key))});
            if (it != model.end()) {
                REQUIRE(index == it->second.first);
                ++it->second.second;
            } else if (model.size() == 20) {
                REQUIRE(index == kNoOutcome);
            } else {
                REQUIRE(index < 20);
                model[key] = {index, 1};
            }
        } else if (it != model.end()) {
            REQUIRE(table.references(it->second.first) == it->second.second);
            table.release(it->second.first);
            if (--it->second.second == 0) model.erase(it);
        }
        REQUIRE(table.size() == model.size());
    }
}
