// SPDX-License-Identifier: BSD-3-Clause
#include "net/nd.h"

#include <vector>

#include "net/checksum.h"
#include "support/catch.h"
#include "support/packet_builder.h"

namespace cachewire::net {
namespace {

using test::address;
using test::Bytes;

constexpr Mac kMac{{2, 0, 0, 0, 0, 9}};

Bytes written(const NeighborMessage& message) {
    Bytes out(kMaxNeighborBytes);
    out.resize(write_neighbor_message(message, out.data()));
    return out;
}

// With the checksum put right after a change.
void fix(Bytes& datagram) {
    datagram[42] = datagram[43] = 0;
    Address src, dst;
    std::copy_n(datagram.begin() + 8, 16, src.bytes.begin());
    std::copy_n(datagram.begin() + 24, 16, dst.bytes.begin());
    const std::uint16_t sum = l4_checksum(src, dst, 58, std::span(datagram).subspan(40));
    datagram[42] = static_cast<std::uint8_t>(sum);
    datagram[43] = static_cast<std::uint8_t>(sum >> 8);
}

NeighborMessage solicitation() {
    NeighborMessage m;
    m.src = address("2001:db8::9");
    m.target = address("2001:db8::1");
    m.dst = solicited_node(m.target);
    m.link_layer = kMac;
    return m;
}

TEST_CASE("nd: flags of an advertisement stand where RFC 4861 4.4 has them", "[nd]") {
    NeighborMessage m = solicitation();
    m.advertisement = m.router = m.solicited = m.override_ = true;
    m.dst = address("2001:db8::9");
    m.src = m.target;
    const Bytes bytes = written(m);
    REQUIRE(bytes.size() == 72);
    CHECK(bytes[40] == 136);
    CHECK(bytes[44] == 0xe0);
    CHECK(bytes[7] == 255);
    CHECK(bytes[64] == 2);  // target's link-layer address
    CHECK(bytes[65] == 1);
    for (unsigned flag = 0; flag < 3; ++flag) {
        m.router = flag == 0;
        m.solicited = flag == 1;
        m.override_ = flag == 2;
        const Bytes one = written(m);
        CHECK(one[44] == 0x80 >> flag);
        const auto back = read_neighbor_message(one);
        REQUIRE(back);
        CHECK(back->router == m.router);
        CHECK(back->solicited == m.solicited);
        CHECK(back->override_ == m.override_);
        CHECK(back->link_layer == kMac);
    }
}

TEST_CASE("nd: a solicitation is read as it was written, padding behind it or not", "[nd]") {
    Bytes bytes = written(solicitation());
    bytes.resize(bytes.size() + 10, 0xa5);
    const auto back = read_neighbor_message(bytes);
    REQUIRE(back);
    CHECK_FALSE(back->advertisement);
    CHECK(back->src == address("2001:db8::9"));
    CHECK(back->target == address("2001:db8::1"));
    CHECK(back->dst == address("ff02::1:ff00:1"));
    CHECK(back->link_layer == kMac);
    CHECK(multicast_mac(back->dst) == Mac{{0x33, 0x33, 0xff, 0, 0, 1}});
    CHECK(link_local(kMac) == address("fe80::ff:fe00:9"));
}

TEST_CASE("nd: what RFC 4861 7.1 has discarded is refused", "[nd]") {
    const Bytes good = written(solicitation());
    for (std::size_t size = 0; size < good.size(); ++size)
        CHECK_FALSE(read_neighbor_message(std::span(good).first(size)));
    const auto refused = [&](const char* what, auto&& change, bool right_sum = true) {
        Bytes bytes = good;
        change(bytes);
        if (right_sum) fix(bytes);
        INFO(what);
        CHECK_FALSE(read_neighbor_message(bytes));
    };
    refused(
        "checksum", [](Bytes& b) { b[70] ^= 1; }, false);
    refused("hop limit", [](Bytes& b) { b[7] = 254; });
    refused("code", [](Bytes& b) { b[41] = 1; });
    refused("multicast target", [](Bytes& b) { b[48] = 0xff; });
    refused("unspecified target", [](Bytes& b) { std::fill_n(b.begin() + 48, 16, std::uint8_t{0}); });
    refused("option of no length", [](Bytes& b) { b[65] = 0; });
    refused("option past the end", [](Bytes& b) { b[65] = 2; });
    refused("multicast link-layer address", [](Bytes& b) { b[66] = 3; });
    refused("multicast source", [](Bytes& b) { b[8] = 0xff; });
    refused("unspecified source with a link-layer address",
            [](Bytes& b) { std::fill_n(b.begin() + 8, 16, std::uint8_t{0}); });
    refused(
        "payload length over the datagram", [](Bytes& b) { b[5] = 33; }, false);
    refused("router solicitation", [](Bytes& b) { b[40] = 133; });
    refused("solicited advertisement to a group", [](Bytes& b) {
        b[40] = 136;
        b[44] = 0x40;
    });

    NeighborMessage probe = solicitation();  // duplicate address detection: no source, no option
    probe.src = {};
    probe.link_layer.reset();
    CHECK(read_neighbor_message(written(probe)));
    probe.dst = probe.target;
    CHECK_FALSE(read_neighbor_message(written(probe)));
}

}  // namespace
}  // namespace cachewire::net
