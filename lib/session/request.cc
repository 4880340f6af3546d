// SPDX-License-Identifier: BSD-3-Clause
#include "session/request.h"

#include <algorithm>

namespace cachewire::session {

namespace {

template <class Weighed>
bool is_heavier(const Weighed& a, const Weighed& b) noexcept {
    return a.weight > b.weight;
}

std::uint16_t host_order(std::uint16_t be) noexcept { return __builtin_bswap16(be); }

}  // namespace

bool Filter::matches(const HotEntry& entry) const noexcept {
    return (states >> static_cast<unsigned>(entry.state()) & 1) != 0 && (!tenant || *tenant == entry.tenant) &&
           (!proto || *proto == entry.proto) && (!src_port || *src_port == host_order(entry.src_port_be)) &&
           (!dst_port || *dst_port == host_order(entry.dst_port_be)) && (!src || src->contains(entry.src)) &&
           (!dst || dst->contains(entry.dst));
}

bool Mailbox::post(const Request& request) noexcept {
    if (!answered()) return false;
    request_ = request;
    cursor_ = request.cursor;
    looked_at_ = 0;
    heaviest_count_ = 0;
    answer_.count = 0;
    answer_.next = kNone;
    answer_.killed = 0;
    turn_.store(Turn::worker, std::memory_order_release);
    return true;
}

void Mailbox::work(Table& table, OutcomeTable& outcomes, std::uint64_t now_tsc) noexcept {
    if (request_.kind == Request::Kind::get) {
        const net::FlowKey* keys[] = {&request_.key};
        Found found[] = {{kNone, false}};
        table.lookup(keys, std::span<const std::uint32_t>(&request_.hash, 1), found);
        if (found[0].index != kNone) add_view(table, outcomes, found[0].index, now_tsc);
    } else if (!walk(table, outcomes, now_tsc)) {
        return;
    }
    // Heaviest first. What has ended meanwhile is left out.
    const auto last = heaviest_.begin() + heaviest_count_;
    std::sort_heap(heaviest_.begin(), last, is_heavier<Weighed>);
    for (auto at = heaviest_.begin(); at != last; ++at)
        if (request_.filter.matches(table.hot(at->index)) && !table.hot(at->index).is_companion() &&
            table.hot(at->index).state() != State::free)
            add_view(table, outcomes, at->index, now_tsc);
    turn_.store(Turn::control, std::memory_order_release);
}

// True: done.
bool Mailbox::walk(Table& table, OutcomeTable& outcomes, std::uint64_t now_tsc) noexcept {
    const std::uint32_t end = table.used_end();
    const std::uint32_t max_views = std::min(request_.max_views, kMaxViews);
    for (std::uint32_t n = 0; n < kEntriesATime && cursor_ < end; ++n, ++cursor_, ++looked_at_) {
        const HotEntry& entry = table.hot(cursor_);
        if (entry.state() == State::free || entry.is_companion() || !request_.filter.matches(entry)) continue;
        if (request_.kind == Request::Kind::flush) {
            if ((entry.packets[0] | entry.packets[1]) != 0) table.flush(cursor_);
            continue;
        }
        if (request_.kind == Request::Kind::kill) {
            table.erase(cursor_, outcomes);
            ++answer_.killed;
            continue;
        }
        if (request_.kind == Request::Kind::top) {
            weigh(table, cursor_);
            continue;
        }
        if (answer_.count == max_views) {
            answer_.next = cursor_;
            return true;
        }
        add_view(table, outcomes, cursor_, now_tsc);
    }
    if (cursor_ >= end) return true;
    if (looked_at_ < kEntriesAPage) return false;
    answer_.next = cursor_;
    return true;
}

// Totals are hot plus cold: two lines an entry, and only of those that fit.
void Mailbox::weigh(const Table& table, std::uint32_t index) noexcept {
    const HotEntry& hot = table.hot(index);
    const ColdEntry& cold = table.cold(index);
    const std::uint64_t weight =
        request_.weight == Weight::bytes
            ? std::uint64_t{hot.bytes[0]} + hot.bytes[1] + cold.bytes[0] + cold.bytes[1]
            : std::uint64_t{hot.packets[0]} + hot.packets[1] + cold.packets[0] + cold.packets[1];
    const std::uint32_t limit = std::min(request_.max_views, kMaxViews);
    if (heaviest_count_ == limit) {
        if (limit == 0 || weight <= heaviest_[0].weight) return;
        std::pop_heap(heaviest_.begin(), heaviest_.begin() + heaviest_count_--, is_heavier<Weighed>);
    }
    heaviest_[heaviest_count_++] = {weight, index};
    std::push_heap(heaviest_.begin(), heaviest_.begin() + heaviest_count_, is_heavier<Weighed>);
}

void Mailbox::add_view(Table& table, const OutcomeTable& outcomes, std::uint32_t index,
                       std::uint64_t now_tsc) noexcept {
    table.flush(index);
    SessionView& view = answer_.views[answer_.count++];
    view.index = index;
    view.hot = table.hot(index);
    view.cold = table.cold(index);
    view.outcome.reset();
    if (outcomes.knows_forward(view.hot.outcome)) view.outcome = outcomes[view.hot.outcome];
    view.companion.reset();
    if (view.cold.companion != kNone)
        view.companion = forward_key(table.hot(view.cold.companion), table.cold(view.cold.companion));
    view.age_cycles = table.age_cycles(index, now_tsc);
    view.idle_cycles = table.idle_cycles(index, now_tsc);
}

}  // namespace cachewire::session
