// SPDX-License-Identifier: BSD-3-Clause
#include "net/prefix.h"

#include <string>
#include <vector>

#include "support/catch.h"
#include "support/random.h"

using namespace cachewire;
using net::Family;

TEST_CASE("prefix: an address is exactly one address", "[net]") {
    struct Case {
        std::string text;
        std::string canonical;  // empty: refused
        Family family = Family::ip4;
    };
    const std::vector<Case> cases = {
        {"0.0.0.0", "0.0.0.0"},
        {"255.255.255.255", "255.255.255.255"},
        {"10.1.2.3", "10.1.2.3"},
        {"10.1", ""},
        {"010.0.0.1", ""},
        {"10.0.0.256", ""},
        {"10.0.0.1.", ""},
        {" 10.0.0.1", ""},
        {"10.0.0.1 ", ""},
        {"10.0.0.1/32", ""},
        {"0x0a.0.0.1", ""},
        {"", ""},
        {"::", "::", Family::ip6},
        {"::1", "::1", Family::ip6},
        {"2001:DB8:0:0:0:0:0:1", "2001:db8::1", Family::ip6},
        {"fe80::1%eth0", ""},
        {"2001:db8::1::2", ""},
        {"2001:db8:1", ""},
        {"12345::", ""},
        {"64:ff9b::192.0.2.1", "64:ff9b::c000:201", Family::ip6},
        {"::ffff:1.2.3.4", ""},
        {"::ffff:102:304", ""},
        {"::fffe:1.2.3.4", "::fffe:102:304", Family::ip6},
        {std::string("10.0.0.1\0", 9), ""},
        {std::string("10.0.0.1\0garbage", 16), ""},
        {std::string(1000, '1'), ""},
    };
    for (const auto& c : cases) {
        INFO("'" << c.text << "'");
        const auto parsed = net::parse_address(c.text);
        REQUIRE(parsed.has_value() == !c.canonical.empty());
        if (!parsed) continue;
        CHECK(net::to_string(parsed->address) == c.canonical);
        CHECK(parsed->family == c.family);
        CHECK(parsed->address.is_v4() == (c.family == Family::ip4));
    }
}

TEST_CASE("prefix: text gives the network and says whether host bits were set", "[net]") {
    struct Case {
        std::string text;
        std::string network;  // empty: refused
        bool host_bits_set = false;
    };
    const std::vector<Case> cases = {
        {"0.0.0.0/0", "0.0.0.0/0"},
        {"10.0.0.0/8", "10.0.0.0/8"},
        {"10.0.0.1/8", "10.0.0.0/8", true},
        {"10.0.0.1/32", "10.0.0.1/32"},
        {"192.0.2.129/25", "192.0.2.128/25", true},
        {"255.255.255.255/1", "128.0.0.0/1", true},
        {"::/0", "::/0"},
        {"::1/0", "::/0", true},
        {"2001:db8::/32", "2001:db8::/32"},
        {"2001:db8:ffff::/33", "2001:db8:8000::/33", true},
        {"2001:db8::1/128", "2001:db8::1/128"},
        {"::fffe:0:0/95", "::fffe:0:0/95"},
        {"10.0.0.0/33", ""},
        {"10.0.0.0/08", ""},
        {"10.0.0.0/", ""},
        {"10.0.0.0", ""},
        {"10.0.0.0/+8", ""},
        {"10.0.0.0/-1", ""},
        {"10.0.0.0/8 ", ""},
        {"10.0.0.0/8/8", ""},
        {"10.0.0.0/255.0.0.0", ""},
        {"10/8", ""},
        {"/8", ""},
        {"2001:db8::/129", ""},
        {"2001:db8::/1280", ""},
        {"2001:db8::/4294967297", ""},
        {"::ffff:10.0.0.0/104", ""},
    };
    for (const auto& c : cases) {
        INFO("'" << c.text << "'");
        const auto parsed = net::parse_prefix(c.text);
        REQUIRE(parsed.has_value() == !c.network.empty());
        if (!parsed) continue;
        CHECK(net::to_string(parsed->prefix) == c.network);
        CHECK(parsed->host_bits_set == c.host_bits_set);
        CHECK(net::to_string(parsed->address) == c.text.substr(0, c.text.find('/')));
    }
}

TEST_CASE("prefix: membership agrees with comparing bit by bit, and families don't mix", "[net]") {
    auto random = test::random_engine();
    for (unsigned round = 0; round < 20000; ++round) {
        const bool v4 = (random() & 1) != 0;
        net::Prefix prefix;
        net::Address address;
        for (auto& byte : prefix.address.bytes) byte = static_cast<std::uint8_t>(random());
        prefix.family = v4 ? Family::ip4 : Family::ip6;
        prefix.length = static_cast<std::uint8_t>(random() % (v4 ? 33 : 129));
        if (v4) prefix.address = net::Address::from_v4(static_cast<std::uint32_t>(random()));
        const auto text = net::to_string(prefix);
        prefix = net::parse_prefix(text)->prefix;  // clears the host bits

        // Near misses: flip one random bit of the family's part, sometimes none.
        address = prefix.address;
        const unsigned first_bit = v4 ? 96 : 0;
        const unsigned flipped = first_bit + static_cast<unsigned>(random() % (128 - first_bit));
        const bool flip = (random() & 3) != 0;
        if (flip) address.bytes[flipped / 8] ^= static_cast<std::uint8_t>(0x80 >> (flipped % 8));
        if (!v4 && address.is_v4()) continue;

        INFO(text << " and " << net::to_string(address));
        CHECK(prefix.contains(address) == (!flip || flipped - first_bit >= prefix.length));
    }
    CHECK_FALSE(net::parse_prefix("::/0")->prefix.contains(net::Address::from_v4(0x0a000001)));
    CHECK_FALSE(net::parse_prefix("0.0.0.0/0")->prefix.contains(net::parse_address("2001:db8::1")->address));
}
