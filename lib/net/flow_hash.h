#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The one hash of a flow: keyed, symmetric (both directions of a session give the same value), over tenant and tuple.
// Used for the session's bucket and for its owner. A multiply-fold with secret keys and never a CRC: two keys that
// collide in CRC32C collide under every seed, so an attacker could aim at one bucket.
#include <cstdint>
#include <cstring>

#include "net/flow_key.h"

namespace cachewire::net {

struct HashSeed {  // drawn once per start from the kernel's random source; tests fix it
    std::uint64_t a = 0x9e3779b97f4a7c15, b = 0xbf58476d1ce4e5b9, c = 0x94d049bb133111eb;
};

inline constexpr unsigned kOwnerHashBits = 9;  // the uppermost, a function of the tuple alone

__extension__ typedef unsigned __int128 Product;  // no standard type is wide enough

inline std::uint64_t multiply_fold(std::uint64_t x, std::uint64_t y) noexcept {
    const Product p = static_cast<Product>(x) * y;
    return static_cast<std::uint64_t>(p) ^ static_cast<std::uint64_t>(p >> 64);
}

// A key's identity as the words that stand in its memory, for who has just put them together.
struct FlowWords {
    std::uint64_t src[2], dst[2];
    std::uint64_t rest;  // ports, tenant, protocol, 0
};

// Each endpoint (address, port) is hashed alone, the two are added, which does not care for their order, and the sum is
// folded again with the protocol. An IPv4 address leaves the upper word to the port, so one multiplication takes
// both in, and nothing that a sender chooses shares bits. The family is asked of the address, or known to the caller.
// The tenant comes last and leaves the upper bits alone, which choose the owner: a reply to a session that leaks comes
// in by another tenant, and belongs to the same worker. Below them it tells equal tuples of different tenants apart.
[[gnu::always_inline]] inline std::uint32_t flow_hash(const FlowWords& words, const HashSeed& seed, bool ip4) noexcept {
    const auto endpoint = [&seed, ip4](const std::uint64_t* address, std::uint64_t port) {
        if (ip4) return multiply_fold(port ^ seed.a, address[1] ^ seed.b);
        return multiply_fold(multiply_fold(address[0] ^ seed.a, address[1] ^ seed.b) ^ port, seed.c);
    };
    const std::uint64_t both =
        endpoint(words.src, words.rest & 0xffff) + endpoint(words.dst, words.rest >> 16 & 0xffff);
    const std::uint64_t h = multiply_fold(both ^ seed.c, seed.a ^ (words.rest >> 48));
    constexpr std::uint64_t kTenantBits = ((1u << (32 - kOwnerHashBits)) - 1) & ~0x7fu;
    return static_cast<std::uint32_t>(h ^ (h >> 32) ^ (words.rest >> 25 & kTenantBits));
}

inline std::uint32_t flow_hash(const FlowKey& key, const HashSeed& seed) noexcept {
    FlowWords words;
    static_assert(sizeof words == kFlowIdentityBytes);
    std::memcpy(&words, &key, sizeof words);
    return flow_hash(words, seed, key.is_v4());
}

}  // namespace cachewire::net
