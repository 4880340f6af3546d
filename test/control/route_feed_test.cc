// SPDX-License-Identifier: BSD-3-Clause
// Routes and neighbours at run time, through the real builder and publisher; the worker is this test, which says that
// it has come round.
#include "control/route_feed.h"

#include "config/load.h"
#include "control/next_hops.h"
#include "support/catch.h"
#include "support/config_of.h"
#include "support/eal.h"
#include "support/packet_builder.h"

namespace cachewire {
namespace {

using control::RouteFeed;
using control::RouteSource;
using route::NextHopKind;

const std::string kRouter = R"(version: 1
ports: [{name: west, device: net_null0}, {name: east, device: net_null1}]
tenants:
  - {name: red, id: 10, match: [{port: west}]}
  - {name: blue, id: 20, match: [{port: east}]}
interfaces:
  - {name: lan, port: west, addresses: ["10.0.0.1/24", "2001:db8::1/64"]}
  - {name: wan, port: east, addresses: ["192.0.2.1/24"]}
neighbors:
  - {tenant: red, address: 10.0.0.9, mac: "02:00:00:00:00:09"}
routes:
  - {tenant: red, prefix: 172.16.0.0/12, via: 10.0.0.9}
  - {tenant: red, prefix: 203.0.113.0/24, via: {tenant: blue}}
  - {tenant: red, prefix: 198.51.100.0/24, via: [10.0.0.9, 10.0.0.10, {address: 10.0.0.11, weight: 2}]}
)";

net::Mac mac(std::uint8_t last) { return net::Mac{{2, 0, 0, 0, 1, last}}; }

struct Fixture {
    Fixture()
        : builder({{"west", {0, 1, test::kRouterMac}}, {"east", {1, 1, net::Mac{{2, 0, 0, 0, 0, 2}}}}}, {}, -1),
          worker(publisher.add_worker()),
          feed(builder, publisher) {
        test::ensure_eal();
        worker.online();
        load(kRouter);
    }
    ~Fixture() { worker.offline(); }

    void load(const std::string& text) {
        config = test::config_of(text);
        auto pass = builder.begin(config, ++generation);
        builder.complete(*pass);
        publisher.publish(builder.commit(std::move(pass)), [this] { builder.grace_period_over(); });
        come_round();
    }
    void come_round() {
        worker.quiescent();
        REQUIRE(publisher.reap() == 0);
    }
    bool flush() {
        const bool published = feed.flush(now_ms += 50);
        come_round();
        return published;
    }
    [[nodiscard]] const pipeline::Snapshot& snapshot() const { return *publisher.current(); }
    std::uint16_t slot(const char* tenant) const { return *builder.registry().tenants.find(tenant); }
    std::uint16_t interface(const char* name) const { return *builder.registry().interfaces.find(name); }
    const route::NextHop& hop(const char* tenant, const char* destination) const {
        const net::Address address = test::address(destination);
        const net::Address* one = &address;
        std::uint16_t index = 0;
        snapshot().tenants[slot(tenant)].fib->lookup({&one, 1}, {&index, 1});
        return snapshot().next_hops[index];
    }
    NextHopKind kind(const char* tenant, const char* destination) const { return hop(tenant, destination).kind; }
    std::uint16_t route_generation(const char* tenant) const {
        return snapshot().tenants[slot(tenant)].route_generation;
    }
    void neighbor(const char* address, std::optional<net::Mac> known, bool failed = false) {
        feed.set_neighbor(slot("red"), interface("lan"), test::address(address), {known, failed});
    }
    void route(RouteSource source, const char* prefix, std::vector<const char*> via) {
        std::vector<control::FedVia> vias;
        for (const char* v : via) vias.push_back({interface("lan"), test::address(v), 1});
        feed.set_route(source, slot("red"), net::parse_prefix(prefix)->prefix, std::move(vias));
    }
    void withdraw(RouteSource source, const char* prefix) {
        feed.withdraw(source, slot("red"), net::parse_prefix(prefix)->prefix);
    }

    control::SnapshotBuilder builder;
    control::Publisher publisher{1};
    pipeline::SnapshotReader worker;
    RouteFeed feed;
    config::Config config;
    std::uint64_t generation = 0, now_ms = 1000;
};

TEST_CASE_METHOD(Fixture, "route feed: a neighbour that is found forwards, and one that is lost does not",
                 "[control]") {
    CHECK(kind("red", "10.0.0.77") == NextHopKind::unresolved);
    CHECK(hop("red", "10.0.0.77").via == net::Address{});
    neighbor("10.0.0.77", mac(7));
    REQUIRE(flush());
    CHECK(kind("red", "10.0.0.77") == NextHopKind::forward);
    CHECK(hop("red", "10.0.0.77").l2_header[5] == 7);
    CHECK(kind("red", "10.0.0.78") == NextHopKind::unresolved);

    neighbor("10.0.0.77", mac(8));  // another MAC: the next hop's content, and no route
    const auto bound = route_generation("red");
    REQUIRE(flush());
    CHECK(hop("red", "10.0.0.77").l2_header[5] == 8);
    CHECK(route_generation("red") == bound);

    neighbor("10.0.0.77", std::nullopt);
    REQUIRE(flush());
    CHECK(kind("red", "10.0.0.77") == NextHopKind::unresolved);
    CHECK(hop("red", "10.0.0.77").via == net::Address{});
}

TEST_CASE_METHOD(Fixture, "route feed: a gateway that is found serves the configuration's routes", "[control]") {
    load(kRouter + "  - {tenant: red, prefix: 0.0.0.0/0, via: 10.0.0.50}\n");
    CHECK(kind("red", "8.8.8.8") == NextHopKind::unresolved);
    neighbor("10.0.0.50", mac(5));
    REQUIRE(flush());
    CHECK(kind("red", "8.8.8.8") == NextHopKind::forward);
    CHECK(hop("red", "8.8.8.8").via == test::address("10.0.0.50"));
    load(kRouter + "  - {tenant: red, prefix: 0.0.0.0/0, via: 10.0.0.50}\n");  // a reload forgets nothing
    CHECK(kind("red", "8.8.8.8") == NextHopKind::forward);
    CHECK(kind("red", "10.0.0.50") == NextHopKind::forward);
}

TEST_CASE_METHOD(Fixture, "route feed: connected before configured before kernel before neighbour", "[control]") {
    route(RouteSource::kernel, "172.16.0.0/12", {"10.0.0.10"});
    route(RouteSource::kernel, "10.0.0.0/24", {});
    route(RouteSource::kernel, "8.8.8.0/24", {"10.0.0.10"});
    route(RouteSource::neighbor, "8.8.8.0/24", {"10.0.0.11"});
    REQUIRE(flush());  // the sources take turns
    CHECK(hop("red", "8.8.8.8").via == test::address("10.0.0.11"));
    REQUIRE(flush());
    CHECK(hop("red", "172.16.0.1").via == test::address("10.0.0.9"));
    CHECK(kind("red", "10.0.0.78") == NextHopKind::unresolved);
    CHECK(hop("red", "8.8.8.8").via == test::address("10.0.0.10"));

    // What waited comes forward when the better source's goes, also by a reload.
    std::string without = kRouter;
    const std::string line = "  - {tenant: red, prefix: 172.16.0.0/12, via: 10.0.0.9}\n";
    without.erase(without.find(line), line.size());
    load(without);
    CHECK(hop("red", "172.16.0.1").via == test::address("10.0.0.10"));
    load(kRouter);
    CHECK(hop("red", "172.16.0.1").via == test::address("10.0.0.9"));
    withdraw(RouteSource::kernel, "8.8.8.0/24");
    withdraw(RouteSource::kernel, "172.16.0.0/12");
    REQUIRE(flush());
    CHECK(hop("red", "8.8.8.8").via == test::address("10.0.0.11"));
    CHECK(hop("red", "172.16.0.1").via == test::address("10.0.0.9"));
    feed.withdraw_all(RouteSource::neighbor, slot("red"));
    REQUIRE(flush());
    CHECK(kind("red", "8.8.8.8") == NextHopKind::no_route);
}

TEST_CASE_METHOD(Fixture, "route feed: what the kernel calls its own is among the tenant's addresses", "[control]") {
    const auto may_be_local = [this](const char* address) {
        return (snapshot().tenants[slot("red")].local_ends & pipeline::end_bit(test::address(address))) != 0;
    };
    const auto local = [this](const char* prefix) {
        feed.set_route(RouteSource::kernel, slot("red"), net::parse_prefix(prefix)->prefix, {{.local = true}});
        REQUIRE(flush());
    };
    REQUIRE_FALSE(may_be_local("198.51.100.42"));
    REQUIRE_FALSE(may_be_local("2001:db8::2b"));
    local("198.51.100.42/32");
    CHECK(kind("red", "198.51.100.42") == NextHopKind::local);
    CHECK(may_be_local("198.51.100.42"));
    CHECK(may_be_local("2001:db8::2a"));  // one that ends like it; its route says that it isn't
    CHECK_FALSE(may_be_local("2001:db8::2b"));
    load(kRouter);  // a reload keeps what came beside the configuration
    CHECK(may_be_local("198.51.100.42"));
    local("203.0.113.0/28");
    CHECK(kind("red", "203.0.113.9") == NextHopKind::local);
    CHECK(may_be_local("203.0.113.9"));
}

TEST_CASE_METHOD(Fixture, "route feed: at most twenty publications a second touch a VRF, and none is lost",
                 "[control]") {
    neighbor("10.0.0.20", mac(1));
    CHECK(feed.flush(now_ms));
    come_round();
    neighbor("10.0.0.21", mac(1));
    CHECK_FALSE(feed.flush(now_ms + 49));
    CHECK(feed.stats().pending != 0);
    CHECK(feed.flush(now_ms + 50));
    CHECK(feed.stats().pending == 0);
    neighbor("10.0.0.22", mac(1));
    CHECK_FALSE(feed.flush(now_ms + 200));  // the worker has not come round
    come_round();
    CHECK(feed.flush(now_ms + 200));
    come_round();
    CHECK(kind("red", "10.0.0.22") == NextHopKind::forward);
}

TEST_CASE_METHOD(Fixture, "route feed: a failed neighbour leaves its group, and sessions look again", "[control]") {
    for (const char* address : {"10.0.0.10", "10.0.0.11"}) neighbor(address, mac(1));
    REQUIRE(flush());
    REQUIRE(kind("red", "198.51.100.1") == NextHopKind::group);
    const auto group_now = [&] { return snapshot().groups[hop("red", "198.51.100.1").group]; };
    const auto whole = group_now();
    CHECK(whole->members().size() == 3);
    const std::uint16_t lost = *builder.registry().next_hops.find(
        {slot("red"), interface("lan"), control::NextHopUse::neighbor, test::address("10.0.0.11")});
    CHECK(std::count(whole->buckets().begin(), whole->buckets().end(), lost) == 512);
    const auto before = route_generation("red");
    neighbor("10.0.0.11", std::nullopt, true);
    REQUIRE(flush());
    const auto rest = group_now();
    CHECK_FALSE(rest->has(lost));
    CHECK(route_generation("red") != before);
    unsigned moved = 0;
    for (unsigned b = 0; b < route::Group::kBuckets; ++b) moved += whole->buckets()[b] != rest->buckets()[b];
    CHECK(moved == 512);
    neighbor("10.0.0.11", mac(3));
    REQUIRE(flush());
    CHECK(group_now()->has(lost));
}

TEST_CASE_METHOD(Fixture, "route feed: changes of a tenant are those of who looks at it", "[control]") {
    CHECK(kind("red", "203.0.113.1") == NextHopKind::leak);
    CHECK(hop("red", "203.0.113.1").tenant == slot("blue"));
    const auto red = route_generation("red"), blue = route_generation("blue");
    feed.set_route(RouteSource::kernel, slot("blue"), net::parse_prefix("203.0.113.0/25")->prefix, {});
    REQUIRE(flush());
    CHECK(route_generation("blue") != blue);
    CHECK(route_generation("red") != red);
    route(RouteSource::kernel, "8.8.8.0/24", {"10.0.0.9"});  // not the other way round
    const auto blue_now = route_generation("blue");
    REQUIRE(flush());
    CHECK(route_generation("blue") == blue_now);
}

TEST_CASE_METHOD(Fixture, "route feed: neighbors that come and go don't use up the next hops", "[control]") {
    neighbor("10.0.0.10", mac(1));
    REQUIRE(flush());
    const std::uint16_t kept = *builder.registry().next_hops.find(
        {slot("red"), interface("lan"), control::NextHopUse::neighbor, test::address("10.0.0.10")});
    // Three times as many as there are indices.
    std::uint32_t number = 0;
    for (int round = 0; round < 24; ++round) {
        const std::uint32_t first = number;
        for (int i = 0; i < 4096; ++i, ++number)
            feed.set_neighbor(slot("red"), interface("lan"), net::Address::from_v4(0x0b000000u + number),
                              {mac(2), false});
        while (feed.stats().pending != 0) flush();
        CHECK(hop("red", "11.0.0.0").kind == (round == 0 ? NextHopKind::forward : NextHopKind::no_route));
        for (std::uint32_t n = first; n < number; ++n)
            feed.set_neighbor(slot("red"), interface("lan"), net::Address::from_v4(0x0b000000u + n), {});
        while (feed.stats().pending != 0) flush();
        now_ms += 1000;
    }
    CHECK(feed.stats().refused == 0);
    CHECK(hop("red", "10.0.0.10").via == test::address("10.0.0.10"));
    CHECK(kind("red", "10.0.0.10") == NextHopKind::forward);
    CHECK(*builder.registry().next_hops.find(
              {slot("red"), interface("lan"), control::NextHopUse::neighbor, test::address("10.0.0.10")}) == kept);
    CHECK(kind("red", "198.51.100.1") == NextHopKind::group);
}

TEST_CASE_METHOD(Fixture, "route feed: a batch that does not fit is refused, and what was there stays", "[control]") {
    // Over the limit of routes a VRF.
    neighbor("10.0.0.40", mac(4));
    REQUIRE(flush());
    const auto refused = [&] { return feed.stats().refused; };
    REQUIRE(refused() == 0);
    for (std::uint32_t i = 0; i < RouteFeed::kMaxBatch; ++i)
        feed.set_route(RouteSource::kernel, slot("red"), {net::Address::from_v4(0x64000000u + i), 32, net::Family::ip4},
                       {{interface("lan"), net::Address::from_v4(0x0a000100u + i), 1}});
    for (int i = 0; i < 3; ++i) flush();
    REQUIRE(refused() == 0);
    // More next hops than a FIB can number: refused cleanly, again and again.
    for (std::uint32_t i = 0; i < 4 * RouteFeed::kMaxBatch; ++i)
        feed.set_route(RouteSource::kernel, slot("red"), {net::Address::from_v4(0x65000000u + i), 32, net::Family::ip4},
                       {{interface("lan"), net::Address::from_v4(0x0b000100u + i), 1}});
    while (feed.stats().pending != 0) flush();
    CHECK(refused() >= RouteFeed::kMaxBatch);
    CHECK(kind("red", "10.0.0.40") == NextHopKind::forward);
    CHECK(hop("red", "100.0.0.5").via == net::Address::from_v4(0x0a000105u));
    neighbor("10.0.0.40", std::nullopt);  // the neighbours' turn is their own
    REQUIRE(flush());
    CHECK(kind("red", "10.0.0.40") == NextHopKind::unresolved);
}

TEST_CASE_METHOD(Fixture, "route feed: a refused batch is tried again, and fits when there is room", "[control]") {
    const auto kernel = [&](std::uint32_t i) {
        return net::Prefix{net::Address::from_v4(0x64000000u + i), 32, net::Family::ip4};
    };
    constexpr std::uint32_t kMany = 4 * RouteFeed::kMaxBatch - 1000;
    for (std::uint32_t i = 0; i < kMany; ++i)
        feed.set_route(RouteSource::kernel, slot("red"), kernel(i),
                       {{interface("lan"), net::Address::from_v4(0x0b000000u + i), 1}});
    while (feed.stats().pending != 0) flush();
    REQUIRE(feed.stats().refused == 0);
    for (std::uint32_t i = 2; i < 2002; ++i)
        feed.set_neighbor(slot("red"), interface("lan"), net::Address::from_v4(0x0c000000u + i), {mac(6), false});
    while (feed.stats().pending != 0) flush();
    CHECK(feed.stats().refused == 2000);
    CHECK(hop("red", "12.0.0.2").kind == NextHopKind::no_route);

    for (std::uint32_t i = 0; i < kMany; ++i) feed.withdraw(RouteSource::kernel, slot("red"), kernel(i));
    // A newer word counts and not the refused one.
    feed.set_neighbor(slot("red"), interface("lan"), net::Address::from_v4(0x0c000003u), {});
    for (int i = 0; i < 100; ++i) flush();
    CHECK(hop("red", "12.0.0.2").kind == NextHopKind::forward);
    CHECK(hop("red", "12.0.0.3").kind == NextHopKind::no_route);
    CHECK(feed.stats().pending == 0);
}

TEST_CASE_METHOD(Fixture, "route feed: many VRFs share publications", "[control]") {
    feed.set_route(RouteSource::kernel, slot("red"), net::parse_prefix("100.0.0.0/24")->prefix, {});
    REQUIRE(flush());
    feed.set_route(RouteSource::kernel, slot("blue"), net::parse_prefix("100.0.0.0/24")->prefix, {});
    CHECK_FALSE(feed.flush(now_ms + 1));
    CHECK_FALSE(feed.flush(now_ms + RouteFeed::kFlushEveryMs - 1));
    CHECK(feed.flush(now_ms + RouteFeed::kFlushEveryMs));
    come_round();
    CHECK(kind("blue", "100.0.0.1") == NextHopKind::drop);
}

}  // namespace
}  // namespace cachewire
