// SPDX-License-Identifier: BSD-3-Clause
// The forms that a route's `via` has, and what each refuses.
#include "config/wrong_files.h"
#include "support/config_of.h"

using namespace cachewire;
using test::WrongFile;

namespace {

constexpr const char* kTwo =
    "version: 1\nports: [{name: a, device: net_null0}, {name: b, device: net_null1}]\n"
    "tenants: [{name: red, id: 1, sessions: track, match: [{port: a}]}, {name: blue, id: 2, match: [{port: b}]}]\n"
    "interfaces: [{name: lan, port: a, addresses: [192.0.2.1/24, 2001:db8::1/64]}, {name: wan, port: b, addresses: "
    "[198.51.100.1/24]}]\n";

using test::config_of;

}  // namespace

TEST_CASE("config: every form of a next hop", "[config]") {
    const auto c = config_of(std::string(test::kRouter) +
                             R"(neighbors: [{address: "fe80::9", interface: wan, mac: "02:00:00:00:00:09"}]
routes:
  - {prefix: 10.0.0.0/8, via: [192.0.2.2, {address: 192.0.2.3, weight: 2}]}
  - {prefix: "2001:db8:9::/48", via: {address: "fe80::9", interface: wan}}
  - {prefix: 172.16.0.0/12, via: {interface: wan}}
  - {prefix: 198.18.0.0/15, action: drop}
)");
    REQUIRE(c.routes.size() == 4);
    REQUIRE(c.routes[0].via.size() == 2);
    CHECK(c.routes[0].via[0].weight == 1);
    CHECK(c.routes[0].via[1].weight == 2);
    CHECK(c.routes[1].via[0].interface == 0u);
    CHECK_FALSE(c.routes[2].via[0].address);
    CHECK(c.routes[2].via[0].interface == 0u);
    CHECK((c.routes[3].drop && c.routes[3].via.empty()));
    REQUIRE(c.neighbors.size() == 1);
    CHECK(c.neighbors[0].interface == 0u);
}

TEST_CASE("config: next hops that are none", "[config]") {
    static constexpr WrongFile kWrong[] = {
        {test::kRouter, "routes: [{prefix: 10.0.0.0/8, via: []}]\n",
         "f.yaml:4:36: error: routes[0].via: no next hop; allowed: at least one\n"},
        {test::kRouter, "routes: [{prefix: 10.0.0.0/8, via: [192.0.2.2, 192.0.2.2]}]\n",
         "f.yaml:4:48: error: routes[0].via[1]: the same next hop twice; allowed: once, with a `weight`\n"},
        {test::kRouter, "routes: [{prefix: 10.0.0.0/8, via: [192.0.2.2, {interface: wan}]}]\n",
         "f.yaml:4:48: error: routes[0].via[1]: among several next hops without an address; allowed: `address`\n"},
        {test::kRouter, "routes: [{prefix: 10.0.0.0/8, via: {weight: 2}}]\n",
         "f.yaml:4:36: error: routes[0].via: leads nowhere; allowed: an `address`, an `interface` or a `tenant`\n"},
        {test::kRouter, "routes: [{prefix: 2001:db8:9::/48, via: fe80::9}]\n",
         "f.yaml:4:41: error: routes[0].via: fe80::9 is a link-local address, which every link may have; allowed: "
         "beside "
         "`interface`\n"},
        {test::kRouter, "routes: [{prefix: 10.0.0.0/8, via: {address: 203.0.113.1, interface: wan}}]\n",
         "f.yaml:4:46: error: routes[0].via.address: 203.0.113.1 is on no network of interface 'wan'\n"},
        {test::kRouter, "routes: [{prefix: 10.0.0.0/8, via: 192.0.2.2, action: drop}]\n",
         "f.yaml:4:36: error: routes[0].via: a route that drops leads nowhere; allowed: `via` or `action: drop`\n"},
        {kTwo, "routes: [{tenant: blue, prefix: 10.0.0.0/8, via: {tenant: blue}}]\n",
         "f.yaml:5:59: error: routes[0].via.tenant: the route's own tenant; allowed: another one, or none\n"},
        {kTwo, "routes: [{tenant: red, prefix: 10.0.0.0/8, via: {tenant: blue}}]\n",
         "f.yaml:5:58: error: routes[0].via.tenant: tenant 'blue' has no sessions, so replies would not find those of "
         "tenant "
         "'red'; allowed: a tenant with `sessions`\n"},
        {kTwo, "routes: [{tenant: blue, prefix: 10.0.0.0/8, via: {address: 198.51.100.9, interface: lan}}]\n",
         "f.yaml:5:85: error: routes[0].via.interface: interface 'lan' belongs to tenant 'red'; allowed: one of tenant "
         "'blue'\n"},
    };
    for (const WrongFile& wrong : kWrong) {
        CAPTURE(wrong.text);
        CHECK(test::errors_of(wrong) == wrong.errors);
    }
    std::string weights = "routes: [{prefix: 10.0.0.0/8, via: [";
    for (int i = 2; i < 8; ++i) weights += "{address: 192.0.2." + std::to_string(i) + ", weight: 255}, ";
    const std::string text = weights + "192.0.2.9]}]\n";
    CHECK(test::errors_of({test::kRouter, text.c_str(), ""}) ==
          "f.yaml:4:36: error: routes[0].via: weights of 1531 in all; allowed: at most 1024\n");
}

TEST_CASE("config: a tenant may leak to one by whose sessions replies are found, and without any to all", "[config]") {
    const auto c =
        config_of(std::string(kTwo) + "routes: [{tenant: blue, prefix: 192.0.2.0/24, via: {tenant: red}}]\n");
    REQUIRE(c.routes.size() == 1);
    CHECK(c.routes[0].via[0].tenant == 0u);
}
