// SPDX-License-Identifier: BSD-3-Clause
#include "session/request.h"

#include <algorithm>

namespace cachewire::session {

namespace {

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
    turn_.store(Turn::control, std::memory_order_release);
}

// True: done.
bool Mailbox::walk(Table& table, OutcomeTable& outcomes, std::uint64_t now_tsc) noexcept {
    const bool lists = request_.kind == Request::Kind::list;
    const std::uint32_t end = table.used_end();
    const std::uint32_t max_views = std::min(request_.max_views, kMaxViews);
    for (std::uint32_t n = 0; n < kEntriesATime && cursor_ < end; ++n, ++cursor_, ++looked_at_) {
        const HotEntry& entry = table.hot(cursor_);
        if (entry.state() == State::free || entry.is_companion() || !request_.filter.matches(entry)) continue;
        if (request_.kind == Request::Kind::flush) {
            if ((entry.packets[0] | entry.packets[1]) != 0) table.flush(cursor_);
            continue;
        }
        if (!lists) {
            table.erase(cursor_, outcomes);
            ++answer_.killed;
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

void Mailbox::add_view(Table& table, const OutcomeTable& outcomes, std::uint32_t index,
                       std::uint64_t now_tsc) noexcept {
    table.flush(index);
    SessionView& view = answer_.views[answer_.count++];
    view.index = index;
    view.hot = table.hot(index);
    view.cold = table.cold(index);
    view.outcome.reset();
    if (view.hot.outcome != kNoOutcome) view.outcome = outcomes[view.hot.outcome];
    view.companion.reset();
    if (view.cold.companion != kNone)
        view.companion = forward_key(table.hot(view.cold.companion), table.cold(view.cold.companion));
    view.age_cycles = now_tsc - view.cold.created_tsc;
    view.idle_cycles = table.idle_cycles(index, now_tsc);
}

}  // namespace cachewire::session
