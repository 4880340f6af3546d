#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What differs between the families, so that everything above is one template: the integer form for ranges, and DPDK's
// rte_fib (DIR24_8) beside rte_fib6 (TRIE) with the RIB that stands behind each.
#include <cstdint>
#include <cstring>

#include "base/dpdk_compat.h"
#include "net/prefix.h"
#include "route/range_table.h"

#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_rib.h>
#include <rte_rib6.h>

namespace cachewire::route {

struct Ip4 {
    static constexpr net::Family kFamily = net::Family::ip4;
    static constexpr const char* kName = "IPv4";
    static constexpr unsigned kBits = 32;
    static constexpr std::uint32_t kMaxGroups = 32767;  // 15 bits of a two-byte entry
    using Key = std::uint32_t;
    using Lookup = std::uint32_t;  // as rte_fib takes it: host order
    using Fib = rte_fib;
    using Node = rte_rib_node;

    static Key key(const net::Address& address) noexcept { return address.v4(); }
    static Lookup lookup_form(const net::Address& address) noexcept { return address.v4(); }
    static Key key_of(Lookup address) noexcept { return address; }

    static Fib* create(const char* name, int socket, unsigned routes, std::uint32_t groups) {
        rte_fib_conf conf{};
        conf.type = RTE_FIB_DIR24_8;
        conf.max_routes = static_cast<int>(routes);
        conf.dir24_8.nh_sz = RTE_FIB_DIR24_8_2B;
        conf.dir24_8.num_tbl8 = groups;
        return rte_fib_create(name, socket, &conf);
    }
    static void free(Fib* fib) { rte_fib_free(fib); }
    static int add(Fib* fib, const net::Prefix& p, std::uint64_t next_hop) {
        return rte_fib_add(fib, p.address.v4(), p.length, next_hop);
    }
    static int remove(Fib* fib, const net::Prefix& p) { return rte_fib_delete(fib, p.address.v4(), p.length); }
    static void lookup(const Fib* fib, Lookup* addresses, std::uint64_t* next_hops, unsigned n) noexcept {
        rte_fib_lookup_bulk(const_cast<Fib*>(fib), addresses, next_hops, static_cast<int>(n));
    }
    static Node* exact(Fib* fib, const net::Prefix& p) {
        return rte_rib_lookup_exact(rte_fib_get_rib(fib), p.address.v4(), p.length);
    }
    static Node* longest(Fib* fib, const net::Address& a) { return rte_rib_lookup(rte_fib_get_rib(fib), a.v4()); }
    static Node* parent(Node* node) { return rte_rib_lookup_parent(node); }
    static std::uint8_t depth(const Node* node) {
        std::uint8_t d = 0;
        rte_rib_get_depth(node, &d);
        return d;
    }
    static std::uint64_t next_hop(const Node* node) {
        std::uint64_t n = 0;
        rte_rib_get_nh(node, &n);
        return n;
    }
    static std::size_t memory_bytes(unsigned routes, std::uint32_t groups) noexcept {
        return (std::size_t{2} << 24) + std::size_t{groups} * 512 + std::size_t{routes} * 2 * kRibNodeBytes;
    }
    static constexpr std::size_t kRibNodeBytes = 128;  // a node with its mempool header
};

struct Ip6 {
    static constexpr net::Family kFamily = net::Family::ip6;
    static constexpr const char* kName = "IPv6";
    static constexpr unsigned kBits = 128;
    static constexpr std::uint32_t kTwoByteGroups = 32767;
    static constexpr std::uint32_t kMaxGroups = 1u << 24;
    using Key = Uint128;
    struct alignas(16) Lookup {
        std::uint8_t bytes[16];
    };
    using Fib = rte_fib6;
    using Node = rte_rib6_node;

    static Key key_of(const Lookup& address) noexcept {
        std::uint64_t high, low;
        std::memcpy(&high, address.bytes, 8);
        std::memcpy(&low, address.bytes + 8, 8);
        return static_cast<Key>(__builtin_bswap64(high)) << 64 | __builtin_bswap64(low);
    }
    static Lookup lookup_form(const net::Address& address) noexcept {
        Lookup l;
        std::memcpy(l.bytes, address.bytes.data(), 16);
        return l;
    }
    static Key key(const net::Address& address) noexcept { return key_of(lookup_form(address)); }

    // Two-byte entries while they can number the groups: the real IPv6 table of 2026 (160 k routes) needs 38 k groups.
    static Fib* create(const char* name, int socket, unsigned routes, std::uint32_t groups) {
        rte_fib6_conf conf{};
        conf.type = RTE_FIB6_TRIE;
        conf.max_routes = static_cast<int>(routes);
        conf.trie.nh_sz = groups <= kTwoByteGroups ? RTE_FIB6_TRIE_2B : RTE_FIB6_TRIE_4B;
        conf.trie.num_tbl8 = groups;
        return rte_fib6_create(name, socket, &conf);
    }
    static void free(Fib* fib) { rte_fib6_free(fib); }
    static int add(Fib* fib, const net::Prefix& p, std::uint64_t next_hop) {
        return rte_fib6_add(fib, base::ip6_argument(p.address.bytes.data()), p.length, next_hop);
    }
    static int remove(Fib* fib, const net::Prefix& p) {
        return rte_fib6_delete(fib, base::ip6_argument(p.address.bytes.data()), p.length);
    }
    static void lookup(const Fib* fib, Lookup* addresses, std::uint64_t* next_hops, unsigned n) noexcept {
        rte_fib6_lookup_bulk(const_cast<Fib*>(fib), base::ip6_array_argument(addresses), next_hops,
                             static_cast<int>(n));
    }
    static Node* exact(Fib* fib, const net::Prefix& p) {
        return rte_rib6_lookup_exact(rte_fib6_get_rib(fib), base::ip6_argument(p.address.bytes.data()), p.length);
    }
    static Node* longest(Fib* fib, const net::Address& a) {
        return rte_rib6_lookup(rte_fib6_get_rib(fib), base::ip6_argument(a.bytes.data()));
    }
    static Node* parent(Node* node) { return rte_rib6_lookup_parent(node); }
    static std::uint8_t depth(const Node* node) {
        std::uint8_t d = 0;
        rte_rib6_get_depth(node, &d);
        return d;
    }
    static std::uint64_t next_hop(const Node* node) {
        std::uint64_t n = 0;
        rte_rib6_get_nh(node, &n);
        return n;
    }
    static std::size_t memory_bytes(unsigned routes, std::uint32_t groups) noexcept {
        const std::size_t entry = groups <= kTwoByteGroups ? 2 : 4;
        return (entry << 24) + std::size_t{groups} * 256 * entry + std::size_t{routes} * 2 * kRibNodeBytes;
    }
    static constexpr std::size_t kRibNodeBytes = 128;
};

}  // namespace cachewire::route
