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

Table::Table(std::uint32_t capacity, int socket_id, std::uint64_t tsc_hz, const Timeouts& timeouts)
    : tick_shift_(shift_of_tick(tsc_hz)), memory_(take_memory(capacity, socket_id)) {
    std::byte* at = memory_.data();
    header_ = new (at) Header{Header::kMagic, Header::kVersion, capacity, Index::buckets_for(capacity), kNone, 0, 0};
    at += sizeof(Header);
    index_ = Index(reinterpret_cast<Bucket*>(at), header_->buckets);
    at += sizeof(Bucket) * header_->buckets;
    hot_ = reinterpret_cast<HotEntry*>(at);
    at += sizeof(HotEntry) * capacity;
    cold_ = reinterpret_cast<ColdEntry*>(at);
    set_timeouts(tsc_hz, timeouts);
}

std::size_t Table::memory_needed(std::uint32_t capacity) noexcept {
    const std::size_t entries = std::size_t{capacity} * (sizeof(HotEntry) + sizeof(ColdEntry));
    return base::HugeArray::mapped_bytes(sizeof(Header) + sizeof(Bucket) * Index::buckets_for(capacity) + entries);
}

void Table::set_timeouts(std::uint64_t tsc_hz, const Timeouts& timeouts) noexcept {
    // Rounded up, and the walk erases what is older than this: never before the time-out. Over 30 years means never.
    const auto ticks = [&](std::uint64_t seconds) {
        const std::uint64_t cycles = std::min(seconds, std::uint64_t{1'000'000'000}) * tsc_hz;
        return static_cast<std::uint32_t>(
            std::min((cycles + cycles_per_tick() - 1) >> tick_shift_, std::uint64_t{0xffffffff}));
    };
    const auto row = [&](State state) -> auto& { return timeout_ticks_[static_cast<unsigned>(state)]; };
    row(State::fresh).fill(ticks(timeouts.fresh));
    row(State::established) = {ticks(timeouts.established_udp), ticks(timeouts.established_tcp), ticks(timeouts.icmp)};
    row(State::half_close).fill(ticks(timeouts.half_close));
    row(State::time_wait).fill(ticks(timeouts.time_wait));
    row(State::closed).fill(ticks(timeouts.closed));
}

void Table::lookup(std::span<const net::FlowKey* const> keys, std::span<const std::uint32_t> hashes,
                   std::span<Found> found) noexcept {
    const std::size_t n = keys.size();
    assert(n <= kMaxLookup && hashes.size() == n && found.size() == n);
    std::array<Index::Place, kMaxLookup> places;
    std::array<std::uint32_t, kMaxLookup> first;
    // Tags only: the first entry that may be it is on its way while the other lanes' tags are matched.
    for (std::size_t i = 0; i < n; ++i) {
        places[i] = index_.place(hashes[i]);
        const unsigned candidates = index_.candidates(places[i]);
        first[i] = kNone;
        if (candidates == 0) continue;
        first[i] = index_.entry(places[i], static_cast<unsigned>(std::countr_zero(candidates)));
        base::prefetch_write(hot_ + first[i]);
    }
    for (std::size_t i = 0; i < n; ++i) {
        found[i] = {kNone, false};
        if (first[i] == kNone) continue;
        const Match match = match_key(hot_[first[i]], *keys[i]);
        // Another key with this tag: one in 8192 look-ups of a full table takes the long way.
        found[i] = match.any ? Found{first[i], match.reverse} : find(places[i], *keys[i]);
    }
}

Found Table::find(const Index::Place& at, const net::FlowKey& key) const noexcept {
    for (unsigned mask = index_.candidates(at); mask != 0; mask &= mask - 1) {
        const std::uint32_t i = index_.entry(at, static_cast<unsigned>(std::countr_zero(mask)));
        const Match match = match_key(hot_[i], key);
        if (match.any) return {i, match.reverse};
    }
    return {kNone, false};
}

Table::Insert Table::insert(const net::FlowKey& key, std::uint32_t hash, std::uint64_t now_tsc, Found& found) noexcept {
    const Index::Place at = index_.place(hash);
    found = find(at, key);
    if (found.index != kNone) return Insert::exists;
    const bool reuse = header_->free_head != kNone;
    if (!reuse && header_->used_end == header_->capacity) {
        table_full_.add(1);
        return Insert::table_full;
    }
    const std::uint32_t i = reuse ? header_->free_head : header_->used_end;
    if (!index_.insert(at, i)) {
        bucket_full_.add(1);
        return Insert::bucket_full;
    }
    if (reuse)
        header_->free_head = hot_[i].bytes[0];
    else
        ++header_->used_end;
    begin(i, key, hash, now_tsc);
    found = {i, false};
    active_.add(1);
    created_.add(1);
    return Insert::created;
}

void Table::begin(std::uint32_t index, const net::FlowKey& key, std::uint32_t hash, std::uint64_t now_tsc) noexcept {
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
    cold.created_tsc = now_tsc;
}

std::uint16_t Table::memoize(std::uint32_t index, OutcomeTable& outcomes, const Outcome& outcome,
                             std::uint16_t policy_generation, std::uint32_t rule) noexcept {
    HotEntry& hot = hot_[index];
    const std::uint16_t before = hot.outcome;
    hot.outcome = outcomes.intern(outcome);  // before the release, so that an unchanged verdict keeps its index
    outcomes.release(before);
    hot.policy_generation = policy_generation;
    cold_[index].rule = rule;
    return hot.outcome;
}

void Table::erase(std::uint32_t index, OutcomeTable& outcomes) noexcept {
    HotEntry& hot = hot_[index];
    assert(hot.state() != State::free);
    const bool erased = index_.erase(index_.place(cold_[index].hash), index);
    assert(erased);
    static_cast<void>(erased);
    outcomes.release(hot.outcome);
    if (hot.state() == State::closed || hot.state() == State::time_wait) closed_.add(1);
    hot.state_and_flags = static_cast<std::uint8_t>(State::free);
    hot.outcome = kNoOutcome;
    hot.bytes[0] = header_->free_head;
    header_->free_head = index;
    active_.set(active_.read() - 1);
}

void Table::restart(std::uint32_t index, OutcomeTable& outcomes, const net::FlowKey& key,
                    std::uint64_t now_tsc) noexcept {
    assert(match_key(hot_[index], key).any);
    outcomes.release(hot_[index].outcome);
    begin(index, key, cold_[index].hash, now_tsc);
    closed_.add(1);
    created_.add(1);
}

void Table::flush(std::uint32_t index) noexcept {
    HotEntry& hot = hot_[index];
    ColdEntry& cold = cold_[index];
    for (unsigned direction = 0; direction < 2; ++direction) {
        cold.packets[direction] += hot.packets[direction];
        cold.bytes[direction] += hot.bytes[direction];
        hot.packets[direction] = 0;
        hot.bytes[direction] = 0;
    }
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

Table::Stats Table::stats() const noexcept {
    return {.capacity = header_->capacity,
            .active = active_.read(),
            .created = created_.read(),
            .expired = expired_.read(),
            .closed = closed_.read(),
            .table_full = table_full_.read(),
            .bucket_full = bucket_full_.read(),
            .memory_bytes = memory_.size()};
}

// fresh -> established once the reply has come and the first side has answered it: a spoofed SYN that a server answers
// stays fresh and goes soon. FIN from one side -> half_close, from both -> time_wait. RST -> closed: it may be forged,
// so the session stays while packets come and is gone a short time-out after the last one.
void advance_tcp(HotEntry& entry, bool reverse, std::uint8_t tcp_flags) noexcept {
    if (reverse) entry.state_and_flags |= kReplySeen;
    const State state = entry.state();
    // RFC 1337: a RST must not end TIME-WAIT early.
    if (state == State::closed || state == State::time_wait) return;
    if ((tcp_flags & kTcpRst) != 0) return entry.set_state(State::closed);
    if ((tcp_flags & kTcpFin) != 0) {
        entry.state_and_flags |= reverse ? kFinReverse : kFinForward;
        const std::uint8_t both = kFinForward | kFinReverse;
        return entry.set_state((entry.state_and_flags & both) == both ? State::time_wait : State::half_close);
    }
    const bool answered =
        !reverse && (entry.state_and_flags & kReplySeen) != 0 && (tcp_flags & (kTcpSyn | kTcpAck)) == kTcpAck;
    if (state == State::fresh && answered) entry.set_state(State::established);
}

}  // namespace cachewire::session
