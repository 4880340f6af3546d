// SPDX-License-Identifier: BSD-3-Clause
// Vrf against the obvious: walk all routes, keep the longest that contains the address. Each case runs in both forms,
// sorted ranges and rte_fib, for both families.
#include "route/fib.h"

#include "base/error.h"
#include "route/next_hop.h"
#include "route/route_support.h"
#include "support/eal.h"
#include "support/random.h"

using namespace cachewire;
using namespace cachewire::test;

TEST_CASE("fib: random batches give what walking all routes gives", "[route]") {
    ensure_eal();
    for (const Form& form : kForms) {
        INFO(form.name);
        RandomRoutes random(random_engine());
        Vrf vrf("random", options(form));
        Routes oracle;
        for (int round = 0; round < 120; ++round) {
            std::vector<RouteChange> batch;
            const std::uint64_t size = 1 + random.number() % 12;
            for (std::uint64_t i = 0; i < size; ++i) batch.push_back(random.any_change(oracle));
            Routes wanted = oracle;
            apply_to(wanted, batch);
            const bool changes = wanted != oracle;
            vrf.apply(batch);
            REQUIRE(vrf.waiting_for_grace_period() == changes);
            if (random.number() % 4 == 0) {
                vrf.abandon();
            } else {
                if (random.number() % 2) vrf.grace_period_over();
                oracle = wanted;
            }
            REQUIRE(vrf.routes() == oracle);
            check_against_naive(*vrf.view(), oracle, random);
            vrf.grace_period_over();
        }
        const auto stats = vrf.stats();
        CHECK(stats.routes_v4 + stats.routes_v6 == oracle.size());
        CHECK(stats.memory_bytes > 0);
    }
}

// rte_fib writes over its whole table when a prefix changes that ends at 255.255.255.255 and has one inside that ends
// there too (22.11, 24.11).
TEST_CASE("fib: routes that reach the end of the address space change like any other", "[route]") {
    ensure_eal();
    for (const Form& form : kForms) {
        INFO(form.name);
        Vrf vrf("end", options(form));
        RandomRoutes random(random_engine());
        Routes oracle;
        const auto change = [&](const char* prefix, std::optional<std::uint16_t> next_hop) {
            INFO(prefix << (next_hop ? " changes" : " goes"));
            const std::vector<RouteChange> batch = {{net::parse_prefix(prefix)->prefix, next_hop}};
            apply_to(oracle, batch);
            publish(vrf, batch);
            REQUIRE(vrf.routes() == oracle);
            check_against_naive(*vrf.view(), oracle, random);
        };
        change("10.1.2.0/25", 9);
        for (const char* prefix : {"0.0.0.0/0", "128.0.0.0/1", "192.0.0.0/2", "240.0.0.0/4", "255.0.0.0/8",
                                   "255.255.255.0/24", "255.255.255.128/25", "255.255.255.255/32", "0.0.0.0/1",
                                   "128.0.0.0/2", "224.0.0.0/4", "255.255.255.254/32"})
            change(prefix, static_cast<std::uint16_t>(1 + oracle.size()));
        for (const char* prefix : {"0.0.0.0/0", "240.0.0.0/4", "128.0.0.0/1", "255.255.255.128/25", "0.0.0.0/1"})
            change(prefix, 20);
        for (const char* prefix : {"128.0.0.0/2", "255.0.0.0/8", "128.0.0.0/1", "0.0.0.0/0", "255.255.255.254/32",
                                   "224.0.0.0/4", "192.0.0.0/2", "240.0.0.0/4", "0.0.0.0/1", "255.255.255.255/32"})
            change(prefix, std::nullopt);
        CHECK(one(*vrf.view(), "10.1.2.3") == 9);
    }
}

TEST_CASE("fib: the slow look-up gives the same routes as the view", "[route]") {
    ensure_eal();
    RandomRoutes random(random_engine());
    Vrf vrf("slow", options(kForms[0]));
    Routes oracle;
    std::vector<RouteChange> batch;
    for (int i = 0; i < 200; ++i) batch.push_back(random.any_change({}));
    apply_to(oracle, batch);
    publish(vrf, batch);
    for (const Address& a : probes(oracle, random)) {
        const auto entry = vrf.lookup(a);
        REQUIRE((entry ? entry->next_hop : 0) == naive(oracle, a));
        if (entry) REQUIRE(entry->prefix.contains(a));
    }
}

TEST_CASE("fib: a default route matches what nothing else covers, first or last", "[route]") {  // B38
    ensure_eal();
    for (const Form& form : kForms) {
        INFO(form.name);
        Vrf first("first", options(form));
        publish(first, {add("0.0.0.0/0", 7), add("::/0", 8)});
        CHECK(one(*first.view(), "192.0.2.1") == 7);
        CHECK(one(*first.view(), "0.0.0.0") == 7);
        CHECK(one(*first.view(), "255.255.255.255") == 7);
        CHECK(one(*first.view(), "2001:db8::1") == 8);
        CHECK(one(*first.view(), "::") == 8);
        CHECK(one(*first.view(), "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff") == 8);

        Vrf last("last", options(form));
        publish(last, {add("255.255.255.254/32", 1), add("10.0.0.0/8", 2), add("ffff::/16", 3)});
        publish(last, {add("0.0.0.0/0", 7), add("::/0", 8)});
        CHECK(one(*last.view(), "255.255.255.254") == 1);
        CHECK(one(*last.view(), "255.255.255.253") == 7);
        CHECK(one(*last.view(), "10.255.255.255") == 2);
        CHECK(one(*last.view(), "11.0.0.0") == 7);
        CHECK(one(*last.view(), "ffff::1") == 3);
        CHECK(one(*last.view(), "2001:db8::1") == 8);
        publish(last, {withdraw("0.0.0.0/0"), withdraw("::/0")});
        CHECK(one(*last.view(), "11.0.0.0") == 0);
        CHECK(one(*last.view(), "10.1.2.3") == 2);
        CHECK(one(*last.view(), "2001:db8::1") == 0);
        CHECK(one(*last.view(), "ffff::1") == 3);
    }
}

TEST_CASE("fib: every prefix length matches exactly its own addresses", "[route]") {
    ensure_eal();
    for (const Form& form : kForms) {
        INFO(form.name);
        Vrf vrf("lengths", options(form));
        for (const Family family : {Family::ip4, Family::ip6}) {
            const unsigned bits = family == Family::ip4 ? 32 : 128;
            const Address base =
                family == Family::ip4 ? address("10.170.85.173") : address("2001:db8:aaaa:5555:abcd:1234:8765:ad");
            std::vector<RouteChange> batch;
            for (unsigned length = 0; length <= bits; ++length) {
                batch.push_back({{with_tail(base, family, length, false), static_cast<std::uint8_t>(length), family},
                                 static_cast<std::uint16_t>(length + 1)});
            }
            publish(vrf, batch);
            // An address that shares exactly `length` bits with the base.
            for (unsigned length = 0; length <= bits; ++length) {
                Address a = base;
                if (length < bits) {
                    const unsigned bit = (family == Family::ip4 ? 96 : 0) + length;
                    a.bytes[bit / 8] ^= static_cast<std::uint8_t>(0x80u >> (bit % 8));
                }
                INFO(net::to_string(a));
                REQUIRE(bulk(*vrf.view(), {a})[0] == length + 1);
            }
        }
    }
}

TEST_CASE("fib: a refused batch changes nothing, whatever stands before the fault", "[route]") {  // B41
    ensure_eal();
    const Prefix host_bits{address("10.0.0.1"), 8, Family::ip4};
    const Prefix too_long{address("10.0.0.0"), 33, Family::ip4};
    const Prefix wrong_family{address("2001:db8::"), 32, Family::ip4};
    const struct {
        const char* what;
        RouteChange fault;
    } cases[] = {
        {"next hop over the limit", add("192.0.2.0/24", route::kMaxNextHops + 1)},
        {"next hop 0", add("192.0.2.0/24", 0)},
        {"replacement by a next hop over the limit", add("10.0.0.0/8", 65535)},
        {"host bits", {host_bits, 1}},
        {"length over the family's", {too_long, 1}},
        {"address of the other family", {wrong_family, 1}},
    };
    for (const Form& form : kForms) {
        Vrf vrf("refused", options(form));
        publish(vrf, {add("10.0.0.0/8", 5), add("2001:db8::/32", 6)});
        const Routes before = vrf.routes();
        const auto view = vrf.view();
        for (const auto& c : cases) {
            INFO(form.name << ": " << c.what);
            REQUIRE_THROWS_AS(vrf.apply(std::vector{add("10.1.0.0/16", 9), withdraw("10.0.0.0/8"), c.fault}),
                              base::MachineError);
            CHECK(vrf.routes() == before);
            CHECK(vrf.view() == view);
            CHECK_FALSE(vrf.waiting_for_grace_period());
            CHECK(one(*view, "10.1.0.1") == 5);
            CHECK(one(*view, "2001:db8::1") == 6);
        }
        publish(vrf, {add("10.0.0.0/8", route::kMaxNextHops)});
        CHECK(one(*vrf.view(), "10.1.0.1") == route::kMaxNextHops);
    }
}
