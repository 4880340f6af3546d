// SPDX-License-Identifier: BSD-3-Clause
#include "session/table.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"

namespace cachewire::session {

namespace {

base::HugeArray take_memory(std::uint32_t capacity, int socket_id) {
    if (capacity == 0 || capacity > kMaxCapacity)
        throw base::MachineError(
            fmt::format("session table: capacity {} a worker; 1 to {} are possible", capacity, kMaxCapacity));
    try {
        return {Table::memory_needed(capacity), socket_id};
    } catch (const base::MachineError& e) {
        throw base::MachineError(fmt::format("session table of {} sessions needs {}", capacity, e.what()));
    }
}

// Least power of two cycles that take an eighth of a second.
unsigned shift_of_tick(std::uint64_t tsc_hz) noexcept {
    return tsc_hz <= 8 ? 0 : static_cast<unsigned>(std::bit_width((tsc_hz - 1) / 8));
}

}  // namespace

Table::Table(std::uint32_t capacity, int socket_id, std::uint64_t tsc_hz, const Timeouts& timeouts,
             std::shared_ptr<SharedQuotas> quotas)
    : tick_shift_(shift_of_tick(tsc_hz)),
      tsc_hz_(tsc_hz),
      memory_(take_memory(capacity, socket_id)),
      quotas_(quotas != nullptr ? std::move(quotas) : std::make_shared<SharedQuotas>(), tsc_hz),
      socket_id_(socket_id),
      uses_(kTenantSlots) {
    std::byte* at = memory_.data();
    header_ = new (at) Header{Header::kMagic, Header::kVersion, capacity, Index::buckets_for(capacity), kNone, 0, 0, 0};
    at += sizeof(Header);
    index_ = Index(reinterpret_cast<Bucket*>(at), header_->buckets);
    at += sizeof(Bucket) * header_->buckets;
    hot_ = reinterpret_cast<HotEntry*>(at);
    at += sizeof(HotEntry) * capacity;
    cold_ = reinterpret_cast<ColdEntry*>(at);
    configure({.timeouts = timeouts}, ~std::uint64_t{0});
}

std::size_t Table::memory_needed(std::uint32_t capacity) noexcept {
    const std::size_t entries = std::size_t{capacity} * (sizeof(HotEntry) + sizeof(ColdEntry));
    return base::HugeArray::mapped_bytes(sizeof(Header) + sizeof(Bucket) * Index::buckets_for(capacity) + entries);
}

void Table::configure(const Settings& settings, std::uint64_t version) noexcept {
    set_timeouts(settings.timeouts);
    const std::uint64_t mark = std::uint64_t{header_->capacity} * settings.high_watermark_percent / 100;
    mark_ = static_cast<std::uint32_t>(std::max<std::uint64_t>(mark, 1));
    on_full_ = settings.on_full;
    settings_version_ = version;
}

void Table::set_timeouts(const Timeouts& timeouts) noexcept {
    // Rounded up, and the walk erases what is older than this: never before the time-out. Over 30 years means never.
    const auto ticks = [&](std::uint64_t seconds) {
        const std::uint64_t cycles = std::min(seconds, std::uint64_t{1'000'000'000}) * tsc_hz_;
        return static_cast<std::uint32_t>(
            std::min((cycles + cycles_per_tick() - 1) >> tick_shift_, std::uint64_t{0xffffffff}));
    };
    const auto row = [&](State state) -> auto& { return timeout_ticks_[static_cast<unsigned>(state)]; };
    row(State::fresh).fill(ticks(timeouts.fresh));
    row(State::established) = {ticks(timeouts.established_udp), ticks(timeouts.established_tcp), ticks(timeouts.icmp)};
    row(State::half_close).fill(ticks(timeouts.half_close));
    row(State::one_sided).fill(ticks(timeouts.half_close));
    row(State::time_wait).fill(ticks(timeouts.time_wait));
    for (const State state : {State::closed, State::reset_forward, State::reset_reverse})
        row(state).fill(ticks(timeouts.closed));
}

void Table::lookup(std::span<const net::FlowKey* const> keys, std::span<const std::uint32_t> hashes,
                   std::span<Found> found, unsigned ahead) noexcept {
    const std::size_t n = keys.size();
    assert(n <= kMaxLookup && hashes.size() == n && found.size() == n);
    std::array<std::uint32_t, kMaxLookup> candidates;
    for (std::size_t i = 0; i < std::min<std::size_t>(ahead, n); ++i) index_.prefetch_first(hashes[i]);
    const std::uint64_t lanes = n == 0 ? 0 : ~std::uint64_t{0} >> (kMaxLookup - n);
    find_candidates(
        lanes, ahead, [&](unsigned i) { return hashes[i]; },
        [&](unsigned i, std::uint32_t candidate) { candidates[i] = candidate; });
    for (std::size_t i = 0; i < n; ++i) found[i] = verify(candidates[i], *keys[i], hashes[i]);
}

Found Table::find(const Index::Place& at, const net::FlowKey& key) const noexcept {
    for (unsigned mask = index_.candidates(at); mask != 0; mask &= mask - 1) {
        const std::uint32_t i = index_.entry(at, static_cast<unsigned>(std::countr_zero(mask)));
        const Match match = match_key(hot_[i], key);
        if (match.any) return resolve(i, match.reverse);
    }
    return {kNone, false};
}

Table::Insert Table::insert(const net::FlowKey& key, std::uint32_t hash, std::uint64_t now_tsc, const Quota& quota,
                            Found& found) noexcept {
    const Index::Place at = index_.place(hash);
    found = find(at, key);
    if (found.index != kNone) return Insert::exists;
    const Insert admitted = admit(key.tenant, now_tsc, quota);
    if (admitted != Insert::created) return admitted;
    const std::uint32_t i = take_entry(at);
    if (i == kNone) {
        quotas_.undo(key.tenant);
        uses_[key.tenant].bucket_full.add(1);
        return Insert::bucket_full;
    }
    begin(i, key, hash, now_tsc);
    count_begin(uses_[key.tenant]);
    found = {i, false};
    return Insert::created;
}

std::uint32_t Table::take_entry(const Index::Place& at) noexcept {
    const bool reuse = header_->free_head != kNone;
    const std::uint32_t i = reuse ? header_->free_head : header_->used_end;
    if (!index_.insert(at, i)) return kNone;
    if (!reuse) {
        ++header_->used_end;
        return i;
    }
    const std::uint32_t next = hot_[i].bytes[0];
    header_->free_head = next;
    if (next != kNone) {
        base::prefetch_write(hot_ + next);
        base::prefetch_write(cold_ + next);
    }
    return i;
}

void Table::free_entry(std::uint32_t index) noexcept {
    HotEntry& hot = hot_[index];
    const bool erased = index_.erase(index_.place(cold_[index].hash), index);
    assert(erased);
    static_cast<void>(erased);
    hot.state_and_flags = static_cast<std::uint8_t>(State::free);
    hot.outcome = kNoOutcome;
    hot.bytes[0] = header_->free_head;
    header_->free_head = index;
}

Table::Insert Table::add_companion(std::uint32_t forward, const net::FlowKey& key, std::uint32_t hash) noexcept {
    assert(hot_[forward].state() != State::free && !hot_[forward].is_companion());
    assert(cold_[forward].companion == kNone);
    const Index::Place at = index_.place(hash);
    if (find(at, key).index != kNone) return Insert::exists;
    TenantUse& use = uses_[hot_[forward].tenant];
    if (entries_in_use() == header_->capacity) {
        use.table_full.add(1);
        return Insert::table_full;
    }
    const std::uint32_t i = take_entry(at);
    if (i == kNone) {
        use.bucket_full.add(1);
        return Insert::bucket_full;
    }
    begin(i, key, hash, 0);
    hot_[i].set_state(State::established);  // anything but free
    hot_[i].state_and_flags |= kCompanion;
    hot_[i].bytes[1] = forward;
    cold_[forward].companion = i;
    companions_.add(1);
    return Insert::created;
}

void Table::begin(std::uint32_t index, const net::FlowKey& key, std::uint32_t hash, std::uint64_t now_tsc) noexcept {
    if (new_entries_ != nullptr) [[unlikely]]
        new_entries_[index / 64] |= std::uint64_t{1} << index % 64;
    besides_.begin(index);
    HotEntry& hot = hot_[index];
    hot = HotEntry{};
    std::memcpy(static_cast<void*>(&hot), &key, offsetof(HotEntry, state_and_flags));
    hot.set_state(State::fresh);
    hot.outcome = kNoOutcome;
    hot.last_seen = stamp(now_tsc);

    ColdEntry& cold = cold_[index];
    cold = ColdEntry{};
    std::memcpy(static_cast<void*>(&cold), reinterpret_cast<const std::byte*>(&key) + net::kFlowIdentityBytes,
                offsetof(ColdEntry, rule));
    cold.rule = kNone;
    cold.hash = hash;
    cold.created_ticks = ticks(now_tsc);
    cold.reverse_rule = kSameRule;
    cold.companion = kNone;
}

// What the session's memo says under this generation.
Verdicts Table::known_verdicts(const HotEntry& hot, const OutcomeTable& outcomes,
                               std::uint16_t policy_generation) const noexcept {
    return hot.policy_generation == policy_generation ? outcomes.verdicts(hot.outcome) : Verdicts{};
}

std::uint16_t Table::memoize(std::uint32_t index, OutcomeTable& outcomes, const Outcome& outcome,
                             std::uint16_t policy_generation, std::uint32_t rule) noexcept {
    HotEntry& hot = hot_[index];
    const std::uint16_t before = hot.outcome;
    hot.outcome = kNoOutcome;
    // Interned before the release, so that an unchanged verdict keeps its index.
    if (hot.policy_generation == policy_generation && outcomes.knows_reverse(before)) {
        Verdicts verdicts = outcomes.verdicts(before);
        verdicts.forward = outcome;
        verdicts.knows_forward = true;
        hot.outcome = outcomes.intern(verdicts);
    }
    if (hot.outcome == kNoOutcome) {
        hot.outcome = outcomes.intern(outcome);
        set_reverse_rule(index, kSameRule);
    }
    outcomes.release(before);
    hot.policy_generation = policy_generation;
    set_rule(index, rule);
    return hot.outcome;
}

bool Table::memoize_reverse(std::uint32_t index, OutcomeTable& outcomes, const Outcome& outcome, std::uint64_t fields,
                            std::uint16_t policy_generation, std::uint32_t rule) noexcept {
    HotEntry& hot = hot_[index];
    Verdicts verdicts = known_verdicts(hot, outcomes, policy_generation);
    verdicts.reverse = outcome;
    verdicts.reverse_fields = fields;
    verdicts.knows_reverse = true;
    const std::uint16_t both = outcomes.intern(verdicts);
    if (both == kNoOutcome) return false;
    outcomes.release(hot.outcome);
    hot.outcome = both;
    hot.policy_generation = policy_generation;
    set_reverse_rule(index, rule);
    return true;
}

void Table::set_rule(std::uint32_t index, std::uint32_t rule) noexcept {
    std::uint32_t& now = cold_[index].rule;
    if (now == rule) return;
    flush(index);
    if (rule_counters_ != nullptr) {
        rule_counters_->release(now);
        rule_counters_->hold(rule);
    }
    now = rule;
}

void Table::set_reverse_rule(std::uint32_t index, std::uint32_t rule) noexcept {
    std::uint32_t& now = cold_[index].reverse_rule;
    if (now == rule) return;
    flush(index);
    if (rule_counters_ != nullptr) {  // kSameRule has no chunk
        rule_counters_->release(now);
        rule_counters_->hold(rule, true);
    }
    now = rule;
}

void Table::fetch_buckets(const Ending& ending) const noexcept {
    for (std::uint32_t k = 0; k < ending.size; ++k) index_.prefetch_first(cold_[ending.indices[k]].hash);
}

void Table::finish_expired(Ending& ending, OutcomeTable& outcomes) noexcept {
    fetch_buckets(ending);
    for (std::uint32_t k = 0; k < ending.size; ++k) {
        const std::uint32_t index = ending.indices[k];
        finish(index, outcomes, is_over(hot_[index].state()) ? &TenantUse::closed : &TenantUse::expired);
    }
    ending.size = 0;
}

void Table::finish(std::uint32_t index, OutcomeTable& outcomes, base::Counter TenantUse::*why) noexcept {
    const HotEntry& hot = hot_[index];
    assert(hot.state() != State::free && !hot.is_companion());
    TenantUse& use = uses_[hot.tenant];
    set_reverse_rule(index, kSameRule);
    set_rule(index, kNone);
    count_end(use, hot.state());
    (use.*why).add(1);
    quotas_.release(hot.tenant);
    outcomes.release(hot.outcome);
    if (const std::uint32_t companion = cold_[index].companion; companion != kNone) {
        free_entry(companion);
        companions_.set(companions_.read() - 1);
    }
    free_entry(index);
}

void Table::restart(std::uint32_t index, OutcomeTable& outcomes, const net::FlowKey& key,
                    std::uint64_t now_tsc) noexcept {
    if (cold_[index].companion != kNone) return finish(index, outcomes, &TenantUse::closed);
    assert(match_key(hot_[index], key).any);
    TenantUse& use = uses_[key.tenant];
    set_reverse_rule(index, kSameRule);
    set_rule(index, kNone);
    outcomes.release(hot_[index].outcome);
    count_end(use, hot_[index].state());
    use.closed.add(1);
    begin(index, key, cold_[index].hash, now_tsc);
    count_begin(use);
}

void Table::flush(std::uint32_t index) noexcept {
    if ((hot_[index].packets[0] | hot_[index].packets[1]) == 0) return;
    const std::array<Moved, 2> moved = move_counts(index);
    if (rule_counters_ == nullptr) return;
    for (const bool reverse : {false, true})
        if (const Moved& part = moved[reverse]; part.packets != 0)
            rule_counters_->count(rule_of(cold_[index], reverse), part.packets, part.bytes);
}

std::array<Table::Moved, 2> Table::move_counts(std::uint32_t index) noexcept {
    HotEntry& hot = hot_[index];
    ColdEntry& cold = cold_[index];
    const std::array<Moved, 2> moved{Moved{hot.packets[0], hot.bytes[0]}, Moved{hot.packets[1], hot.bytes[1]}};
    for (unsigned direction = 0; direction < 2; ++direction) {
        cold.packets[direction] += hot.packets[direction];
        cold.bytes[direction] += hot.bytes[direction];
        hot.packets[direction] = 0;
        hot.bytes[direction] = 0;
    }
    return moved;
}

// Only the walk calls this. Idle time that has grown past a quarter of the clock's range moves to the cold entry, and
// last_seen is set to now with the low bit, which no packet writes: as long as that bit is there, nothing has come
// since.
bool Table::is_past_timeout(std::uint32_t index, std::uint64_t now_tsc) noexcept {
    constexpr std::uint16_t kOld = 0x2000;
    HotEntry& hot = hot_[index];
    const TimeoutClass protocol = hot.proto == kProtoTcp                                ? kTcp
                                  : hot.proto == kProtoIcmp || hot.proto == kProtoIcmp6 ? kIcmp
                                                                                        : kOther;
    const std::uint32_t timeout = timeout_ticks_[static_cast<unsigned>(hot.state())][protocol];
    const std::uint16_t age = age_ticks(hot, now_tsc);
    // The cold line is fetched only for long time-outs, and then at most once in a quarter of the range.
    if (timeout <= kOld) return age > timeout;
    if (age <= kOld && (hot.last_seen & kNoPacketSince) == 0) return false;
    ColdEntry& cold = cold_[index];
    const std::uint64_t before = (hot.last_seen & kNoPacketSince) != 0 ? cold.idle_ticks : 0;
    if (before + age > timeout) return true;
    if (age <= kOld) return false;
    cold.idle_ticks = static_cast<std::uint32_t>(before + age);
    hot.last_seen = stamp(now_tsc) | kNoPacketSince;
    return false;
}

void Table::set_state(std::uint32_t index, State state) noexcept {
    const State before = hot_[index].state();
    hot_[index].set_state(state);
    if (state != before) count_change(hot_[index].tenant, before, state);
}

std::uint64_t Table::idle_cycles(std::uint32_t index, std::uint64_t now_tsc) const noexcept {
    const std::uint64_t before = (hot_[index].last_seen & kNoPacketSince) != 0 ? cold_[index].idle_ticks : 0;
    return (before + age_ticks(hot_[index], now_tsc)) << tick_shift_;
}

Table::Stats Table::stats() const noexcept {
    Stats sum{};
    sum.capacity = header_->capacity;
    sum.active = active_.read();
    sum.companions = companions_.read();
    sum.memory_bytes = memory_.size() + besides_.memory_bytes();
    for (const TenantUse& use : uses_) {
        sum.created += use.created.read();
        sum.expired += use.expired.read();
        sum.evicted += use.evicted.read();
        sum.closed += use.closed.read();
        sum.killed += use.killed.read();
        sum.quota_denied += use.quota_denied.read();
        sum.table_full += use.table_full.read();
        sum.bucket_full += use.bucket_full.read();
    }
    return sum;
}

}  // namespace cachewire::session
