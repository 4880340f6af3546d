// SPDX-License-Identifier: BSD-3-Clause
#include "route/group.h"

#include <map>

#include "support/catch.h"
#include "support/random.h"

using namespace cachewire;
using route::Group;
using route::Member;

namespace {

std::map<std::uint16_t, unsigned> counts(const Group& group) {
    std::map<std::uint16_t, unsigned> out;
    for (const std::uint16_t hop : group.buckets()) ++out[hop];
    return out;
}

unsigned moved(const Group& a, const Group& b) {
    unsigned n = 0;
    for (unsigned i = 0; i < Group::kBuckets; ++i) n += a.buckets()[i] != b.buckets()[i];
    return n;
}

}  // namespace

TEST_CASE("group: members have buckets by weight, to within one", "[route]") {
    const struct {
        std::vector<Member> members;
        std::map<std::uint16_t, unsigned> expected;
    } cases[] = {
        {{{7, 1}}, {{7, 1024}}},
        {{{7, 1}, {8, 1}}, {{7, 512}, {8, 512}}},
        {{{7, 1}, {8, 3}}, {{7, 256}, {8, 768}}},
        {{{7, 1}, {8, 1}, {9, 1}}, {{7, 342}, {8, 341}, {9, 341}}},
        {{{7, 1, false}, {8, 1}, {9, 3}}, {{8, 256}, {9, 768}}},
        {{{7, 1, false}, {8, 1, false}}, {{7, 512}, {8, 512}}},  // no better place: all of them
        {{{7, 1}, {8, 1023}}, {{7, 1}, {8, 1023}}},
    };
    for (const auto& c : cases) CHECK(counts(Group(c.members, nullptr)) == c.expected);
}

TEST_CASE("group: losing a member moves its share and nothing else, in any order", "[route]") {
    std::mt19937_64 engine = test::random_engine();
    for (int round = 0; round < 50; ++round) {
        std::vector<Member> members;
        const unsigned n = 2 + static_cast<unsigned>(engine() % 15);
        for (unsigned i = 0; i < n; ++i)
            members.push_back({static_cast<std::uint16_t>(100 + i * 3), static_cast<std::uint16_t>(1 + engine() % 20)});
        auto group = std::make_unique<Group>(members, nullptr);
        for (unsigned lost = 0; lost + 1 < n; ++lost) {
            unsigned victim = static_cast<unsigned>(engine() % n);
            while (!members[victim].up) victim = (victim + 1) % n;
            members[victim].up = false;
            auto next = std::make_unique<Group>(members, group.get());
            CHECK(moved(*group, *next) == counts(*group)[members[victim].next_hop]);
            CHECK(counts(*next).count(members[victim].next_hop) == 0);
            CHECK_FALSE(next->has(members[victim].next_hop));
            group = std::move(next);
        }
    }
}

TEST_CASE("group: who comes back gets its share, and no more moves", "[route]") {
    std::vector<Member> members = {{1, 1}, {2, 1}, {3, 1}, {4, 1}};
    const Group whole(members, nullptr);
    members[2].up = false;
    const Group without(members, &whole);
    members[2].up = true;
    const Group again(members, &without);
    CHECK(counts(again) == counts(whole));
    CHECK(moved(without, again) == 256);
    CHECK(again.has(3));
}

TEST_CASE("group: groups with common members agree on most buckets", "[route]") {
    const Group four({{1, 1}, {2, 1}, {3, 1}, {4, 1}}, nullptr);
    const Group three({{1, 1}, {2, 1}, {4, 1}}, nullptr);
    // A quarter has to move. What the quotas move beyond that is bounded by half of it; no agreement would be three
    // quarters.
    CHECK(moved(four, three) < Group::kBuckets * 3 / 8);
}

TEST_CASE("group: every bucket is in reach of a hash", "[route]") {
    std::vector<bool> seen(Group::kBuckets);
    std::mt19937_64 engine = test::random_engine();
    for (int i = 0; i < 100000; ++i) seen[Group::bucket(static_cast<std::uint32_t>(engine()))] = true;
    CHECK(std::count(seen.begin(), seen.end(), true) == Group::kBuckets);
}
