// SPDX-License-Identifier: BSD-3-Clause
// Whether a device's RSS gives the owner that the pipeline computes: devices that do, and each way in which they don't.
// No device here hashes packets; net_null alone has key and table to be told and read back.
#include "port/rss.h"

#include <cerrno>
#include <cstring>
#include <numeric>

#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>
#include <rte_thash.h>

#include "port/port.h"
#include "support/catch.h"
#include "support/eal.h"
#include "support/fake_rss.h"
#include "support/random.h"

using namespace cachewire;
using test::FakeRss;

namespace {

constexpr std::uint16_t kPattern = 0x6d5a;

net::HashSeed rss_seed() {
    net::HashSeed seed;
    seed.rss = net::RssHash(kPattern);
    return seed;
}

// Four queues in turn.
std::vector<std::uint16_t> in_turn(unsigned granularity = port::kOwnerBuckets) {
    std::vector<std::uint16_t> queues(port::kOwnerBuckets);
    for (unsigned i = 0; i < queues.size(); ++i) queues[i] = static_cast<std::uint16_t>(i % granularity % 4);
    return queues;
}

}  // namespace

TEST_CASE("rss: the software hash is the standard's Toeplitz hash with a repeated key", "[rss]") {
    INFO("seed " << test::seed());
    auto random = test::random_engine();
    alignas(4) std::uint8_t key[40];
    for (unsigned i = 0; i < sizeof key; i += 2) key[i] = kPattern >> 8, key[i + 1] = kPattern & 0xff;
    const net::RssHash hash(kPattern);
    for (int i = 0; i < 2000; ++i) {
        std::uint32_t tuple[9];  // as on the wire, and in the order that rte_softrss wants
        std::uint32_t host[9];
        const unsigned words = i % 2 == 0 ? 3 : 9;
        std::uint64_t sum = 0;
        for (unsigned k = 0; k < words; ++k) {
            tuple[k] = static_cast<std::uint32_t>(random());
            host[k] = __builtin_bswap32(tuple[k]);
            sum ^= tuple[k];
        }
        const std::uint32_t wanted = rte_softrss(host, words, key);
        CHECK(hash(sum) == (wanted & 0xffff));
        CHECK(wanted >> 16 == (wanted & 0xffff));
    }
}

TEST_CASE("rss: with an odd number of ones in the pattern no two sums collide", "[rss]") {
    const net::RssHash hash(0x1b57);
    std::vector<bool> seen(65536);
    for (unsigned sum = 0; sum < 65536; ++sum) seen[hash(sum)] = true;
    CHECK(std::accumulate(seen.begin(), seen.end(), 0) == 65536);
}

TEST_CASE("rss: the hash keeps the keyed one's lower bits and is the same both ways", "[rss]") {
    net::FlowKey key;
    key.src = net::Address::from_v4(0x0a010203);
    key.dst = net::Address::from_v4(0xc6120405);
    key.src_port_be = 0x1234;
    key.dst_port_be = 0x3500;
    key.proto = 17;
    key.tenant = 3;
    net::FlowKey reply = key;
    std::swap(reply.src, reply.dst);
    std::swap(reply.src_port_be, reply.dst_port_be);
    const auto seed = rss_seed();
    CHECK(net::flow_hash(key, seed) == net::flow_hash(reply, seed));
    CHECK(((net::flow_hash(key, seed) ^ net::flow_hash(key, {})) & net::kBelowOwnerBits) == 0);
    // Another tenant's, and ICMP's identifier, which devices don't look at.
    const auto bucket = [&seed](const net::FlowKey& k) { return net::flow_hash(k, seed) >> 23; };
    reply.tenant = 4;
    CHECK(bucket(key) == bucket(reply));
    key.proto = reply.proto = 1;
    reply.src_port_be = reply.dst_port_be = 99;
    CHECK(bucket(key) == bucket(reply));
}

TEST_CASE("rss: a device that keeps key and table gives the owner", "[rss]") {
    for (const std::uint16_t size : {64, 128, 512, 2048}) {
        FakeRss device({4, size, 40, FakeRss::kAll});
        INFO("table of " << size);
        CHECK(port::set_up_rss(device, rss_seed(), in_turn(port::rss_granularity(size))).empty());
        CHECK(device.table.size() == size);
    }
    FakeRss longer({4, 512, 52, FakeRss::kAll});
    CHECK(port::set_up_rss(longer, rss_seed(), in_turn()).empty());
    FakeRss ip4_only({4, 512, 40, RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV4_UDP});
    CHECK(port::set_up_rss(ip4_only, rss_seed(), in_turn()).empty());
}

TEST_CASE("rss: a device that does something else is found out, and says how", "[rss]") {
    struct Case {
        const char* what;
        void (*spoil)(FakeRss&);
        const char* error;
    };
    const Case cases[] = {
        {"its own key", [](FakeRss& d) { d.own_key = true; }, "not on its owner's"},
        {"its own table", [](FakeRss& d) { d.own_table = true; }, "not on its owner's"},
        {"addresses alone", [](FakeRss& d) { d.kept_fields = RTE_ETH_RSS_IP; }, "out of its hash again"},
        {"takes no key", [](FakeRss& d) { d.hash_rc = -ENOTSUP; }, "rte_eth_dev_rss_hash_update"},
        {"takes no table", [](FakeRss& d) { d.table_rc = -EINVAL; }, "rte_eth_dev_rss_reta_update"},
        {"does not say its key", [](FakeRss& d) { d.get_hash_rc = -ENOTSUP; }, "rte_eth_dev_rss_hash_conf_get"},
        {"does not say its table", [](FakeRss& d) { d.get_table_rc = -ENOTSUP; }, "rte_eth_dev_rss_reta_query"},
        {"one queue", [](FakeRss& d) { d.offered.queues = 1; }, "one receive queue"},
        {"no table", [](FakeRss& d) { d.offered.reta_size = 0; }, "no redirection table"},
        {"an odd table", [](FakeRss& d) { d.offered.reta_size = 100; }, "no power of two"},
        {"a short key", [](FakeRss& d) { d.offered.key_size = 16; }, "key of 16 bytes"},
        {"no ports", [](FakeRss& d) { d.offered.fields = RTE_ETH_RSS_IP; }, "doesn't hash the ports"},
    };
    for (const Case& c : cases) {
        INFO(c.what);
        FakeRss device({4, 512, 40, FakeRss::kAll});
        c.spoil(device);
        const std::string why = port::set_up_rss(device, rss_seed(), in_turn());
        INFO(why);
        CHECK(why.find(c.error) != std::string::npos);
    }
}

TEST_CASE("rss: an ethdev is told, and asked what it has", "[rss]") {
    test::ensure_eal();
    static rte_mempool* const pool = port::make_mempool("rss_test", 8191, 64, 2176, SOCKET_ID_ANY);
    REQUIRE(rte_dev_probe("net_null80") == 0);
    REQUIRE(rte_dev_probe("net_ring80") == 0);
    port::PortConfig config;
    config.name = "wan";
    config.rx_queues = config.tx_queues = 2;
    config.device = {port::DeviceKind::vdev, "net_null80", ""};
    {
        port::EthPort null(config, pool);
        port::EthRssDevice device(null.id(), 2);
        CHECK(device.offer().queues == 2);
        CHECK(device.offer().key_size == 40);
        std::vector<std::uint16_t> queues(port::kOwnerBuckets);
        for (unsigned i = 0; i < queues.size(); ++i) queues[i] = i % 2;
        INFO(port::set_up_rss(device, rss_seed(), queues));
        CHECK(port::set_up_rss(device, rss_seed(), queues).empty());
        std::vector<std::uint16_t> has(device.offer().reta_size);
        CHECK(device.get_table(has) == 0);
        CHECK(std::equal(has.begin(), has.end(), queues.begin()));
        null.close();
        null.unplug();
    }
    config.rx_queues = config.tx_queues = 1;
    config.device = {port::DeviceKind::vdev, "net_ring80", ""};
    port::EthPort ring(config, pool);
    port::EthRssDevice device(ring.id(), 2);
    CHECK(port::set_up_rss(device, rss_seed(), in_turn()).find("no redirection table") != std::string::npos);
    ring.close();
    ring.unplug();
}
