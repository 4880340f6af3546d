#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A tenant's quota over all workers: how many sessions it may have, and how many may begin a second. The limit itself
// is shared and atomic; each worker takes from it in chunks, so that most sessions begin and end without touching a
// line that another worker writes. With one worker the limits are exact. With more, at most two chunks a worker lie
// idle: a chunk is a thousandth of the quota, at least 1 and at most 64.
//
// SharedQuotas: written by all workers. QuotaCredit: written and read by its worker alone.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/cache_line.h"
#include "session/settings.h"

namespace cachewire::session {

inline constexpr std::size_t kTenantSlots = 4096;

class SharedQuotas {
  public:
    explicit SharedQuotas(std::size_t tenants = kTenantSlots) : shares_(std::make_unique<Share[]>(tenants)) {}

    // Up to `wanted` of the sessions that `limit` leaves; 0: none left.
    std::uint32_t reserve(std::size_t tenant, std::uint32_t limit, std::uint32_t wanted) noexcept;
    void give_back(std::size_t tenant, std::uint32_t n) noexcept;
    // Up to `wanted` beginnings of the rate; a tenth of a second's worth may be saved up, and always one.
    std::uint32_t take_new(std::size_t tenant, std::uint32_t per_second, std::uint64_t tsc_hz, std::uint64_t now_tsc,
                           std::uint32_t wanted) noexcept;

  private:
    // Relaxed throughout: each value stands for itself and guards no other memory.
    struct alignas(base::kCacheLine) Share {
        std::atomic<std::uint64_t> reserved{0};
        std::atomic<std::uint64_t> paid_until_tsc{0};  // GCRA (ITU-T I.371): the time up to which beginnings are spent
    };
    std::unique_ptr<Share[]> shares_;
};

class QuotaCredit {
  public:
    QuotaCredit(std::shared_ptr<SharedQuotas> shared, std::uint64_t tsc_hz, std::size_t tenants = kTenantSlots)
        : shared_(std::move(shared)), tsc_hz_(tsc_hz), credits_(tenants) {}
    ~QuotaCredit();
    QuotaCredit(const QuotaCredit&) = delete;
    QuotaCredit& operator=(const QuotaCredit&) = delete;

    // Whether a session may begin now: as take(), and takes none. What was refused stays so while the clock stands,
    // that is for the rest of a burst, unless a session ends here: a flood asks for each of its packets.
    bool has(std::size_t tenant, const Quota& quota, std::uint64_t now_tsc) noexcept {
        if (tenant == refused_tenant_ && now_tsc == refused_tsc_ && quota == refused_quota_) return false;
        return ask(tenant, quota, now_tsc);
    }
    // One session that begins now.
    bool take(std::size_t tenant, const Quota& quota, std::uint64_t now_tsc) noexcept;
    // It did not begin after all.
    void undo(std::size_t tenant) noexcept;
    // One that has ended.
    void release(std::size_t tenant) noexcept;

  private:
    static constexpr std::size_t kNobody = ~std::size_t{0};
    bool ask(std::size_t tenant, const Quota& quota, std::uint64_t now_tsc) noexcept;

    struct Credit {
        std::uint32_t sessions = 0;    // reserved and not in use
        std::uint32_t beginnings = 0;  // taken from the rate and not used
        std::uint32_t chunk = 1;
        bool counted = false;  // the last take() used a beginning
    };
    std::size_t refused_tenant_ = kNobody;
    std::uint64_t refused_tsc_ = 0;
    Quota refused_quota_;
    std::shared_ptr<SharedQuotas> shared_;
    std::uint64_t tsc_hz_;
    std::vector<Credit> credits_;
};

}  // namespace cachewire::session
