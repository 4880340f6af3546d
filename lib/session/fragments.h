#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Virtual reassembly: what the first piece of a datagram says about all of it, so that the later ones, which have no
// ports, follow it. Holds no packet and waits for none: a later piece that comes before the first one finds nothing.
// Fixed size; the oldest entry of a set makes room. Written and read by the owning worker alone.
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/cache_line.h"
#include "net/flow_key.h"

namespace cachewire::session {

// What the first piece's upper-layer header says.
struct FirstFragment {
    std::uint16_t src_port_be = 0, dst_port_be = 0;
    std::uint8_t tcp_flags = 0, icmp_type = 0, icmp_code = 0;
    // Bytes at the datagram's start that decide about it. A later piece that begins inside them would let a receiver
    // see another header than the one that was judged (RFC 1858 4, RFC 5722).
    std::uint16_t header_bytes = 0;
    bool l4_known = false;  // of a protocol that has ports or types
};

class FragmentTable {
  public:
    static constexpr std::size_t kWays = 4;

    // `entries`: rounded up to a power of two of at least kWays. `timeout_cycles`: how long a first piece is
    // remembered; the default is 5 s of a 2 GHz clock.
    explicit FragmentTable(std::size_t entries = 1024, std::uint64_t timeout_cycles = 10'000'000'000);

    // `key`: source, destination, tenant and protocol count, ports don't. `hash` is the same for all pieces and keyed,
    // so that nobody can aim at one set. The last first piece of an id wins: ids are used again soon (RFC 4963).
    void remember(const net::FlowKey& key, std::uint32_t id, std::uint32_t hash, const FirstFragment& first,
                  std::uint64_t now_tsc) noexcept;
    // nullptr: no first piece within the time-out.
    [[nodiscard]] const FirstFragment* find(const net::FlowKey& key, std::uint32_t id, std::uint32_t hash,
                                            std::uint64_t now_tsc) const noexcept;

    // What one set remembers, for who moves it to another table. `key` has the fields that count.
    struct Remembered {
        net::FlowKey key;
        std::uint32_t id;
        FirstFragment first;
        std::uint64_t since_tsc;
    };
    template <class F>
    void visit(std::size_t set, F&& f) const noexcept {
        for (const Entry& entry : sets_[set]) {
            if (!entry.used) continue;
            Remembered one{{}, entry.id, entry.first, entry.since_tsc};
            one.key.src = entry.src;
            one.key.dst = entry.dst;
            one.key.tenant = entry.tenant;
            one.key.proto = entry.proto;
            f(one);
        }
    }

    [[nodiscard]] std::size_t capacity() const noexcept { return sets_.size() * kWays; }

  private:
    struct alignas(base::kCacheLine) Entry {
        net::Address src{}, dst{};
        std::uint32_t id = 0;
        std::uint16_t tenant = 0;
        std::uint8_t proto = 0;
        bool used = false;
        std::uint64_t since_tsc = 0;
        FirstFragment first;
    };
    static_assert(sizeof(Entry) == base::kCacheLine);
    using Set = std::array<Entry, kWays>;

    [[nodiscard]] std::size_t set_of(std::uint32_t id, std::uint32_t hash) const noexcept;
    static bool is_of(const Entry& entry, const net::FlowKey& key, std::uint32_t id) noexcept;

    std::vector<Set> sets_;
    std::uint64_t timeout_cycles_;
};

}  // namespace cachewire::session
