// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/mss_clamp.h"

#include <algorithm>

#include "net/checksum.h"
#include "support/catch.h"
#include "support/packet_builder.h"

namespace cachewire::pipeline {

namespace {

Interface interface(std::uint16_t mtu, std::uint16_t clamp) {
    Interface i;
    i.mtu = mtu;
    i.mss_clamp = clamp;
    return i;
}

}  // namespace

TEST_CASE("mss clamp: the smaller of what both interfaces say", "[pipeline]") {
    constexpr std::uint16_t kAuto = kMssClampAuto, kNo = kNoMssClamp;
    struct Case {
        Interface in, out;
        bool ip6;
        int limit;
    };
    for (const Case& c : {Case{interface(1500, kNo), interface(1280, kNo), false, 0},
                          {interface(1500, kAuto), interface(1280, kNo), false, 1240},
                          {interface(1500, kNo), interface(1280, kAuto), true, 1220},
                          {interface(1500, 1000), interface(1280, kAuto), true, 1000},
                          {interface(1500, kAuto), interface(1500, 1400), false, 1400},
                          {interface(1500, 1452), interface(1400, kNo), false, 1452}})
        CHECK(mss_limit(c.in, c.out, c.ip6) == c.limit);
}

TEST_CASE("mss clamp: lowered with a right checksum wherever the option stands, and never raised", "[pipeline]") {
    struct Case {
        const char* what;
        test::Bytes options;
        bool changes;
    };
    for (const Case& c : {
             Case{"first", {2, 4, 0x05, 0xb4, 1, 3, 3, 7}, true},
             Case{"at an odd place", {1, 2, 4, 0x05, 0xb4, 1, 1, 1}, true},
             Case{"behind others", {4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 2, 4, 0xff, 0xff}, true},
             Case{"small already", {2, 4, 0x02, 0x18}, false},
             Case{"none", {}, false},
             Case{"behind the end of options", {0, 2, 4, 0x05, 0xb4, 0, 0, 0}, false},
             Case{"of a wrong length", {2, 3, 0x05, 0}, false},
             Case{"cut short", {3, 3, 7, 2}, false},
             Case{"an option of no length", {9, 0, 2, 4, 0x05, 0xb4, 0, 0}, false},
         }) {
        INFO(c.what);
        test::TcpFields syn;
        syn.flags = 2;
        syn.options = c.options;
        const test::Bytes before = test::PacketBuilder().ip4("10.0.0.9", "192.0.2.9").tcp(1000, 80, syn).bytes();
        test::Bytes packet = before;
        const unsigned bytes = (packet[32] >> 4) * 4u;
        CHECK(clamp_mss(packet.data() + 20, bytes, 1240) == c.changes);
        CHECK((packet != before) == c.changes);
        CHECK(net::l4_checksum(test::address("10.0.0.9"), test::address("192.0.2.9"), 6,
                               std::span(packet).subspan(20)) == 0);
        if (!c.changes) continue;
        const test::Bytes option = {2, 4, 1240 >> 8, 1240 & 0xff};
        const auto at = std::search(packet.begin() + 40, packet.end(), option.begin(), option.end());
        CHECK(at != packet.end());
    }
}

}  // namespace cachewire::pipeline
