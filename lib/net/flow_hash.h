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

__extension__ typedef unsigned __int128 Product;  // no standard type is wide enough

inline std::uint64_t multiply_fold(std::uint64_t x, std::uint64_t y) noexcept {
    const Product p = static_cast<Product>(x) * y;
    return static_cast<std::uint64_t>(p) ^ static_cast<std::uint64_t>(p >> 64);
}

// Each endpoint (address, port) is hashed alone, the two are added, which does not care for their order, and the sum is
// folded again with tenant and protocol.
inline std::uint32_t flow_hash(const FlowKey& key, const HashSeed& seed) noexcept {
    std::uint64_t s0, s1, d0, d1;
    std::memcpy(&s0, key.src.bytes.data(), 8);
    std::memcpy(&s1, key.src.bytes.data() + 8, 8);
    std::memcpy(&d0, key.dst.bytes.data(), 8);
    std::memcpy(&d1, key.dst.bytes.data() + 8, 8);
    const auto endpoint = [&seed](std::uint64_t high, std::uint64_t low, std::uint16_t port) {
        return multiply_fold(multiply_fold(high ^ seed.a, low ^ seed.b) ^ port, seed.c);
    };
    const std::uint64_t both = endpoint(s0, s1, key.src_port_be) + endpoint(d0, d1, key.dst_port_be);
    const std::uint64_t rest = (static_cast<std::uint64_t>(key.tenant) << 8) | key.proto;
    const std::uint64_t h = multiply_fold(both ^ seed.b, seed.a ^ rest);
    return static_cast<std::uint32_t>(h ^ (h >> 32));
}

}  // namespace cachewire::net
