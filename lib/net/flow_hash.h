#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The one hash of a flow: keyed, symmetric (both directions of a session give the same value), over tenant and tuple.
// Used for the session's bucket and for its owner. A multiply-fold with secret keys and never a CRC: two keys that
// collide in CRC32C collide under every seed, so an attacker could aim at one bucket.
#include <cstdint>
#include <cstring>

#include "net/flow_key.h"
#include "net/rss_hash.h"

namespace cachewire::net {

struct HashSeed {  // drawn once per start from the kernel's random source; tests fix it
    std::uint64_t a = 0x9e3779b97f4a7c15, b = 0xbf58476d1ce4e5b9, c = 0x94d049bb133111eb;
    RssHash rss{};  // in use: devices choose the owner by it, so the hash's uppermost bits are its own
};

inline constexpr unsigned kOwnerHashBits = 9;  // the uppermost, a function of the tuple alone

__extension__ using Product = unsigned __int128;  // no standard type is wide enough

inline std::uint64_t multiply_fold(std::uint64_t x, std::uint64_t y) noexcept {
    const Product p = static_cast<Product>(x) * y;
    return static_cast<std::uint64_t>(p) ^ static_cast<std::uint64_t>(p >> 64);
}

inline constexpr std::uint32_t kBelowOwnerBits = (1u << (32 - kOwnerHashBits)) - 1;

// A key's identity as the words that stand in its memory, for who has just put them together.
struct FlowWords {
    std::uint64_t src[2], dst[2];
    std::uint64_t rest;  // ports, tenant, protocol, 0
};

// What a device's RSS sees: ports only of TCP and UDP. The prefix that marks an IPv4 address stands in both and cancels
// out.
[[gnu::always_inline]] inline std::uint32_t rss_bucket(const FlowWords& words, const RssHash& rss) noexcept {
    const std::uint64_t proto = words.rest >> 48;
    const std::uint64_t ports = proto == 6 || proto == 17 ? words.rest & 0xffffffff : 0;
    return rss(words.src[0] ^ words.src[1] ^ words.dst[0] ^ words.dst[1] ^ ports) & ((1u << kOwnerHashBits) - 1);
}

// Each endpoint (address, port) is hashed alone, the two are added, which does not care for their order, and the sum is
// folded again with the protocol. An IPv4 address leaves the upper word to the port, so one multiplication takes
// both in, and nothing that a sender chooses shares bits. The family is asked of the address, or known to the caller.
// The tenant comes last and leaves the upper bits alone, which choose the owner: a reply to a session that leaks comes
// in by another tenant, and belongs to the same worker. Below them it tells equal tuples of different tenants apart.
[[gnu::always_inline]] inline std::uint32_t flow_hash(const FlowWords& words, const HashSeed& seed, bool ip4) noexcept {
    const auto endpoint = [&seed, ip4](const std::uint64_t* address, std::uint64_t port) {
        if (ip4) return multiply_fold(port ^ seed.a, address[1] >> 32 ^ seed.b);
        return multiply_fold(multiply_fold(address[0] ^ seed.a, address[1] ^ seed.b) ^ port, seed.c);
    };
    const std::uint64_t both =
        endpoint(words.src, words.rest & 0xffff) + endpoint(words.dst, words.rest >> 16 & 0xffff);
    const std::uint64_t h = multiply_fold(both ^ seed.c, seed.a ^ (words.rest >> 48));
    constexpr std::uint64_t kTenantBits = kBelowOwnerBits & ~0x7fu;
    const auto hash = static_cast<std::uint32_t>(h ^ (h >> 32) ^ (words.rest >> 25 & kTenantBits));
    if (!seed.rss.in_use()) [[likely]]
        return hash;
    return (hash & kBelowOwnerBits) | rss_bucket(words, seed.rss) << (32 - kOwnerHashBits);
}

inline std::uint32_t flow_hash(const FlowKey& key, const HashSeed& seed) noexcept {
    FlowWords words;
    static_assert(sizeof words == kFlowIdentityBytes);
    std::memcpy(&words, &key, sizeof words);
    return flow_hash(words, seed, key.is_v4());
}

}  // namespace cachewire::net
