#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Keys for session tests: given by hand, turned round, or drawn from a small pool so that tuples meet again.
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <utility>

#include "net/flow_hash.h"
#include "net/flow_key.h"
#include "session/table.h"

namespace cachewire::test {

inline constexpr std::uint8_t kUdp = 17;
inline constexpr std::uint64_t kHz = 1000;  // of a test's clock, which it sets itself: a tick is a millisecond

inline net::FlowKey key_v4(std::uint32_t src, std::uint16_t src_port, std::uint32_t dst, std::uint16_t dst_port,
                           std::uint8_t proto = kUdp, std::uint16_t tenant = 1) {
    net::FlowKey key;
    key.src = net::Address::from_v4(src);
    key.dst = net::Address::from_v4(dst);
    key.src_port_be = __builtin_bswap16(src_port);
    key.dst_port_be = __builtin_bswap16(dst_port);
    key.proto = proto;
    key.tenant = tenant;
    key.match_flags = net::kL4Known;
    return key;
}

namespace tcp_flags {
inline constexpr std::uint8_t F = session::kTcpFin, S = session::kTcpSyn, R = session::kTcpRst, A = session::kTcpAck;
}
inline net::FlowKey tcp(std::uint16_t tenant, std::uint8_t flags, std::uint32_t src = 1) {
    net::FlowKey key = key_v4(src, 1024, 2, 80, session::kProtoTcp, tenant);
    key.tcp_flags = flags;
    return key;
}
inline net::FlowKey udp(std::uint16_t tenant, std::uint32_t src = 1) { return key_v4(src, 1024, 2, 53, kUdp, tenant); }

inline net::FlowKey reversed(net::FlowKey key) {
    std::swap(key.src, key.dst);
    std::swap(key.src_port_be, key.dst_port_be);
    return key;
}

// The number-th of a pool of different flows, both families and four protocols, in one of two directions.
inline net::FlowKey pool_key(std::uint32_t number, bool reverse) {
    constexpr std::uint8_t kProtos[] = {kUdp, session::kProtoTcp, session::kProtoTcp, session::kProtoIcmp};
    net::FlowKey key = key_v4(0x0a000000 + number / 7, static_cast<std::uint16_t>(1000 + number % 5),
                              0x0b000000 + number, 80, kProtos[number % 4], static_cast<std::uint16_t>(1 + number % 3));
    if (number % 2 != 0) {
        key.src.bytes = {0x20, 0x01, 0x0d, 0xb8, 1};
        key.dst.bytes = {0x20, 0x01, 0x0d, 0xb8, 2};
        std::memcpy(key.dst.bytes.data() + 12, &number, sizeof number);
    }
    return reverse ? reversed(key) : key;
}

inline std::uint32_t hash_of(const net::FlowKey& key) { return net::flow_hash(key, net::HashSeed{}); }

// One key through the burst interface.
inline session::Found look_up(session::Table& table, const net::FlowKey& key, std::uint32_t hash) {
    const net::FlowKey* keys[] = {&key};
    session::Found found[] = {{0, true}};
    table.lookup(keys, std::span<const std::uint32_t>(&hash, 1), found);
    return found[0];
}
inline session::Found look_up(session::Table& table, const net::FlowKey& key) {
    return look_up(table, key, hash_of(key));
}

}  // namespace cachewire::test
