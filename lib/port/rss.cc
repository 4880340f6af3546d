// SPDX-License-Identifier: BSD-3-Clause
#include "port/rss.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <random>

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_thash.h>

namespace cachewire::port {

namespace {

constexpr std::uint64_t kPorts4 = RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV4_UDP;
constexpr std::uint64_t kPorts6 = RTE_ETH_RSS_NONFRAG_IPV6_TCP | RTE_ETH_RSS_NONFRAG_IPV6_UDP;
// Not SCTP: devices differ in whether they look at its ports. By its addresses, as everything else.
constexpr std::uint64_t kFields = RTE_ETH_RSS_IP | kPorts4 | kPorts6;
constexpr unsigned kTuples = 256;  // of each kind, both directions
// rte_softrss reads a word of the key past the tuple's last one.
constexpr std::size_t kSoftKey = 40;

struct Kind {
    std::uint64_t field;
    std::uint8_t proto;
    bool ip6;
};
constexpr Kind kKinds[] = {{RTE_ETH_RSS_NONFRAG_IPV4_TCP, 6, false},   {RTE_ETH_RSS_NONFRAG_IPV4_UDP, 17, false},
                           {RTE_ETH_RSS_NONFRAG_IPV4_OTHER, 1, false}, {RTE_ETH_RSS_NONFRAG_IPV6_TCP, 6, true},
                           {RTE_ETH_RSS_NONFRAG_IPV6_UDP, 17, true},   {RTE_ETH_RSS_NONFRAG_IPV6_OTHER, 58, true}};

std::vector<std::uint8_t> repeated(std::uint16_t pattern, std::size_t bytes) {
    std::vector<std::uint8_t> key(bytes);
    for (std::size_t i = 0; i < bytes; ++i) key[i] = static_cast<std::uint8_t>(i % 2 == 0 ? pattern >> 8 : pattern);
    return key;
}

std::uint32_t big_endian_at(const std::uint8_t* bytes) {
    std::uint32_t word;
    std::memcpy(&word, bytes, sizeof word);
    return __builtin_bswap32(word);
}

// The device's hash as the standard defines it, with the key that it says it has.
std::uint32_t device_hash(const net::FlowKey& key, bool with_ports, const std::array<std::uint8_t, kSoftKey>& rss_key) {
    std::array<std::uint32_t, 9> tuple{};
    std::uint32_t words = 0;
    const std::size_t from = key.is_v4() ? 12 : 0;
    for (const net::Address* address : {&key.src, &key.dst})
        for (std::size_t at = from; at < 16; at += 4) tuple[words++] = big_endian_at(&address->bytes[at]);
    if (with_ports) {
        std::array<std::uint8_t, 4> ports;
        std::memcpy(ports.data(), &key.src_port_be, 2);
        std::memcpy(ports.data() + 2, &key.dst_port_be, 2);
        tuple[words++] = big_endian_at(ports.data());
    }
    alignas(4) std::array<std::uint8_t, kSoftKey> aligned = rss_key;
    return rte_softrss(tuple.data(), words, aligned.data());
}

net::FlowKey random_key(const Kind& kind, std::mt19937_64& random) {
    net::FlowKey key;
    for (net::Address* address : {&key.src, &key.dst}) {
        if (!kind.ip6) {
            *address = net::Address::from_v4(static_cast<std::uint32_t>(random()));
            continue;
        }
        const std::array<std::uint64_t, 2> words = {random(), random()};
        std::memcpy(address->bytes.data(), words.data(), 16);
        address->bytes[0] = 0x20;
    }
    key.src_port_be = static_cast<std::uint16_t>(random());
    key.dst_port_be = static_cast<std::uint16_t>(random());
    key.proto = kind.proto;
    return key;
}

net::FlowKey reply_to(net::FlowKey key) {
    std::swap(key.src, key.dst);
    std::swap(key.src_port_be, key.dst_port_be);
    return key;
}

std::string refused(const char* call, int rc) { return fmt::format("{}: {}", call, rte_strerror(-rc)); }

// What the device says it has, against the pipeline's owner.
std::string self_test(const RssDevice::Hash& has, std::span<const std::uint16_t> table, const net::HashSeed& seed,
                      std::span<const std::uint16_t> queue_of) {
    std::array<std::uint8_t, kSoftKey> key{};
    std::copy_n(has.key.begin(), std::min(has.key.size(), kSoftKey), key.begin());
    std::mt19937_64 random(seed.a);
    for (const Kind& kind : kKinds) {
        if ((has.fields & kind.field) == 0) continue;
        const bool ports = (kind.field & (kPorts4 | kPorts6)) != 0;
        for (unsigned i = 0; i < kTuples; ++i) {
            const net::FlowKey forward = random_key(kind, random);
            for (const net::FlowKey& tuple : {forward, reply_to(forward)}) {
                const std::uint16_t is = table[device_hash(tuple, ports, key) & (table.size() - 1)];
                const std::uint16_t owner = queue_of[net::flow_hash(tuple, seed) >> (32 - net::kOwnerHashBits)];
                if (is != owner)
                    return fmt::format(
                        "its key and redirection table, as it says them, put an IPv{} packet of protocol {} on queue "
                        "{} "
                        "and not on its owner's, {}",
                        kind.ip6 ? 6 : 4, kind.proto, is, owner);
            }
        }
    }
    return "";
}

}  // namespace

std::string why_no_rss(const RssDevice::Offer& offer) {
    if (offer.queues < 2) return "it has one receive queue";
    if (offer.reta_size == 0) return "its driver has no redirection table";
    if (!std::has_single_bit(offer.reta_size))
        return fmt::format("its redirection table has {} entries, which is no power of two", offer.reta_size);
    if (offer.key_size < kSoftKey)
        return fmt::format("its driver takes a key of {} bytes, 40 are needed", offer.key_size);
    if ((offer.fields & kPorts4) != kPorts4) return "its driver doesn't hash the ports of TCP and UDP";
    return "";
}

std::string set_up_rss(RssDevice& device, const net::HashSeed& seed, std::span<const std::uint16_t> queue_of) {
    const RssDevice::Offer offer = device.offer();
    if (std::string why = why_no_rss(offer); !why.empty()) return why;
    std::vector<std::uint16_t> table(offer.reta_size);
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = queue_of[i % kOwnerBuckets];
    const RssDevice::Hash wanted{repeated(seed.rss.pattern(), offer.key_size), kFields & offer.fields};
    if (const int rc = device.set_hash(wanted); rc != 0) return refused("rte_eth_dev_rss_hash_update", rc);
    if (const int rc = device.set_table(table); rc != 0) return refused("rte_eth_dev_rss_reta_update", rc);
    RssDevice::Hash has{std::vector<std::uint8_t>(offer.key_size), 0};
    if (const int rc = device.get_hash(has); rc != 0) return refused("rte_eth_dev_rss_hash_conf_get", rc);
    if (const int rc = device.get_table(table); rc != 0) return refused("rte_eth_dev_rss_reta_query", rc);
    if ((has.fields & kPorts4) != kPorts4) return "it has the ports of TCP and UDP out of its hash again";
    return self_test(has, table, seed, queue_of);
}

RssDevice::Offer EthRssDevice::offer() const {
    rte_eth_dev_info info{};
    if (rte_eth_dev_info_get(id_, &info) != 0) return {};
    // A driver that says no size takes the usual one, or refuses it.
    const std::uint8_t key_size = info.hash_key_size == 0 ? std::uint8_t{kSoftKey} : info.hash_key_size;
    return {queues_, info.reta_size, key_size, info.flow_type_rss_offloads};
}

int EthRssDevice::set_hash(const Hash& hash) {
    std::vector<std::uint8_t> key = hash.key;
    rte_eth_rss_conf conf{};
    conf.rss_key = key.data();
    conf.rss_key_len = static_cast<std::uint8_t>(key.size());
    conf.rss_hf = hash.fields;
    return rte_eth_dev_rss_hash_update(id_, &conf);
}

int EthRssDevice::get_hash(Hash& hash) const {
    rte_eth_rss_conf conf{};
    conf.rss_key = hash.key.data();
    conf.rss_key_len = static_cast<std::uint8_t>(hash.key.size());
    const int rc = rte_eth_dev_rss_hash_conf_get(id_, &conf);
    hash.fields = conf.rss_hf;
    return rc;
}

int EthRssDevice::set_table(std::span<const std::uint16_t> queues) {
    std::vector<rte_eth_rss_reta_entry64> groups((queues.size() + RTE_ETH_RETA_GROUP_SIZE - 1) /
                                                 RTE_ETH_RETA_GROUP_SIZE);
    for (std::size_t i = 0; i < queues.size(); ++i) {
        rte_eth_rss_reta_entry64& group = groups[i / RTE_ETH_RETA_GROUP_SIZE];
        group.mask |= std::uint64_t{1} << i % RTE_ETH_RETA_GROUP_SIZE;
        group.reta[i % RTE_ETH_RETA_GROUP_SIZE] = queues[i];
    }
    return rte_eth_dev_rss_reta_update(id_, groups.data(), static_cast<std::uint16_t>(queues.size()));
}

int EthRssDevice::get_table(std::span<std::uint16_t> queues) const {
    std::vector<rte_eth_rss_reta_entry64> groups((queues.size() + RTE_ETH_RETA_GROUP_SIZE - 1) /
                                                 RTE_ETH_RETA_GROUP_SIZE);
    for (rte_eth_rss_reta_entry64& group : groups) group.mask = UINT64_MAX;
    const int rc = rte_eth_dev_rss_reta_query(id_, groups.data(), static_cast<std::uint16_t>(queues.size()));
    for (std::size_t i = 0; i < queues.size(); ++i)
        queues[i] = groups[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE];
    return rc;
}

}  // namespace cachewire::port
