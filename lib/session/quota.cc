// SPDX-License-Identifier: BSD-3-Clause
#include "session/quota.h"

#include <algorithm>

namespace cachewire::session {

namespace {

constexpr std::uint32_t chunk_of(std::uint32_t limit) noexcept { return std::clamp(limit / 1000, 1u, 64u); }

}  // namespace

std::uint32_t SharedQuotas::reserve(std::size_t tenant, std::uint32_t limit, std::uint32_t wanted) noexcept {
    auto& reserved = shares_[tenant].reserved;
    std::uint64_t before = reserved.load(std::memory_order_relaxed);
    std::uint64_t n;
    do {
        if (before >= limit) return 0;
        n = std::min<std::uint64_t>(wanted, limit - before);
    } while (!reserved.compare_exchange_weak(before, before + n, std::memory_order_relaxed));
    return static_cast<std::uint32_t>(n);
}

void SharedQuotas::give_back(std::size_t tenant, std::uint32_t n) noexcept {
    shares_[tenant].reserved.fetch_sub(n, std::memory_order_relaxed);
}

std::uint32_t SharedQuotas::take_new(std::size_t tenant, std::uint32_t per_second, std::uint64_t tsc_hz,
                                     std::uint64_t now_tsc, std::uint32_t wanted) noexcept {
    auto& paid_until = shares_[tenant].paid_until_tsc;
    const std::uint64_t saved = std::max((tsc_hz + per_second - 1) / per_second, tsc_hz / 10);
    const std::uint64_t oldest = now_tsc > saved ? now_tsc - saved : 0;
    std::uint64_t before = paid_until.load(std::memory_order_relaxed);
    std::uint64_t n, after;
    do {
        const std::uint64_t from = std::max(before, oldest);
        if (from >= now_tsc) return 0;
        // At most max(1 s, 0.1 s * 10^9) of cycles times the rate: under 2^63 at 5 GHz.
        n = std::min<std::uint64_t>(wanted, (now_tsc - from) * per_second / tsc_hz);
        if (n == 0) return 0;
        after = from + n * tsc_hz / per_second;
    } while (!paid_until.compare_exchange_weak(before, after, std::memory_order_relaxed));
    return static_cast<std::uint32_t>(n);
}

QuotaCredit::~QuotaCredit() {
    for (std::size_t tenant = 0; tenant < credits_.size(); ++tenant)
        if (credits_[tenant].sessions != 0) shared_->give_back(tenant, credits_[tenant].sessions);
}

bool QuotaCredit::ask(std::size_t tenant, const Quota& quota, std::uint64_t now_tsc) noexcept {
    Credit& credit = credits_[tenant];
    credit.chunk = chunk_of(quota.sessions);
    if (credit.sessions == 0) credit.sessions = shared_->reserve(tenant, quota.sessions, credit.chunk);
    if (credit.sessions != 0 && quota.new_per_second != Quota::kUnlimited && credit.beginnings == 0)
        credit.beginnings =
            shared_->take_new(tenant, quota.new_per_second, tsc_hz_, now_tsc, chunk_of(quota.new_per_second));
    const bool has_both = credit.sessions != 0 && (quota.new_per_second == Quota::kUnlimited || credit.beginnings != 0);
    if (!has_both) {
        refused_tenant_ = tenant;
        refused_tsc_ = now_tsc;
        refused_quota_ = quota;
    }
    return has_both;
}

bool QuotaCredit::take(std::size_t tenant, const Quota& quota, std::uint64_t now_tsc) noexcept {
    if (!has(tenant, quota, now_tsc)) return false;
    Credit& credit = credits_[tenant];
    credit.counted = quota.new_per_second != Quota::kUnlimited;
    if (credit.counted) --credit.beginnings;
    --credit.sessions;
    return true;
}

void QuotaCredit::undo(std::size_t tenant) noexcept {
    refused_tenant_ = kNobody;
    Credit& credit = credits_[tenant];
    ++credit.sessions;
    if (credit.counted) ++credit.beginnings;
}

void QuotaCredit::release(std::size_t tenant) noexcept {
    refused_tenant_ = kNobody;
    Credit& credit = credits_[tenant];
    if (++credit.sessions < 2 * credit.chunk) return;
    const std::uint32_t n = credit.sessions - credit.chunk;
    credit.sessions -= n;
    shared_->give_back(tenant, n);
}

}  // namespace cachewire::session
