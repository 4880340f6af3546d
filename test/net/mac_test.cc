// SPDX-License-Identifier: BSD-3-Clause
#include "net/mac.h"

#include <string>
#include <vector>

#include "support/catch.h"

using namespace cachewire;

TEST_CASE("mac: six pairs of hex digits with colons and nothing else", "[net]") {
    struct Case {
        std::string text;
        bool valid;
    };
    const std::vector<Case> cases = {
        {"02:00:00:00:00:01", true},   {"FF:FF:FF:FF:FF:FF", true},
        {"aA:bB:cC:dD:eE:fF", true},   {"02:00:00:00:00", false},
        {"02:00:00:00:00:01:", false}, {"02-00-00-00-00-01", false},
        {"2:0:0:0:0:1", false},        {"020000000001", false},
        {"02:00:00:00:00:0g", false},  {" 2:00:00:00:00:01", false},
        {"02:00:00:00:00:+1", false},  {"02:00:00:00:00.01", false},
        {"0:200:00:00:00:01x", false}, {"", false},
    };
    for (const auto& c : cases) {
        INFO("'" << c.text << "'");
        CHECK(net::parse_mac(c.text).has_value() == c.valid);
    }
}

TEST_CASE("mac: bytes stand in wire order and print in lower case", "[net]") {
    const auto mac = net::parse_mac("02:1A:00:00:00:fe");
    REQUIRE(mac.has_value());
    CHECK(mac->bytes == std::array<std::uint8_t, 6>{0x02, 0x1a, 0, 0, 0, 0xfe});
    CHECK(net::to_string(*mac) == "02:1a:00:00:00:fe");
    CHECK_FALSE(mac->is_multicast());
    CHECK_FALSE(mac->is_zero());
    CHECK(net::Mac{}.is_zero());
    CHECK(net::parse_mac("01:00:5e:00:00:01")->is_multicast());
    CHECK(net::parse_mac("ff:ff:ff:ff:ff:ff")->is_multicast());
}
