#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// One worker's sessions: an index of 64-byte buckets (16-bit tags beside 32-bit entry indices), two candidate buckets a key,
// over an array of hot entries and one of cold entries. One writer, no locks; both directions of a session find the same entry.
// Memory is the table's own mapping, taken at construction; nothing is allocated afterwards.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "net/flow_key.h"
#include "session/entry.h"

namespace cachewire::session {

inline constexpr std::uint32_t kNone = 0xffffffff;

struct ColdEntry {
    // First-packet fields (FlowKey's last 8 bytes): a verdict is a function of the key and these.
    std::uint16_t in_interface_be;
    std::uint8_t tcp_flags, dscp, icmp_type, icmp_code, match_flags, pcp;
    std::uint32_t rule;        // of the verdict, in its list
    std::uint32_t hash;        // to find the bucket again
    std::uint64_t created_tsc;
    std::uint64_t packets[2];  // totals, without the hot entry's deltas
    std::uint64_t bytes[2];
    std::uint64_t reserved;
};
static_assert(sizeof(ColdEntry) == 64);

struct Found {
    std::uint32_t index;  // kNone: no session
    bool reverse;
};

struct Timeouts {  // seconds
    std::uint32_t fresh = 5, established_udp = 30, established_tcp = 7200, half_close = 120, time_wait = 30, closed = 5, icmp = 10;
};

class Table {
  public:
    struct Stats {
        std::uint64_t capacity, active, created, expired, closed, table_full, bucket_full, memory_bytes;
    };
    enum class Insert : std::uint8_t { created, exists, table_full, bucket_full };

    // `capacity` sessions on `socket_id` (-1: any). Throws base::MachineError with the memory needed.
    Table(std::uint32_t capacity, int socket_id, std::uint64_t tsc_hz, const Timeouts& timeouts);
    ~Table();
    Table(const Table&) = delete;
    Table& operator=(const Table&) = delete;

    // Bytes that a table of `capacity` takes; for the start-up log.
    static std::size_t memory_needed(std::uint32_t capacity) noexcept;

    // Fetches the two buckets of a hash; callers do it for all lanes before look-up.
    void prefetch(std::uint32_t hash) const noexcept;
    // In passes over the burst: match tags and prefetch hot entries, then verify keys. Spans of equal size, at most 64.
    void lookup(std::span<const net::FlowKey* const> keys, std::span<const std::uint32_t> hashes,
                std::span<Found> found) noexcept;
    // Finds first, so two packets of one new flow in a burst make one session. On created, the hot entry holds the key and zeroes,
    // the cold entry the first-packet fields, creation time and hash.
    Insert insert(const net::FlowKey& key, std::uint32_t hash, std::uint64_t now_tsc, Found& found) noexcept;
    void erase(std::uint32_t index) noexcept;

    // A packet of `frame_length` L2 bytes: counts, last-seen, and the state machine (tcp_flags are ignored for other protocols).
    void touch(std::uint32_t index, bool reverse, std::uint8_t tcp_flags, std::uint32_t frame_length,
               std::uint64_t now_tsc) noexcept;
    // Looks at `max_entries` entries from where the last call stopped and erases those past their timeout. `on_erase` may be
    // called for each first (to release its outcome).
    template <class OnErase>
    unsigned expire(std::uint64_t now_tsc, unsigned max_entries, OnErase&& on_erase) noexcept;

    [[nodiscard]] HotEntry& hot(std::uint32_t index) noexcept;
    [[nodiscard]] ColdEntry& cold(std::uint32_t index) noexcept;
    [[nodiscard]] Stats stats() const noexcept;  // any thread

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace cachewire::session
