// SPDX-License-Identifier: BSD-3-Clause
#include "session/quota.h"

#include <algorithm>
#include <vector>

#include "session/keys.h"
#include "session/table.h"
#include "support/catch.h"
#include "support/random.h"

using namespace cachewire;
using session::Found;
using session::OutcomeTable;
using session::Quota;
using session::QuotaCredit;
using session::SharedQuotas;
using session::Table;
using Insert = session::Table::Insert;

namespace {

constexpr std::uint64_t kMicrosecondHz = 1'000'000;
constexpr std::size_t kTenant = 3;

unsigned take_many(QuotaCredit& credit, const Quota& quota, std::uint64_t now, unsigned tries) {
    unsigned taken = 0;
    for (unsigned i = 0; i < tries; ++i) taken += credit.take(kTenant, quota, now) ? 1 : 0;
    return taken;
}

}  // namespace

TEST_CASE("quota: one worker gets exactly the limit, and back exactly what it releases", "[session]") {
    for (const std::uint32_t limit : {1u, 10u, 999u, 5000u, 100'000u}) {
        INFO("limit " << limit);
        QuotaCredit credit(std::make_shared<SharedQuotas>(), kMicrosecondHz);
        const Quota quota{.sessions = limit};
        CHECK(take_many(credit, quota, 0, limit + 100) == limit);
        for (std::uint32_t i = 0; i < limit / 2; ++i) credit.release(kTenant);
        CHECK(take_many(credit, quota, 0, limit) == limit / 2);
        CHECK_FALSE(credit.take(kTenant, quota, 0));
        credit.release(kTenant);
        CHECK(credit.take(kTenant, quota, 0));
        credit.undo(kTenant);
        CHECK(credit.take(kTenant, quota, 0));
    }
}

TEST_CASE("quota: a lower limit holds as soon as enough have ended, a higher one at once", "[session]") {
    QuotaCredit credit(std::make_shared<SharedQuotas>(), kMicrosecondHz);
    CHECK(take_many(credit, {.sessions = 100}, 0, 200) == 100);
    CHECK(take_many(credit, {.sessions = 150}, 0, 200) == 50);
    CHECK(take_many(credit, {}, 0, 200) == 200);              // no limit
    CHECK(take_many(credit, {.sessions = 20}, 0, 64) <= 64);  // what one chunk had left over
    unsigned active = 0;
    for (unsigned i = 0; i < 500; ++i) credit.release(kTenant);
    active = take_many(credit, {.sessions = 20}, 0, 200);
    CHECK(active <= 20 + 64);
}

TEST_CASE("quota: a rate is a rate, and a tenth of a second may be saved up", "[session]") {
    struct Case {
        std::uint32_t per_second, at_once;
    };
    for (const Case c : {Case{1, 1}, Case{10, 1}, Case{100, 10}, Case{1000, 100}, Case{200'000, 20'000}}) {
        INFO(c.per_second << " a second");
        QuotaCredit credit(std::make_shared<SharedQuotas>(), kMicrosecondHz);
        const Quota quota{.new_per_second = c.per_second};
        std::uint64_t now = 1000 * kMicrosecondHz;
        CHECK(take_many(credit, quota, now, 2 * c.at_once + 10) == c.at_once);
        // Asked for all the time, and far too often.
        unsigned taken = 0;
        for (unsigned step = 0; step < 10'000; ++step) {
            now += kMicrosecondHz / 1000;
            taken += take_many(credit, quota, now, c.per_second / 500 + 2);
        }
        CHECK(taken <= 10 * c.per_second);
        CHECK(taken >= 10 * c.per_second - 10 * c.per_second / 1000 - 1);
        now += 3600 * kMicrosecondHz;
        CHECK(take_many(credit, quota, now, 2 * c.at_once + 10) == c.at_once);
    }
}

TEST_CASE("quota: a rate that rises holds at once, for who has just been refused too", "[session]") {
    QuotaCredit credit(std::make_shared<SharedQuotas>(), kMicrosecondHz);
    const std::uint64_t now = 1000 * kMicrosecondHz;
    CHECK(take_many(credit, {.new_per_second = 1}, now, 5) == 1);
    CHECK_FALSE(credit.take(kTenant, {.new_per_second = 1}, now + kMicrosecondHz / 2));
    CHECK(credit.take(kTenant, {.new_per_second = 2}, now + kMicrosecondHz / 2));
    CHECK_FALSE(credit.take(kTenant, {.new_per_second = 2}, now + kMicrosecondHz - 1));
    CHECK(credit.take(kTenant, {.new_per_second = 2}, now + kMicrosecondHz));
}

TEST_CASE("quota: several workers share one limit in chunks, and an idle one keeps little from the others",
          "[session]") {
    constexpr std::uint32_t kLimit = 20'000, kChunk = 20;
    auto shared = std::make_shared<SharedQuotas>();
    std::vector<std::unique_ptr<QuotaCredit>> workers;
    for (int i = 0; i < 4; ++i) workers.push_back(std::make_unique<QuotaCredit>(shared, kMicrosecondHz));
    const Quota quota{.sessions = kLimit};
    std::mt19937_64 rng = test::random_engine();
    INFO("seed " << test::seed());
    std::vector<std::uint32_t> active(4);
    const auto total = [&] { return active[0] + active[1] + active[2] + active[3]; };
    for (int step = 0; step < 200'000; ++step) {
        const std::size_t w = rng() % 4;
        if (rng() % 3 != 0) {
            active[w] += workers[w]->take(kTenant, quota, 0) ? 1 : 0;
        } else if (active[w] != 0) {
            --active[w];
            workers[w]->release(kTenant);
        }
        REQUIRE(total() <= kLimit);
    }
    // Three fall silent and end all they have; the fourth gets all but two chunks of each.
    for (std::size_t w = 1; w < 4; ++w)
        for (; active[w] != 0; --active[w]) workers[w]->release(kTenant);
    active[0] += take_many(*workers[0], quota, 0, 2 * kLimit);
    CHECK(active[0] <= kLimit);
    CHECK(active[0] >= kLimit - 3 * 2 * kChunk);
}

TEST_CASE("quota: a worker that goes gives back what lies idle", "[session]") {
    auto shared = std::make_shared<SharedQuotas>();
    const Quota quota{.sessions = 100'000};
    {
        QuotaCredit gone(shared, kMicrosecondHz);
        CHECK(gone.take(kTenant, quota, 0));
        gone.release(kTenant);
    }
    QuotaCredit credit(shared, kMicrosecondHz);
    CHECK(take_many(credit, quota, 0, 200'000) == 100'000);
}

TEST_CASE("quota: a tenant at its quota is refused by name, others are not", "[session]") {
    Table table(1000, -1, kMicrosecondHz, {});
    OutcomeTable outcomes;
    const auto insert = [&](std::uint32_t number, std::uint16_t tenant, const Quota& quota, Found& found) {
        const net::FlowKey key = test::key_v4(number, 1, 2, 2, test::kUdp, tenant);
        return table.insert(key, test::hash_of(key), 100 * kMicrosecondHz, quota, found);
    };
    Found found;
    const Quota two{.sessions = 2};
    CHECK(insert(1, 1, two, found) == Insert::created);
    const std::uint32_t first = found.index;
    CHECK(insert(2, 1, two, found) == Insert::created);
    CHECK(insert(3, 1, two, found) == Insert::quota_denied);
    CHECK(found.index == session::kNone);
    CHECK(insert(1, 1, two, found) == Insert::exists);  // takes nothing
    CHECK(insert(3, 2, {}, found) == Insert::created);
    CHECK(table.use(1).quota_denied.read() == 1);
    CHECK(table.use(2).quota_denied.read() == 0);
    table.erase(first, outcomes);
    CHECK(insert(3, 1, two, found) == Insert::created);
    CHECK(insert(4, 1, two, found) == Insert::quota_denied);

    // What did not begin for another reason takes nothing either.
    Table small(1, -1, kMicrosecondHz, {});
    const Quota one{.sessions = 1, .new_per_second = 10};
    const net::FlowKey key = test::key_v4(9, 1, 2, 2, test::kUdp, 1);
    CHECK(small.insert(key, test::hash_of(key), 100 * kMicrosecondHz, {}, found) == Insert::created);
    const std::uint32_t index = found.index;
    const net::FlowKey other = test::key_v4(10, 1, 2, 2, test::kUdp, 2);
    CHECK(small.insert(other, test::hash_of(other), 100 * kMicrosecondHz, one, found) == Insert::table_full);
    small.erase(index, outcomes);
    CHECK(small.insert(other, test::hash_of(other), 100 * kMicrosecondHz, one, found) == Insert::created);
}
