// SPDX-License-Identifier: BSD-3-Clause
#include "session/fragments.h"

#include <map>
#include <utility>

#include "session/keys.h"
#include "support/catch.h"
#include "support/random.h"

using namespace cachewire;

namespace {

session::FirstFragment first_with_port(std::uint16_t port) {
    session::FirstFragment first;
    first.src_port_be = port;
    return first;
}

net::FlowKey without_ports(net::FlowKey key) {
    key.src_port_be = key.dst_port_be = 0;
    return key;
}

}  // namespace

TEST_CASE("fragment table: what it finds is what was remembered last and no older than the time-out", "[session]") {
    constexpr std::uint64_t kTimeout = 1000;
    auto engine = test::random_engine();
    const auto below = [&engine](unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(engine); };
    session::FragmentTable table(64, kTimeout);
    struct Known {
        std::uint16_t port;
        std::uint64_t since;
    };
    std::map<std::pair<unsigned, unsigned>, Known> model;  // flow and id
    std::uint64_t now = 5000;
    unsigned found = 0;
    for (unsigned step = 0; step < 200000; ++step) {
        now += below(4);
        const unsigned flow = below(12), id = below(8);
        const net::FlowKey key = without_ports(test::pool_key(flow, false));
        const std::uint32_t hash = test::hash_of(key);
        if (below(3) == 0) {
            const auto port = static_cast<std::uint16_t>(step);
            table.remember(key, id, hash, first_with_port(port), now);
            model[{flow, id}] = {port, now};
        }
        const auto* first = table.find(key, id, hash, now);
        if (first == nullptr) continue;
        ++found;
        const auto known = model.find({flow, id});
        REQUIRE(known != model.end());
        REQUIRE(first->src_port_be == known->second.port);
        REQUIRE(now - known->second.since <= kTimeout);
    }
    CHECK(found > 10000);
}

TEST_CASE("fragment table: tenant, protocol, id and direction keep datagrams apart", "[session]") {
    session::FragmentTable table(64, 1000);
    const net::FlowKey key = without_ports(test::key_v4(1, 0, 2, 0));
    const std::uint32_t hash = test::hash_of(key);  // the same for all, as if they collided
    table.remember(key, 7, hash, first_with_port(1), 100);
    CHECK(table.find(key, 7, hash, 100) != nullptr);
    CHECK(table.find(key, 8, hash, 100) == nullptr);
    CHECK(table.find(test::reversed(key), 7, hash, 100) == nullptr);
    net::FlowKey other = key;
    other.tenant = 2;
    CHECK(table.find(other, 7, hash, 100) == nullptr);
    other = key;
    other.proto = session::kProtoTcp;
    CHECK(table.find(other, 7, hash, 100) == nullptr);
    CHECK(table.find(key, 7, hash, 1100) != nullptr);
    CHECK(table.find(key, 7, hash, 1101) == nullptr);
}

TEST_CASE("fragment table: the oldest of a set makes room, one datagram has one entry", "[session]") {
    session::FragmentTable table(1, 1000);  // one set
    REQUIRE(table.capacity() == session::FragmentTable::kWays);
    const net::FlowKey key = without_ports(test::key_v4(1, 0, 2, 0));
    const std::uint32_t hash = test::hash_of(key);
    for (unsigned again = 0; again < 10; ++again) table.remember(key, 0, hash, first_with_port(9), 100 + again);
    for (std::uint32_t id = 1; id < 4; ++id) table.remember(key, id, hash, first_with_port(1), 200 + id);
    for (std::uint32_t id = 0; id < 4; ++id) CHECK(table.find(key, id, hash, 300) != nullptr);
    table.remember(key, 4, hash, first_with_port(1), 300);
    CHECK(table.find(key, 0, hash, 300) == nullptr);
    for (std::uint32_t id = 1; id < 5; ++id) CHECK(table.find(key, id, hash, 300) != nullptr);
}
