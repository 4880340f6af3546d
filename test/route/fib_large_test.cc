// SPDX-License-Identifier: BSD-3-Clause
// Vrf's large form: what rte_fib gets wrong, two copies, readers beside changes, real tables.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "route/next_hop.h"
#include "route/route_support.h"
#include "support/eal.h"
#include "support/random.h"
#include "support/skip.h"

using namespace cachewire;
using namespace cachewire::test;

namespace {

Vrf::Options rte_fib_form() {
    Vrf::Options o;
    o.compact_limit = 0;
    o.max_routes = 1u << 18;
    return o;
}

std::string v4_child(unsigned i) {
    return "10.0." + std::to_string(i / 16) + "." + std::to_string(i % 16 * 16) + "/28";
}

}  // namespace

TEST_CASE("fib: long prefixes can come and go for ever", "[route]") {  // B39
    ensure_eal();
    Vrf::Options o = rte_fib_form();
    o.tbl8_groups_v4 = o.tbl8_groups_v6 = 256;
    Vrf vrf("churn", o);
    publish(vrf, {add("192.0.2.0/24", 1), add("2001:db8:ffff::/48", 1)});  // stays, so that the form stays
    // The counts in rte_fib would be used up after 256 rounds; a rebuilt copy would show as a change of memory only, so
    // the number of rounds is what makes it slow to cheat.
    for (int round = 0; round < 2000; ++round) {
        std::vector<RouteChange> children, gone;
        for (unsigned i = 0; i < 4; ++i) {
            const std::string v6 = "2001:db8:0:" + std::to_string(i) + "::/64";
            children.push_back(add(v4_child(i), 5));
            children.push_back(add(v6, 5));
            gone.push_back(withdraw(v4_child(i)));
            gone.push_back(withdraw(v6));
        }
        publish(vrf, {add("10.0.0.0/23", 5), add("2001:db8::/32", 5)});
        publish(vrf, children);
        publish(vrf, {withdraw("10.0.0.0/23"), withdraw("2001:db8::/32")});
        if (round % 100 == 0) {
            CHECK(one(*vrf.view(), "10.0.0.17") == 5);
            CHECK(one(*vrf.view(), "10.0.0.64") == 0);
            CHECK(one(*vrf.view(), "2001:db8:0:3::1") == 5);
            CHECK(one(*vrf.view(), "2001:db8:0:4::1") == 0);
        }
        publish(vrf, gone);
    }
    publish(vrf, {add("10.0.0.0/28", 9), add("2001:db8::/64", 9)});
    CHECK(one(*vrf.view(), "10.0.0.1") == 9);
    CHECK(one(*vrf.view(), "2001:db8::1") == 9);
    CHECK(vrf.routes().size() == 4);
}

TEST_CASE("fib: a batch that finds no room in a copy moves to a larger one", "[route]") {
    ensure_eal();
    Vrf vrf("grow", rte_fib_form());
    publish(vrf, {add("10.0.0.0/8", 1), add("2001:db8::/32", 1)});
    const std::size_t before = vrf.stats().memory_bytes;
    // A copy begins with 256 groups.
    std::vector<RouteChange> batch;
    for (unsigned i = 0; i < 600; ++i) {
        batch.push_back(add("10." + std::to_string(i / 256) + "." + std::to_string(i % 256) + ".128/25", 2));
        batch.push_back({{address("2001:db8:" + std::to_string(i) + "::"), 48, Family::ip6}, std::uint16_t{2}});
        batch.push_back({{address("2001:db8:" + std::to_string(i) + "::"), 56, Family::ip6}, std::uint16_t{3}});
    }
    publish(vrf, batch);
    CHECK(vrf.stats().memory_bytes > before);
    CHECK(one(*vrf.view(), "10.2.87.129") == 2);
    CHECK(one(*vrf.view(), "10.2.87.1") == 1);
    CHECK(one(*vrf.view(), "2001:db8:599:1::") == 3);
    CHECK(one(*vrf.view(), "2001:db8:599:100::") == 2);
    CHECK(one(*vrf.view(), "2001:db8:600::") == 1);
}

TEST_CASE("fib: a batch over a limit is refused as a whole, in both families", "[route]") {
    ensure_eal();
    Vrf::Options o = rte_fib_form();
    o.tbl8_groups_v4 = 300;
    o.max_routes = 1000;
    Vrf vrf("full", o);
    publish(vrf, {add("10.0.0.0/8", 1), add("2001:db8::/32", 1)});
    const Routes before = vrf.routes();
    const auto unchanged = [&] {
        CHECK(vrf.routes() == before);
        CHECK_FALSE(vrf.waiting_for_grace_period());
        CHECK(one(*vrf.view(), "10.0.0.129") == 1);
        CHECK(one(*vrf.view(), "2001:db8:1::") == 1);
    };
    std::vector<RouteChange> groups = {add("2001:db8:1::/48", 4)}, routes = {add("10.0.0.128/25", 4)};
    for (unsigned i = 0; i < 400; ++i)
        groups.push_back(add("10." + std::to_string(i / 256) + "." + std::to_string(i % 256) + ".128/25", 2));
    for (unsigned i = 0; i < 1100; ++i)
        routes.push_back({{address("2001:db8:" + std::to_string(i) + "::"), 48, Family::ip6}, std::uint16_t{2}});
    for (int again = 0; again < 3; ++again) {
        REQUIRE_THROWS_AS(vrf.apply(groups), base::MachineError);
        unchanged();
        REQUIRE_THROWS_AS(vrf.apply(routes), base::MachineError);
        unchanged();
    }
    publish(vrf, {add("10.0.0.128/25", 3), add("2001:db8:1::/48", 4)});
    CHECK(one(*vrf.view(), "10.0.0.129") == 3);
    CHECK(one(*vrf.view(), "2001:db8:1::") == 4);
}

TEST_CASE("fib: no memory for a copy is an error that leaves the routes alone", "[route]") {
    ensure_eal();
    Vrf::Options o;
    o.compact_limit = 2;
    o.tbl8_groups_v6 = 1u << 22;
    Vrf vrf("memory", o);
    publish(vrf, {add("2001:db8::/32", 1)});
    std::vector<RouteChange> batch;
    // A /128 needs 13 groups of 1 KiB: more than EAL has here.
    std::mt19937_64 engine = random_engine();
    for (unsigned i = 0; i < 60000; ++i) {
        Address a = address("2001:db8::");
        for (unsigned b = 4; b < 16; ++b) a.bytes[b] = static_cast<std::uint8_t>(engine());
        batch.push_back({{a, 128, Family::ip6}, std::uint16_t{2}});
    }
    REQUIRE_THROWS_AS(vrf.apply(batch), base::MachineError);
    CHECK(vrf.routes().size() == 1);
    CHECK(one(*vrf.view(), "2001:db8::1") == 1);
}

TEST_CASE("fib: a view keeps its answers while later batches are applied", "[route]") {
    ensure_eal();
    for (const Form& form : kForms) {
        INFO(form.name);
        RandomRoutes random(random_engine());
        Vrf vrf("held", options(form));
        Routes oracle;
        std::vector<std::pair<std::shared_ptr<const FibView>, Routes>> held;
        for (int round = 0; round < 6; ++round) {
            std::vector<RouteChange> batch;
            for (int i = 0; i < 20; ++i) batch.push_back(random.any_change(oracle));
            apply_to(oracle, batch);
            publish(vrf, batch);
            if (round % 2) held.emplace_back(vrf.view(), oracle);
        }
        for (const auto& [view, routes] : held) check_against_naive(*view, routes, random);
    }
}

TEST_CASE("fib: a view outlives its VRF", "[route]") {
    ensure_eal();
    for (const Form& form : kForms) {
        auto vrf = std::make_unique<Vrf>("gone", options(form));
        publish(*vrf, {add("10.0.0.0/8", 3)});
        const auto view = vrf->view();
        vrf.reset();
        CHECK(one(*view, "10.1.2.3") == 3);
    }
}

TEST_CASE("fib: a batch before the grace period of the last is a programmer's error", "[route]") {
    ensure_eal();
    Vrf vrf("grace", rte_fib_form());
    vrf.apply(std::vector{add("10.0.0.0/8", 3)});
    REQUIRE(vrf.waiting_for_grace_period());
    CHECK_THROWS_AS(vrf.apply(std::vector{add("11.0.0.0/8", 3)}), std::logic_error);
    vrf.grace_period_over();
    CHECK_NOTHROW(vrf.apply(std::vector{add("11.0.0.0/8", 3)}));
}

// The publication that cachewire uses, in its simplest form: one reader that takes the pointer anew for every burst and
// says which one it took last; the writer frees nothing and replays nothing before the reader has moved on.
TEST_CASE("fib: a reader beside ceaseless changes sees only whole batches", "[route]") {
    ensure_eal();
    for (const Form& form : {kForms[0], kForms[1]}) {
        INFO(form.name);
        Vrf vrf("reader", options(form));
        // Each batch sets all of these to one next hop, so a burst must see the same one everywhere.
        const std::vector<std::string> prefixes = {"10.0.0.0/8",    "10.1.2.128/25",     "10.1.3.4/32",
                                                   "2001:db8::/32", "2001:db8:1:2::/64", "2001:db8::8/128"};
        std::vector<Address> addresses;
        for (const char* a : {"10.9.9.9", "10.1.2.129", "10.1.3.4", "2001:db8:9::", "2001:db8:1:2::3", "2001:db8::8"}) {
            addresses.push_back(address(a));
        }
        const auto all_to = [&](std::uint16_t next_hop) {
            std::vector<RouteChange> batch;
            for (const auto& p : prefixes) batch.push_back(add(p, next_hop));
            return batch;
        };
        publish(vrf, all_to(1));
        std::atomic<const FibView*> published{vrf.view().get()};
        std::atomic<const FibView*> seen{nullptr};
        std::atomic<bool> stop{false};
        std::atomic<unsigned> torn{0}, bursts{0};
        std::thread reader([&] {
            while (!stop.load(std::memory_order_acquire)) {
                const FibView* view = published.load(std::memory_order_acquire);
                const auto found = bulk(*view, addresses);
                for (const auto next_hop : found) torn += next_hop == 0 || next_hop != found[0] ? 1 : 0;
                ++bursts;
                seen.store(view, std::memory_order_release);
            }
        });
        for (std::uint16_t i = 2; i < 300; ++i) {
            std::vector<RouteChange> batch = all_to(i);
            // A parent that comes and goes makes groups appear and be recycled.
            batch.push_back(i % 2 ? add("10.1.0.0/16", i) : withdraw("10.1.0.0/16"));
            const auto old = vrf.view();
            const auto view = vrf.apply(batch);
            published.store(view.get(), std::memory_order_release);
            while (seen.load(std::memory_order_acquire) != view.get()) std::this_thread::yield();
            vrf.grace_period_over();
        }
        stop.store(true, std::memory_order_release);
        reader.join();
        CHECK(torn == 0);
        CHECK(bursts > 0);
    }
}

namespace {

// Real prefixes beside the checkout; every `step`th line.
std::vector<Prefix> real_prefixes(const char* file, unsigned step) {
    const std::filesystem::path path = std::filesystem::path(CACHEWIRE_SHARED) / "cases/fib" / file;
    if (!std::filesystem::exists(path)) return {};
    FILE* pipe = popen(("gzip -dc " + path.string()).c_str(), "r");
    if (pipe == nullptr) return {};
    std::vector<Prefix> out;
    char line[128];
    for (unsigned n = 0; std::fgets(line, sizeof line, pipe) != nullptr; ++n) {
        std::string text(line);
        text.erase(text.find_last_not_of("\r\n ") + 1);
        if (n % step != 0) continue;
        if (const auto parsed = net::parse_prefix(text)) out.push_back(parsed->prefix);
    }
    pclose(pipe);
    return out;
}

}  // namespace

TEST_CASE("fib: a sample of the real tables gives the longest match", "[route]") {
    ensure_eal();
    const auto v4 = real_prefixes("dfz-v4.txt.gz", 9);  // 100 k
    const auto v6 = real_prefixes("dfz-v6.txt.gz", 4);  // 40 k
    if (v4.empty() || v6.empty()) {
        say_skipped("no routing tables in ../shared/cases/fib");
        return;
    }
    std::mt19937_64 engine = random_engine();
    Vrf::Options o = rte_fib_form();
    o.compact_limit = 1024;
    Vrf vrf("dfz", o);
    std::vector<RouteChange> batch;
    for (const auto* prefixes : {&v4, &v6}) {
        for (const Prefix& p : *prefixes) batch.push_back({p, static_cast<std::uint16_t>(1 + engine() % 200)});
    }
    publish(vrf, batch);
    CHECK(vrf.stats().routes_v4 == v4.size());
    CHECK(vrf.stats().routes_v6 == v6.size());

    const auto check = [&](unsigned probes_per_family) {
        std::vector<Address> addresses;
        for (const auto* prefixes : {&v4, &v6}) {
            for (unsigned i = 0; i < probes_per_family; ++i) {
                const Prefix& p = (*prefixes)[engine() % prefixes->size()];
                Address a = p.address;
                const unsigned fixed = (p.family == Family::ip4 ? 96u : 0u) + p.length;
                for (unsigned bit = fixed; bit < 128; ++bit) {
                    if (engine() % 2) a.bytes[bit / 8] |= static_cast<std::uint8_t>(0x80u >> (bit % 8));
                }
                addresses.push_back(a);
            }
        }
        const auto found = bulk(*vrf.view(), addresses);
        for (std::size_t i = 0; i < addresses.size(); ++i) {
            const auto expected = vrf.lookup(addresses[i]);
            if (found[i] != (expected ? expected->next_hop : 0)) {
                INFO(net::to_string(addresses[i]));
                REQUIRE(found[i] == (expected ? expected->next_hop : 0));
            }
        }
    };
    check(50000);
    // Half of the prefixes move or go.
    batch.clear();
    for (const auto* prefixes : {&v4, &v6}) {
        for (std::size_t i = 0; i < prefixes->size(); i += 2) {
            batch.push_back({(*prefixes)[i], i % 4 ? std::nullopt : std::optional<std::uint16_t>(201 + i % 50)});
        }
    }
    publish(vrf, batch);
    check(20000);
}
