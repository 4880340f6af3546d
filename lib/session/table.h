#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// One worker's sessions: an index of 64-byte buckets (16-bit tags beside 32-bit entry numbers), two candidate buckets a
// key, over an array of hot entries and one of cold entries. One writer, no locks; both directions of a session find
// the same entry. Memory is the table's own mapping, taken and filled at construction; nothing is allocated afterwards.
// Header, index and entries hold numbers and no pointers.
//
// Limits. A new session needs room in its tenant's quota. From the high-water mark on the table asks for relief: the
// owner calls relieve() where it holds no entry's number, and sessions that nobody has confirmed, or that are over,
// make room for as many as have begun. Those of the tenant that has more than its share of them go; others never do.
//
// Time. last_seen counts ticks of 2^n TSC cycles, n chosen so that a tick is between 1/8 and 1/4 s, in its upper 15
// bits, which wrap after at least 4096 s. The expiry walk must come by every entry within half of that. It moves idle
// time that grows old into the cold entry and marks the stamp in its lowest bit, so a time-out may be longer than the
// clock's range, no wrap makes an old session look fresh, and the next packet's stamp makes it fresh again. A session
// ends never before its time-out and at most two ticks after it, plus the time that the walk needs to come by.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bits.h"
#include "base/counter.h"
#include "base/huge_array.h"
#include "base/prefetch.h"
#include "net/flow_key.h"
#include "session/beside.h"
#include "session/entry.h"
#include "session/index.h"
#include "session/move.h"
#include "session/outcome.h"
#include "session/quota.h"
#include "session/rule_counters.h"
#include "session/settings.h"
#include "session/tcp_state.h"

namespace cachewire::session {

inline constexpr std::uint32_t kMaxCapacity = 1u << 28;
inline constexpr unsigned kMaxLookup = 64;

struct Found {
    std::uint32_t index;  // kNone: no session
    bool reverse;
};

// worker: rw; telemetry: ro. By tenant slot. A session that has begun is active or has ended in one of four ways:
// created = active + expired + evicted + closed + killed, over all workers: a session may have moved meanwhile.
struct alignas(base::kCacheLine) TenantUse {
    std::array<base::Counter, kStates> states;  // sessions by state; [free] stays 0
    base::Counter active, expendable;           // gauges: all sessions, those that may be evicted
    base::Counter created, expired, evicted, closed, killed;
    base::Counter quota_denied, table_full, bucket_full;  // sessions that did not begin
};

class Table {
  public:
    static constexpr unsigned kDefaultAhead =
        32;  // keys; from 8 on flat at 1 k sessions, 12 % fewer cycles at 1 M; bench session
    struct Stats {
        std::uint64_t capacity, active, companions, created, expired, evicted, closed, killed, quota_denied, table_full,
            bucket_full, memory_bytes;
    };
    // Some session answers to a second tuple.
    [[nodiscard]] bool has_companions() const noexcept { return companions_.read() != 0; }

    enum class Insert : std::uint8_t { created, exists, table_full, bucket_full, quota_denied };

    // `capacity` sessions on `socket_id` (-1: any). Throws base::MachineError with the memory needed.
    // `quotas` is shared with the other workers' tables; null: this table's own.
    Table(std::uint32_t capacity, int socket_id, std::uint64_t tsc_hz, const Timeouts& timeouts,
          std::shared_ptr<SharedQuotas> quotas = nullptr);
    Table(const Table&) = delete;
    Table& operator=(const Table&) = delete;

    // Bytes that a table of `capacity` maps; for the start-up log.
    static std::size_t memory_needed(std::uint32_t capacity) noexcept;

    // Owner. `version` is the caller's: it tells whether these are the settings in force.
    void configure(const Settings& settings, std::uint64_t version) noexcept;
    [[nodiscard]] std::uint64_t settings_version() const noexcept { return settings_version_; }

    // In passes over the burst: fetch buckets `ahead` keys ahead of matching their tags, which fetches hot entries;
    // then verify keys. Spans of equal size, at most kMaxLookup.
    void lookup(std::span<const net::FlowKey* const> keys, std::span<const std::uint32_t> hashes,
                std::span<Found> found, unsigned ahead = kDefaultAhead) noexcept;
    // What lookup() is made of, for who goes by lanes. Of `lanes` (bits), those below `ahead` have had
    // index().prefetch_first(). Gives `put(lane, entry)` the entry that the lane's key may have, its line on the way,
    // or kNone; verify() says whether it has.
    template <bool kPrefetch = true, class HashOf, class Put>
    void find_candidates(std::uint64_t lanes, unsigned ahead, HashOf&& hash_of, Put&& put) const noexcept;
    [[nodiscard]] Found verify(std::uint32_t candidate, const net::FlowKey& key, std::uint32_t hash) const noexcept {
        if (candidate == kNone) return {kNone, false};
        const Match match = match_key(hot_[candidate], key);
        if (!match.any) [[unlikely]]
            return find(index_.place(hash), key);
        if (hot_[candidate].is_companion()) [[unlikely]]
            return resolve(candidate, match.reverse);
        return {candidate, match.reverse};
    }
    // Finds first, so two packets of one new flow in a burst make one session. On created, the hot entry holds the key,
    // state fresh, no outcome, no next hops and zero counts, the cold entry the first-packet fields, creation time and
    // hash.
    Insert insert(const net::FlowKey& key, std::uint32_t hash, std::uint64_t now_tsc, const Quota& quota,
                  Found& found) noexcept;
    Insert insert(const net::FlowKey& key, std::uint32_t hash, std::uint64_t now_tsc, Found& found) noexcept {
        return insert(key, hash, now_tsc, Quota{}, found);
    }
    // The tenant's quota is used up, so no session can begin now: known before anybody asks for its verdict.
    [[nodiscard]] bool is_over_quota(std::uint16_t tenant, std::uint64_t now_tsc, const Quota& quota) noexcept {
        return !quota.is_unlimited() && !quotas_.has(tenant, quota, now_tsc);
    }
    void count_quota_denied(std::uint16_t tenant) noexcept { uses_[tenant].quota_denied.add(1); }
    // A second tuple under which session `forward` is found: `key` is the reply's, where translation or another tenant
    // make it differ. One a session; it ends with the session. A look-up costs one line more and gives the forward
    // entry, which alone holds state. exists: `key` belongs to a session already.
    Insert add_companion(std::uint32_t forward, const net::FlowKey& key, std::uint32_t hash) noexcept;

    // A session's reference to its outcome changes in these five places and nowhere else. Keeps the verdict under the
    // tenant's policy generation; `rule` as in the list, for requests. When no outcome index is left the session goes
    // on without a memo. Returns the index. The replies' verdict stays where it is of that generation too and there is
    // an index for both.
    std::uint16_t memoize(std::uint32_t index, OutcomeTable& outcomes, const Outcome& outcome,
                          std::uint16_t policy_generation, std::uint32_t rule) noexcept;
    // The replies' own verdict, of a stateless list; `fields` as in Verdicts::reverse_fields. The forward one stays
    // where it is of that generation. False: no index is left, and all stays as it is.
    bool memoize_reverse(std::uint32_t index, OutcomeTable& outcomes, const Outcome& outcome, std::uint64_t fields,
                         std::uint16_t policy_generation, std::uint32_t rule) noexcept;
    void erase(std::uint32_t index, OutcomeTable& outcomes) noexcept { finish(index, outcomes, &TenantUse::killed); }
    // A new connection over the tuple of one that is over (can_restart): `key` gives the forward direction from now on.
    // Entry and index stay, all else is as after insert(). A session with a companion ends instead, so that its next
    // look-up finds none: who made the companion has to make it anew.
    void restart(std::uint32_t index, OutcomeTable& outcomes, const net::FlowKey& key, std::uint64_t now_tsc) noexcept;
    // Looks at `max_entries` entries from where the last call stopped and erases those past their time-out; returns how
    // many. `visit(HotEntry&)` is called for each that stays: keep_generations_stale() has its place there.
    template <class Visit>
    unsigned expire(std::uint64_t now_tsc, unsigned max_entries, OutcomeTable& outcomes, Visit&& visit) noexcept;
    unsigned expire(std::uint64_t now_tsc, unsigned max_entries, OutcomeTable& outcomes) noexcept {
        return expire(now_tsc, max_entries, outcomes, [](HotEntry&) {});
    }

    // To another worker's table, and from one (move.cc). Of a session without room there nothing stays: false, and it
    // counts as evicted.
    void hand_out(std::uint32_t index, OutcomeTable& outcomes, MovedSession& to) noexcept;
    bool take_in(const MovedSession& from, OutcomeTable& outcomes) noexcept;
    // From now on the bit of every entry that begins is set, one a table entry; null: no more.
    void note_new(std::uint64_t* bits) noexcept { new_entries_ = bits; }

    // 32 bytes beside each entry, for one of Besides' uses; zero where a session begins, or comes from another worker.
    // make: control thread, also while the worker runs; throws base::MachineError. Null: not made.
    void make_beside(std::size_t use) { besides_.make(use, header_->capacity, socket_id_); }
    [[nodiscard]] std::byte* beside(std::size_t use) const noexcept { return besides_.of(use); }

    // Whether relief is due, and giving it: at most kReliefEntries entries are looked at for each session that began or
    // failed to since the last call, so the walk comes round before a tenth of the capacity has been used up. Returns
    // how many sessions it ended.
    static constexpr unsigned kReliefEntries = 16;
    [[nodiscard]] bool needs_relief() const noexcept { return relief_due_ != 0; }
    unsigned relieve(OutcomeTable& outcomes) noexcept;

    // A packet of `frame_length` L2 bytes: counts, last-seen, and the state machine (tcp_flags are ignored for other
    // protocols).
    void touch(std::uint32_t index, bool reverse, std::uint8_t tcp_flags, std::uint32_t frame_length,
               std::uint64_t now_tsc) noexcept {
        const auto flags = [&] { return tcp_flags; };
        touch_at(stamp(now_tsc), index, reverse, flags, frame_length);
    }
    // The same for who has the stamp: it is one for a burst. `tcp_flags()` is asked of TCP packets only.
    template <class TcpFlags>
    [[gnu::always_inline]] void touch_at(std::uint16_t stamp, std::uint32_t index, bool reverse, TcpFlags&& tcp_flags,
                                         std::uint32_t frame_length) noexcept {
        HotEntry& entry = hot_[index];
        entry.last_seen = stamp;
        const unsigned direction = reverse ? 1 : 0;
        const unsigned packets = ++entry.packets[direction];
        const std::uint32_t bytes = entry.bytes[direction] += frame_length;
        if ((packets & 0x8000) != 0 || (bytes & 0x80000000) != 0) flush(index);
        advance(entry, reverse, tcp_flags);
    }
    // touch() with nothing put off, so a second line a packet: for pipeline/mbuf_layout.h, which this table replaces.
    void touch_both_lines(std::uint16_t stamp, std::uint32_t index, bool reverse, std::uint8_t tcp_flags,
                          std::uint32_t frame_length) noexcept {
        HotEntry& entry = hot_[index];
        ColdEntry& statistics = cold_[index];
        entry.last_seen = stamp;
        ++statistics.packets[reverse ? 1 : 0];
        statistics.bytes[reverse ? 1 : 0] += frame_length;
        if (rule_counters_ != nullptr) rule_counters_->count(rule_of(statistics, reverse), 1, frame_length);
        advance(entry, reverse, [&] { return tcp_flags; });
    }
    // The same for a packet that its own rule has judged and not the session's, so that it counts for that one alone.
    void touch_apart(std::uint32_t index, bool reverse, std::uint8_t tcp_flags, std::uint32_t frame_length,
                     std::uint64_t now_tsc) noexcept {
        flush(index);
        touch(index, reverse, tcp_flags, frame_length, now_tsc);
        move_counts(index);
    }
    // Moves the session on by hand: requests and tests. Not to State::free.
    void set_state(std::uint32_t index, State state) noexcept;
    // Moves the hot entry's counts to the cold one, and credits them to the session's rule, replies to theirs.
    void flush(std::uint32_t index) noexcept;
    // The session's rule is another one from now on: what has been counted until now is the old one's.
    void set_rule(std::uint32_t index, std::uint32_t rule) noexcept;
    // The rule that the replies of a session are counted for.
    [[nodiscard]] static std::uint32_t rule_of(const ColdEntry& cold, bool reverse) noexcept {
        return reverse && cold.reverse_rule != kSameRule ? cold.reverse_rule : cold.rule;
    }
    // Where rules' hits are counted, for as long as the table lives; null: nowhere.
    void count_rules_in(RuleCounters* counters) noexcept { rule_counters_ = counters; }

    // For loops that store: what is read through the table has to be read again then.
    [[nodiscard]] Index index() const noexcept { return index_; }
    [[nodiscard]] const HotEntry* entries() const noexcept { return hot_; }
    [[nodiscard]] HotEntry& hot(std::uint32_t index) noexcept { return hot_[index]; }
    [[nodiscard]] ColdEntry& cold(std::uint32_t index) noexcept { return cold_[index]; }
    [[nodiscard]] const HotEntry& hot(std::uint32_t index) const noexcept { return hot_[index]; }
    [[nodiscard]] const ColdEntry& cold(std::uint32_t index) const noexcept { return cold_[index]; }
    // Entries from 0 to here have been used at least once; the others are free.
    [[nodiscard]] std::uint32_t used_end() const noexcept { return header_->used_end; }
    // What a packet now writes to last_seen, and how long ago such a stamp was, in ticks.
    [[nodiscard]] std::uint16_t stamp(std::uint64_t now_tsc) const noexcept {
        return static_cast<std::uint16_t>(now_tsc >> tick_shift_ << 1);
    }
    [[nodiscard]] std::uint16_t age_ticks(const HotEntry& entry, std::uint64_t now_tsc) const noexcept {
        return static_cast<std::uint16_t>(stamp(now_tsc) - (entry.last_seen & ~kNoPacketSince)) >> 1;
    }
    [[nodiscard]] std::uint64_t cycles_per_tick() const noexcept { return std::uint64_t{1} << tick_shift_; }
    // Since the session's first packet, to a tick, and since its last.
    [[nodiscard]] std::uint64_t age_cycles(std::uint32_t index, std::uint64_t now_tsc) const noexcept {
        return std::uint64_t{static_cast<std::uint32_t>(ticks(now_tsc) - cold_[index].created_ticks)} << tick_shift_;
    }
    [[nodiscard]] std::uint64_t idle_cycles(std::uint32_t index, std::uint64_t now_tsc) const noexcept;
    [[nodiscard]] Stats stats() const noexcept;                                                      // any thread
    [[nodiscard]] const TenantUse& use(std::size_t tenant) const noexcept { return uses_[tenant]; }  // any thread
    [[nodiscard]] base::HugeArray::Pages pages() const noexcept { return memory_.pages(); }

  private:
    // First line of the mapping: enough to check and adopt a table that another process left.
    struct alignas(base::kCacheLine) Header {
        static constexpr std::uint64_t kMagic = 0x6877'6361'7373'6573;
        static constexpr std::uint32_t kVersion = 3;
        std::uint64_t magic;
        std::uint32_t version;
        std::uint32_t capacity;
        std::uint32_t buckets;
        std::uint32_t free_head;  // last freed entry, linked through bytes[0]; kNone: none
        std::uint32_t used_end;
        std::uint32_t cursor;         // where the expiry walk goes on
        std::uint32_t relief_cursor;  // where the walk for relief goes on
    };
    enum TimeoutClass { kOther, kTcp, kIcmp, kTimeoutClasses };

    // What a match of this entry means: itself, or the session that it is a companion of. The companion's tuple is the
    // reply's, so that way round is the session's reverse direction.
    [[nodiscard]] Found resolve(std::uint32_t index, bool reverse) const noexcept {
        if (!hot_[index].is_companion()) return {index, reverse};
        return {hot_[index].bytes[1], !reverse};
    }
    [[nodiscard]] Found find(const Index::Place& at, const net::FlowKey& key) const noexcept;
    [[nodiscard]] bool is_past_timeout(std::uint32_t index, std::uint64_t now_tsc) noexcept;
    [[nodiscard]] std::uint32_t ticks(std::uint64_t now_tsc) const noexcept {
        return static_cast<std::uint32_t>(now_tsc >> tick_shift_);
    }
    struct Moved {
        std::uint64_t packets, bytes;
    };
    std::array<Moved, 2> move_counts(std::uint32_t index) noexcept;  // by direction
    void set_reverse_rule(std::uint32_t index, std::uint32_t rule) noexcept;
    [[nodiscard]] Verdicts known_verdicts(const HotEntry& hot, const OutcomeTable& outcomes,
                                          std::uint16_t policy_generation) const noexcept;
    void begin(std::uint32_t index, const net::FlowKey& key, std::uint32_t hash, std::uint64_t now_tsc) noexcept;
    [[nodiscard]] Insert admit(std::uint16_t tenant, std::uint64_t now_tsc, const Quota& quota) noexcept;
    // Links a free entry under the hash; kNone: both buckets are full. There is a free one.
    [[nodiscard]] std::uint32_t take_entry(const Index::Place& at) noexcept;
    void free_entry(std::uint32_t index) noexcept;
    // Sessions that end together, so that their cold lines and then their buckets arrive while others are worked on.
    struct Ending {
        std::array<std::uint32_t, 16> indices;
        std::uint32_t size = 0;
    };
    // True: full.
    bool add(Ending& ending, std::uint32_t index) const noexcept {
        base::prefetch_write(cold_ + index);
        ending.indices[ending.size++] = index;
        return ending.size == ending.indices.size();
    }
    void fetch_buckets(const Ending& ending) const noexcept;
    void finish_expired(Ending& ending, OutcomeTable& outcomes) noexcept;
    unsigned finish_evicted(Ending& ending, OutcomeTable& outcomes) noexcept;
    void finish(std::uint32_t index, OutcomeTable& outcomes, base::Counter TenantUse::*why) noexcept;
    [[nodiscard]] std::uint32_t entries_in_use() const noexcept {
        return static_cast<std::uint32_t>(active_.read() + companions_.read());
    }
    [[nodiscard]] bool can_be_evicted(const HotEntry& entry) const noexcept;
    void count_begin(TenantUse& use) noexcept;
    void count_in(TenantUse& use, State state) noexcept;
    void count_end(TenantUse& use, State state) noexcept;
    void count_change(std::uint16_t tenant, State before, State after) noexcept;
    void count_expendable(TenantUse& use, bool more) noexcept;
    template <class TcpFlags>
    void advance(HotEntry& entry, bool reverse, TcpFlags&& tcp_flags) noexcept;
    void set_timeouts(const Timeouts& timeouts) noexcept;

    RuleCounters* rule_counters_ = nullptr;
    std::uint64_t* new_entries_ = nullptr;
    HotEntry* hot_ = nullptr;
    ColdEntry* cold_ = nullptr;
    Index index_;
    unsigned tick_shift_ = 0;
    Header* header_ = nullptr;
    std::uint32_t mark_ = 0;        // entries in use from which on_full acts
    std::uint32_t relief_due_ = 0;  // sessions that began or failed to since, at the mark
    OnFull on_full_ = OnFull::evict_embryonic;
    std::uint64_t tsc_hz_;
    std::uint64_t settings_version_ = ~std::uint64_t{0};
    std::array<std::array<std::uint32_t, kTimeoutClasses>, kStates> timeout_ticks_{};
    base::HugeArray memory_;
    QuotaCredit quotas_;
    Besides besides_;
    int socket_id_;

    // Gauges of the whole table that decisions need; events are counted by tenant and summed by who asks. Apart from
    // what every packet reads. worker: rw; telemetry: ro
    alignas(base::kCacheLine) base::Counter active_, companions_, active_tenants_, expendable_, expendable_tenants_;
    std::vector<TenantUse> uses_;
};

template <class TcpFlags>
[[gnu::always_inline]] inline void Table::advance(HotEntry& entry, bool reverse, TcpFlags&& tcp_flags) noexcept {
    if (entry.proto == kProtoTcp) {
        // Nearly every packet: an established connection goes on.
        const State before = entry.state();
        const std::uint8_t flags = tcp_flags();
        if (before == State::established && (flags & (kTcpFin | kTcpRst)) == 0) return;
        advance_tcp(entry, reverse, flags);
        if (entry.state() != before) count_change(entry.tenant, before, entry.state());
    } else if (reverse && entry.state() == State::fresh) {
        entry.state_and_flags |= kReplySeen;
        entry.set_state(State::established);
        count_change(entry.tenant, State::fresh, State::established);
    }
}

template <bool kPrefetch, class HashOf, class Put>
[[gnu::always_inline]] inline void Table::find_candidates(std::uint64_t lanes, unsigned ahead, HashOf&& hash_of,
                                                          Put&& put) const noexcept {
    // Tags only: the first entry that may be it is on its way while the other lanes' tags are matched.
    std::uint64_t late = ahead >= kMaxLookup || !kPrefetch ? 0 : lanes & ~std::uint64_t{0} << ahead;
    std::uint64_t pending = 0;
    const Index index = index_;  // what `put` stores could be these, for all the compiler knows
    HotEntry* const hot = hot_;
    base::for_each_bit(
        lanes, [&](std::size_t i) __attribute__((always_inline)) {
            if (late != 0) {
                index.prefetch_first(hash_of(static_cast<std::size_t>(__builtin_ctzll(late))));
                late &= late - 1;
            }
            const std::uint32_t hash = hash_of(i);
            const std::uint32_t candidate = index.first_candidate(hash, kNone);
            put(i, candidate);
            if (candidate != kNone) [[likely]] {
                if constexpr (kPrefetch) base::prefetch_write(hot + candidate);
            } else if (index.has_second(hash)) {
                if constexpr (kPrefetch) index.prefetch_second(hash);
                pending |= std::uint64_t{1} << i;
            }
        });
    // The few entries that did not fit into their first bucket, and new flows that share theirs.
    base::for_each_bit(pending, [&](std::size_t i) {
        const std::uint32_t candidate = index.second_candidate(hash_of(i), kNone);
        put(i, candidate);
        if (kPrefetch && candidate != kNone) base::prefetch_write(hot + candidate);
    });
}

template <class Visit>
unsigned Table::expire(std::uint64_t now_tsc, unsigned max_entries, OutcomeTable& outcomes, Visit&& visit) noexcept {
    const std::uint32_t end = header_->used_end;
    const std::uint32_t n = max_entries < end ? max_entries : end;
    std::uint32_t i = header_->cursor < end ? header_->cursor : 0;
    unsigned erased = 0;
    Ending ending;
    for (std::uint32_t k = 0; k < n; ++k, i = i + 1 == end ? 0 : i + 1) {
        HotEntry& entry = hot_[i];
        if (entry.state() == State::free || entry.is_companion()) continue;
        if (!is_past_timeout(i, now_tsc)) {
            visit(entry);
            continue;
        }
        ++erased;
        if (add(ending, i)) finish_expired(ending, outcomes);
    }
    finish_expired(ending, outcomes);
    header_->cursor = i;
    return erased;
}

}  // namespace cachewire::session
