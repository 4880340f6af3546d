// SPDX-License-Identifier: BSD-3-Clause
#include "control/slow_path/neighbor_table.h"

#include <cstring>
#include <utility>

namespace cachewire::control {

namespace {

constexpr std::uint64_t kRetransMs = 1000;  // RFC 4861 10: RETRANS_TIMER
constexpr std::uint64_t kReachableMs = 30000;
constexpr std::uint64_t kWantedReachableMs = 15000;
constexpr std::uint64_t kStaleMs = 30000;
constexpr std::uint64_t kDelayMs = 5000;
constexpr std::uint8_t kUnicastProbes = 3;
constexpr std::uint8_t kGroupProbes = 3;
constexpr std::uint64_t kRefuseMs = 1000;  // after a failure, before it is asked for again
constexpr std::uint64_t kFailedMs = 20000;
constexpr std::uint64_t kWantedRetryMs = 5000;

}  // namespace

const char* to_string(NeighborPhase phase) noexcept {
    static constexpr const char* kNames[] = {"incomplete", "reachable", "stale", "delay", "probe", "failed", "static"};
    return kNames[static_cast<unsigned>(phase)];
}

NeighborTable::Need NeighborTable::need(const NeighborKey& key, std::uint64_t now_ms) {
    auto entry = entries_.find(key);
    if (entry == entries_.end()) {
        if (!make_room(true, now_ms)) return Need::refused;
        begin(make(key, now_ms), now_ms);
        return Need::waiting;
    }
    const Neighbor& neighbor = entry->second;
    if (neighbor.has_mac) return Need::known;
    if (neighbor.phase == NeighborPhase::incomplete) return Need::waiting;
    if (now_ms - neighbor.since_ms < kRefuseMs) return Need::refused;
    begin(entry, now_ms);
    return Need::waiting;
}

void NeighborTable::hear(const NeighborKey& key, const Word& word, std::uint64_t now_ms) {
    auto entry = entries_.find(key);
    if (entry == entries_.end()) {
        if (!word.creates || !word.mac || !make_room(false, now_ms)) return;
        entry = make(key, now_ms);
    }
    Neighbor& neighbor = entry->second;
    if (neighbor.phase == NeighborPhase::permanent) return;
    if (!neighbor.has_mac) {
        if (!word.mac) return;
        bind(entry, *word.mac);
        enter(entry, word.solicited ? NeighborPhase::reachable : NeighborPhase::stale, now_ms, 0);
        return;
    }
    const bool differs = word.mac && *word.mac != neighbor.mac;
    if (differs && !word.overrides) {
        if (neighbor.phase == NeighborPhase::reachable) enter(entry, NeighborPhase::stale, now_ms, 0);
        return;
    }
    if (differs) bind(entry, *word.mac);
    if (word.solicited) {
        enter(entry, NeighborPhase::reachable, now_ms, 0);
    } else if (differs) {
        enter(entry, NeighborPhase::stale, now_ms, 0);
    }
}

void NeighborTable::set_permanent(const std::map<NeighborKey, net::Mac>& permanent, std::uint64_t now_ms) {
    for (auto entry = entries_.begin(); entry != entries_.end();) {
        const auto next = std::next(entry);
        if (entry->second.phase == NeighborPhase::permanent && !permanent.contains(entry->first)) {
            unbind(entry);
            entries_.erase(entry);
        }
        entry = next;
    }
    for (const auto& [key, mac] : permanent) {
        auto entry = entries_.find(key);
        if (entry == entries_.end()) entry = make(key, now_ms);
        Neighbor& neighbor = entry->second;
        if (neighbor.phase == NeighborPhase::permanent && neighbor.mac == mac) continue;
        index(entry, false);
        set_timer(entry, 0);
        bind(entry, mac);
        neighbor.phase = NeighborPhase::permanent;
        neighbor.since_ms = now_ms;
    }
}

void NeighborTable::set_wanted(const std::set<NeighborKey>& wanted, std::uint64_t now_ms) {
    for (auto& [key, neighbor] : entries_) {
        if (!neighbor.wanted || wanted.contains(key)) continue;
        neighbor.wanted = false;
        index(entries_.find(key), true);
        if (!neighbor.has_mac) actions_.push_back({NeighborAction::Kind::unbound, key});  // nor is it failed any more
    }
    for (const NeighborKey& key : wanted) {
        auto entry = entries_.find(key);
        const bool fresh = entry == entries_.end();
        if (fresh) entry = make(key, now_ms);
        index(entry, false);
        entry->second.wanted = true;
        if (fresh) begin(entry, now_ms);
    }
}

void NeighborTable::tick(std::uint64_t now_ms, std::size_t limit) {
    for (; limit != 0 && !timers_.empty() && timers_.begin()->first <= now_ms; --limit)
        fire(entries_.find(timers_.begin()->second), now_ms);
}

std::vector<NeighborAction> NeighborTable::take_actions() { return std::exchange(actions_, {}); }

const Neighbor* NeighborTable::find(const NeighborKey& key) const {
    const auto entry = entries_.find(key);
    return entry == entries_.end() ? nullptr : &entry->second;
}

NeighborTable::Entry NeighborTable::make(const NeighborKey& key, std::uint64_t now_ms) {
    const auto entry = entries_.try_emplace(key).first;
    entry->second.since_ms = entry->second.confirmed_ms = now_ms;
    index(entry, true);
    return entry;
}

// What has no MAC address goes first: it costs nobody anything. False: all there is must stay.
bool NeighborTable::make_room(bool unresolved, std::uint64_t now_ms) {
    while (unresolved_.size() + resolved_.size() >= limits_.entries ||
           (unresolved && unresolved_.size() >= limits_.unresolved)) {
        const auto& from = unresolved_.empty() ? resolved_ : unresolved_;
        if (from.empty()) return false;
        ++evicted_;
        forget(from.begin()->second, now_ms);
    }
    return true;
}

void NeighborTable::forget(const NeighborKey& key, std::uint64_t now_ms) {
    const auto entry = entries_.find(key);
    if (!entry->second.has_mac) actions_.push_back({NeighborAction::Kind::failed, key});
    unbind(entry);
    if (entry->second.wanted) {
        begin(entry, now_ms);
        return;
    }
    set_timer(entry, 0);
    index(entry, false);
    entries_.erase(entry);
}

void NeighborTable::begin(Entry entry, std::uint64_t now_ms) {
    entry->second.probes = 0;
    enter(entry, NeighborPhase::incomplete, now_ms, kRetransMs);
    ask(entry);
}

// False: there is nothing to ask.
bool NeighborTable::ask_anew(Entry entry, std::uint64_t now_ms, std::uint64_t in_ms) {
    Neighbor& neighbor = entry->second;
    if (neighbor.phase == NeighborPhase::permanent) return false;
    if (neighbor.phase == NeighborPhase::incomplete) neighbor.probes = 0;  // nobody has heard those
    if (neighbor.phase == NeighborPhase::incomplete || neighbor.phase == NeighborPhase::failed) {
        set_timer(entry, now_ms + in_ms);
        return true;
    }
    neighbor.probes = kUnicastProbes;  // the group's turn: its address may be another one
    enter(entry, NeighborPhase::probe, now_ms, in_ms);
    return true;
}

// `timer_ms` 0: what the state says.
void NeighborTable::enter(Entry entry, NeighborPhase phase, std::uint64_t now_ms, std::uint64_t timer_ms) {
    Neighbor& neighbor = entry->second;
    const bool in = unresolved_.contains({neighbor.confirmed_ms, entry->first}) ||
                    resolved_.contains({neighbor.confirmed_ms, entry->first});
    if (in) index(entry, false);
    neighbor.phase = phase;
    neighbor.since_ms = now_ms;
    if (phase == NeighborPhase::reachable) {
        neighbor.confirmed_ms = now_ms;
        neighbor.probes = 0;
        timer_ms = spread(entry->first, neighbor.wanted ? kWantedReachableMs : kReachableMs);
    } else if (phase == NeighborPhase::stale) {
        neighbor.confirmed_ms = now_ms;
        neighbor.probes = 0;
        timer_ms = neighbor.wanted ? kRetransMs : spread(entry->first, kStaleMs);
    }
    if (in) index(entry, true);
    set_timer(entry, now_ms + timer_ms);
}

void NeighborTable::bind(Entry entry, const net::Mac& mac) {
    Neighbor& neighbor = entry->second;
    if (neighbor.has_mac && neighbor.mac == mac) return;
    const bool was_in = unresolved_.contains({neighbor.confirmed_ms, entry->first});
    if (was_in) index(entry, false);
    neighbor.has_mac = true;
    neighbor.mac = mac;
    if (was_in) index(entry, true);
    actions_.push_back({NeighborAction::Kind::bound, entry->first, mac});
}

void NeighborTable::unbind(Entry entry) {
    Neighbor& neighbor = entry->second;
    if (!neighbor.has_mac) return;
    const bool was_in = resolved_.contains({neighbor.confirmed_ms, entry->first});
    if (was_in) index(entry, false);
    neighbor.has_mac = false;
    if (was_in) index(entry, true);
    actions_.push_back({NeighborAction::Kind::unbound, entry->first});
}

void NeighborTable::fire(Entry entry, std::uint64_t now_ms) {
    Neighbor& neighbor = entry->second;
    const auto fail = [&] {
        unbind(entry);
        actions_.push_back({NeighborAction::Kind::failed, entry->first});
        enter(entry, NeighborPhase::failed, now_ms, neighbor.wanted ? kWantedRetryMs : kFailedMs);
    };
    switch (neighbor.phase) {
        case NeighborPhase::incomplete:
            if (neighbor.probes == kGroupProbes) return fail();
            ask(entry);
            set_timer(entry, now_ms + kRetransMs);
            return;
        case NeighborPhase::reachable:
            if (!neighbor.wanted) return enter(entry, NeighborPhase::stale, now_ms, 0);
            [[fallthrough]];
        case NeighborPhase::delay:
            neighbor.probes = 0;
            enter(entry, NeighborPhase::probe, now_ms, kRetransMs);
            ask(entry);
            return;
        case NeighborPhase::stale:
            return enter(entry, NeighborPhase::delay, now_ms, neighbor.wanted ? 1 : kDelayMs);
        case NeighborPhase::probe:
            if (neighbor.probes == kUnicastProbes + kGroupProbes) return fail();
            ask(entry);
            set_timer(entry, now_ms + kRetransMs);
            return;
        case NeighborPhase::failed:
            if (!neighbor.wanted) return forget(entry->first, now_ms);
            neighbor.probes = 0;
            ask(entry);  // stays failed, so that nothing waits for it
            set_timer(entry, now_ms + kWantedRetryMs);
            return;
        case NeighborPhase::permanent:
            set_timer(entry, 0);
            return;
    }
}

void NeighborTable::ask(Entry entry) {
    Neighbor& neighbor = entry->second;
    const bool alone = neighbor.phase == NeighborPhase::probe && neighbor.probes < kUnicastProbes;
    ++neighbor.probes;
    using Kind = NeighborAction::Kind;
    actions_.push_back({alone ? Kind::ask_it : Kind::ask_group, entry->first, alone ? neighbor.mac : net::Mac{}});
}

void NeighborTable::set_timer(Entry entry, std::uint64_t due_ms) {
    Neighbor& neighbor = entry->second;
    if (neighbor.due_ms != 0) timers_.erase({neighbor.due_ms, entry->first});
    neighbor.due_ms = due_ms;
    if (due_ms != 0) timers_.emplace(due_ms, entry->first);
}

void NeighborTable::index(Entry entry, bool in) {
    const Neighbor& neighbor = entry->second;
    auto& set = neighbor.has_mac ? resolved_ : unresolved_;
    if (in && !neighbor.wanted && neighbor.phase != NeighborPhase::permanent) {
        set.emplace(neighbor.confirmed_ms, entry->first);
    } else {
        set.erase({neighbor.confirmed_ms, entry->first});
    }
}

// RFC 4861 6.3.2: between a half and one and a half, so that neighbors learned together are not asked together. Of the
// key, so that a run can be repeated.
std::uint64_t NeighborTable::spread(const NeighborKey& key, std::uint64_t ms) noexcept {
    std::uint64_t low;
    std::memcpy(&low, key.address.bytes.data() + 8, 8);
    return ms / 2 + (low * 0x9e3779b97f4a7c15u >> 40) % (ms + 1);
}

}  // namespace cachewire::control
