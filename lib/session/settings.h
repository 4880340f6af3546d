#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What the configuration says about sessions: plain values, carried by the snapshot, read by the owning worker. A
// reload replaces them at the worker's next step of the expiry walk.
#include <cstdint>

namespace cachewire::session {

struct Timeouts {  // seconds
    std::uint32_t fresh = 5, established_udp = 30, established_tcp = 7200, half_close = 120, time_wait = 30, closed = 5,
                  icmp = 10;
};

// From the high-water mark on. evict_embryonic: sessions that nobody has confirmed yet, and those that are over, go, of
// the tenant that has more than its share of them. deny_new: a tenant that has more than its share of all sessions gets
// no new ones.
enum class OnFull : std::uint8_t { evict_embryonic, deny_new };

struct Settings {
    Timeouts timeouts;
    std::uint8_t high_watermark_percent = 90;  // 1-100, of the capacity
    OnFull on_full = OnFull::evict_embryonic;
};

// Of one tenant, over all workers.
struct Quota {
    static constexpr std::uint32_t kUnlimited = 0xffffffff;
    std::uint32_t sessions = kUnlimited;
    std::uint32_t new_per_second = kUnlimited;

    [[nodiscard]] bool is_unlimited() const noexcept { return sessions == kUnlimited && new_per_second == kUnlimited; }
    friend bool operator==(const Quota&, const Quota&) noexcept = default;
};

}  // namespace cachewire::session
