// SPDX-License-Identifier: BSD-3-Clause
#include "net/checksum.h"

#include <array>
#include <vector>

#include "support/catch.h"
#include "support/packet_builder.h"
#include "support/random.h"

using namespace cachewire;

namespace {

// RFC 1071 as it reads: 16-bit words in network order, end-around carry.
std::uint16_t slow_checksum(std::vector<std::uint8_t> bytes) {
    if (bytes.size() % 2 != 0) bytes.push_back(0);
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < bytes.size(); i += 2) {
        sum += static_cast<std::uint32_t>(bytes[i] << 8 | bytes[i + 1]);
        if (sum > 0xffff) sum = (sum & 0xffff) + 1;
    }
    return __builtin_bswap16(static_cast<std::uint16_t>(~sum));
}

}  // namespace

TEST_CASE("checksum: agrees with the sum by 16-bit words at every length", "[net]") {
    auto random = test::random_engine();
    for (std::size_t length = 0; length < 200; ++length) {
        std::vector<std::uint8_t> bytes(length);
        for (auto& b : bytes) b = static_cast<std::uint8_t>(random() % 4 == 0 ? 0xff : random());
        INFO("length " << length);
        CHECK(net::checksum(bytes) == slow_checksum(bytes));
    }
    const std::vector<std::uint8_t> ones(65535, 0xff);
    CHECK(net::checksum(ones) == slow_checksum(ones));
}

TEST_CASE("checksum: a 20-byte header is right exactly when its sum is zero", "[net]") {
    auto random = test::random_engine();
    for (unsigned round = 0; round < 20000; ++round) {
        std::vector<std::uint8_t> header(20);
        for (auto& b : header) b = static_cast<std::uint8_t>(random() % 8 == 0 ? 0xff : random());
        header[0] = 0x45;
        header[10] = header[11] = 0;
        const std::uint16_t sum = slow_checksum(header);
        std::memcpy(&header[10], &sum, 2);
        REQUIRE(net::ip4_checksum_ok(header.data()));
        header[random() % 20] ^= static_cast<std::uint8_t>(1u << random() % 8);
        REQUIRE_FALSE(net::ip4_checksum_ok(header.data()));
    }
}

TEST_CASE("checksum: the update of RFC 1624 gives its own example", "[net]") {
    CHECK(net::update_checksum(0xdd2f, 0x5555, 0x3285) == 0x0000);
}

TEST_CASE("checksum: a TTL decrement leaves the header's sum right, for every TTL and protocol", "[net]") {
    for (unsigned ttl = 2; ttl < 256; ++ttl) {
        for (unsigned proto = 0; proto < 256; proto += 5) {
            for (const unsigned id : {0u, 1u, 0x8000u, 0xffffu}) {
                test::Ip4Fields fields;
                fields.ttl = static_cast<std::uint8_t>(ttl);
                fields.proto = static_cast<std::uint8_t>(proto);
                fields.id = static_cast<std::uint16_t>(id);
                auto header = test::PacketBuilder().ip4("10.0.0.1", "192.0.2.1", fields).bytes();
                net::decrement_ttl_ip4(header.data());
                REQUIRE(header[8] == ttl - 1);
                REQUIRE(net::ip4_checksum_ok(header.data()));
            }
        }
    }
}

TEST_CASE("checksum: L4 sums cover the pseudo-header of either family", "[net]") {
    // The pseudo-header written out byte by byte.
    const auto slow = [](bool v6, const net::Address& src, const net::Address& dst, std::uint8_t proto,
                         const std::vector<std::uint8_t>& segment) {
        std::vector<std::uint8_t> all(src.bytes.begin() + (v6 ? 0 : 12), src.bytes.end());
        all.insert(all.end(), dst.bytes.begin() + (v6 ? 0 : 12), dst.bytes.end());
        const auto high = static_cast<std::uint8_t>(segment.size() >> 8);
        const auto low = static_cast<std::uint8_t>(segment.size());
        const std::vector<std::uint8_t> rest = v6 ? std::vector<std::uint8_t>{0, 0, high, low, 0, 0, 0, proto}
                                                  : std::vector<std::uint8_t>{0, proto, high, low};
        all.insert(all.end(), rest.begin(), rest.end());
        all.insert(all.end(), segment.begin(), segment.end());
        return slow_checksum(all);
    };
    auto random = test::random_engine();
    for (const bool v6 : {false, true}) {
        const auto src = test::address(v6 ? "2001:db8::1" : "10.0.0.1");
        const auto dst = test::address(v6 ? "2001:db8:1::ffff" : "192.0.2.200");
        for (const std::size_t length : {0u, 1u, 8u, 9u, 20u, 1460u, 1461u, 65515u}) {
            std::vector<std::uint8_t> segment(length);
            for (auto& b : segment) b = static_cast<std::uint8_t>(random());
            INFO((v6 ? "IPv6, " : "IPv4, ") << length << " bytes");
            CHECK(net::l4_checksum(src, dst, 17, segment) == slow(v6, src, dst, 17, segment));
        }
    }
}
