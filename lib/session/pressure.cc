// SPDX-License-Identifier: BSD-3-Clause
// Who gets a session when there are not enough, and who loses one. Everything here costs a bounded amount of work for
// each new session and nothing for packets of sessions that exist.
#include <algorithm>

#include "session/table.h"

namespace cachewire::session {

namespace {

void decrease(base::Counter& gauge) noexcept { gauge.set(gauge.read() - 1); }

// Whether `part` is at least an equal share of `all` among `sharers`. The largest part always is.
bool has_its_share(const base::Counter& part, const base::Counter& all, const base::Counter& sharers) noexcept {
    return part.read() * sharers.read() >= all.read();
}

}  // namespace

// The quota comes first: what it refuses must not push anybody else out.
Table::Insert Table::admit(std::uint16_t tenant, std::uint64_t now_tsc, const Quota& quota) noexcept {
    TenantUse& use = uses_[tenant];
    if (!quotas_.take(tenant, quota, now_tsc)) {
        use.quota_denied.add(1);
        return Insert::quota_denied;
    }
    const std::uint32_t in_use = entries_in_use();
    if (in_use < mark_) return Insert::created;
    const bool evicts = on_full_ == OnFull::evict_embryonic;
    relief_due_ += evicts ? 1 : 0;
    if (in_use < header_->capacity && (evicts || !has_its_share(use.active, active_, active_tenants_)))
        return Insert::created;
    quotas_.undo(tenant);
    use.table_full.add(1);
    return Insert::table_full;
}

bool Table::can_be_evicted(const HotEntry& entry) const noexcept {
    return is_expendable(entry.state()) && !entry.is_companion() &&
           has_its_share(uses_[entry.tenant].expendable, expendable_, expendable_tenants_);
}

unsigned Table::relieve(OutcomeTable& outcomes) noexcept {
    const std::uint32_t wanted = std::min(relief_due_, std::uint32_t{kMaxLookup});
    relief_due_ = 0;
    const std::uint32_t end_of_use = header_->used_end;
    std::uint32_t i = header_->relief_cursor;
    unsigned evicted = 0;
    Ending ending;
    for (std::uint32_t left = wanted * kReliefEntries; left > 0 && evicted + ending.size < wanted; --left) {
        if (expendable_.read() == 0) break;
        if (i >= end_of_use) i = 0;
        if (can_be_evicted(hot_[i]) && add(ending, i)) evicted += finish_evicted(ending, outcomes);
        ++i;
    }
    header_->relief_cursor = i;
    return evicted + finish_evicted(ending, outcomes);
}

// The first ones may have brought their tenant below its share.
unsigned Table::finish_evicted(Ending& ending, OutcomeTable& outcomes) noexcept {
    fetch_buckets(ending);
    unsigned evicted = 0;
    for (std::uint32_t k = 0; k < ending.size; ++k) {
        const std::uint32_t index = ending.indices[k];
        if (!can_be_evicted(hot_[index])) continue;
        finish(index, outcomes, &TenantUse::evicted);
        ++evicted;
    }
    ending.size = 0;
    return evicted;
}

void Table::count_begin(TenantUse& use) noexcept {
    use.created.add(1);
    count_in(use, State::fresh);
}

void Table::count_in(TenantUse& use, State state) noexcept {
    if (use.active.read() == 0) active_tenants_.add(1);
    use.active.add(1);
    active_.add(1);
    use.states[static_cast<unsigned>(state)].add(1);
    if (is_expendable(state)) count_expendable(use, true);
}

void Table::count_end(TenantUse& use, State state) noexcept {
    decrease(use.active);
    decrease(active_);
    if (use.active.read() == 0) decrease(active_tenants_);
    decrease(use.states[static_cast<unsigned>(state)]);
    if (is_expendable(state)) count_expendable(use, false);
}

void Table::count_change(std::uint16_t tenant, State before, State after) noexcept {
    TenantUse& use = uses_[tenant];
    decrease(use.states[static_cast<unsigned>(before)]);
    use.states[static_cast<unsigned>(after)].add(1);
    if (is_expendable(before) != is_expendable(after)) count_expendable(use, is_expendable(after));
}

void Table::count_expendable(TenantUse& use, bool more) noexcept {
    if (more) {
        if (use.expendable.read() == 0) expendable_tenants_.add(1);
        use.expendable.add(1);
        expendable_.add(1);
        return;
    }
    decrease(use.expendable);
    decrease(expendable_);
    if (use.expendable.read() == 0) decrease(expendable_tenants_);
}

}  // namespace cachewire::session
