// SPDX-License-Identifier: BSD-3-Clause
#include "net/arp.h"

#include "support/catch.h"
#include "support/packet_builder.h"

namespace cachewire::net {
namespace {

using test::Bytes;

const Bytes kRequest = {0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 9, 10, 0, 0, 9, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1};

TEST_CASE("arp: a request is read and written byte for byte", "[arp]") {
    const auto arp = read_arp(kRequest);
    REQUIRE(arp);
    CHECK(arp->op == ArpOp::request);
    CHECK(arp->sender_mac == Mac{{2, 0, 0, 0, 0, 9}});
    CHECK(arp->sender == test::address("10.0.0.9"));
    CHECK(arp->target_mac.is_zero());
    CHECK(arp->target == test::address("10.0.0.1"));
    Bytes out(kArpBytes);
    write_arp(*arp, out.data());
    CHECK(out == kRequest);
    out = kRequest;
    out[7] = 2;
    const auto reply = read_arp(out);
    REQUIRE(reply);
    CHECK(reply->op == ArpOp::reply);
    out.resize(46);  // padded to the shortest frame
    CHECK(read_arp(out));
}

TEST_CASE("arp: what is no ARP for IPv4 over Ethernet is refused", "[arp]") {
    for (std::size_t size = 0; size < kArpBytes; ++size) CHECK_FALSE(read_arp(std::span(kRequest).first(size)));
    struct Case {
        std::size_t at;
        std::uint8_t value;
    };
    for (const Case c : {Case{0, 1}, {1, 6}, {2, 0x86}, {3, 1}, {4, 8}, {5, 16}, {6, 1}, {7, 0}, {7, 3}, {8, 3}}) {
        Bytes bytes = kRequest;
        bytes[c.at] = c.value;
        INFO("byte " << c.at << " = " << int{c.value});
        CHECK_FALSE(read_arp(bytes));
    }
    Bytes bytes = kRequest;
    std::fill_n(bytes.begin() + 8, 6, std::uint8_t{0});
    CHECK_FALSE(read_arp(bytes));
}

}  // namespace
}  // namespace cachewire::net
