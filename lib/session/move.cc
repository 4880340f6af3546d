// SPDX-License-Identifier: BSD-3-Clause
// Sessions that leave for another worker's table, and those that come from one. The tenant's quota is over all workers,
// so what a session has reserved there moves along untouched.
#include "session/move.h"

#include <cassert>

#include "session/table.h"

namespace cachewire::session {

void Table::hand_out(std::uint32_t index, OutcomeTable& outcomes, MovedSession& to) noexcept {
    HotEntry& hot = hot_[index];
    assert(hot.state() != State::free && !hot.is_companion());
    flush(index);
    to.hot = hot;
    to.cold = cold_[index];
    to.cold.companion = kNone;
    to.has_outcome = hot.outcome != kNoOutcome;
    if (to.has_outcome) to.verdicts = outcomes.verdicts(hot.outcome);
    outcomes.release(hot.outcome);
    if (rule_counters_ != nullptr) {
        rule_counters_->release(to.cold.rule);
        rule_counters_->release(to.cold.reverse_rule);
    }
    const std::uint32_t companion = cold_[index].companion;
    to.has_companion = companion != kNone;
    if (to.has_companion) {
        to.companion = forward_key(hot_[companion], cold_[companion]);
        to.companion_hash = cold_[companion].hash;
        free_entry(companion);
        companions_.set(companions_.read() - 1);
    }
    count_end(uses_[to.hot.tenant], to.hot.state());
    free_entry(index);
}

bool Table::take_in(const MovedSession& from, OutcomeTable& outcomes) noexcept {
    const std::uint16_t tenant = from.hot.tenant;
    TenantUse& use = uses_[tenant];
    const bool full = entries_in_use() == header_->capacity;
    const std::uint32_t i = full ? kNone : take_entry(index_.place(from.cold.hash));
    if (i == kNone) {  // it has begun elsewhere and ends here
        use.evicted.add(1);
        quotas_.release(tenant);
        return false;
    }
    besides_.begin(i);
    HotEntry& hot = hot_[i];
    hot = from.hot;
    cold_[i] = from.cold;
    hot.outcome = from.has_outcome ? outcomes.intern(from.verdicts) : kNoOutcome;
    if (hot.outcome == kNoOutcome) cold_[i].reverse_rule = kSameRule;  // replies are judged anew
    if (rule_counters_ != nullptr) {
        rule_counters_->hold_again(cold_[i].rule);
        rule_counters_->hold_again(cold_[i].reverse_rule);
    }
    count_in(use, hot.state());
    // Without room for it the reply takes the way of a packet without a session, as where none could be made.
    if (from.has_companion) static_cast<void>(add_companion(i, from.companion, from.companion_hash));
    return true;
}

}  // namespace cachewire::session
