// SPDX-License-Identifier: BSD-3-Clause
#include "control/kernel/kernel_routes.h"

#include <algorithm>

namespace cachewire::control {

void KernelRoutes::count(const std::vector<FedVia>& via, int by) {
    for (const FedVia& hop : via) {
        if (hop.local || hop.address == net::Address{}) continue;
        const auto at = gateways_.try_emplace({hop.interface, hop.address}).first;
        gateways_changed_ |= at->second == 0;
        at->second += static_cast<std::uint32_t>(by);
        if (at->second != 0) continue;
        gateways_.erase(at);
        gateways_changed_ = true;
    }
}

void KernelRoutes::set(const KernelRoute& route) {
    Entries& entries = prefixes_[route.prefix];
    auto at = std::lower_bound(entries.begin(), entries.end(), route.metric,
                               [](const Entry& e, std::uint32_t metric) { return e.metric < metric; });
    const bool best = at == entries.begin();
    if (at == entries.end() || at->metric != route.metric) {
        at = entries.insert(at, {route.metric, round_, route.via});
        count(route.via, 1);
    } else {
        at->round = round_;
        if (at->via == route.via) return;
        count(route.via, 1);  // before the others go, so that one who stays is no news
        count(at->via, -1);
        at->via = route.via;
    }
    if (best) changed_(route.prefix, &at->via);
}

KernelRoutes::Prefixes::iterator KernelRoutes::drop(Prefixes::iterator at, std::size_t index) {
    Entries& entries = at->second;
    count(entries[index].via, -1);
    entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(index));
    if (index == 0) changed_(at->first, entries.empty() ? nullptr : &entries[0].via);
    return entries.empty() ? prefixes_.erase(at) : std::next(at);
}

void KernelRoutes::withdraw(const KernelRoute& route) {
    const auto at = prefixes_.find(route.prefix);
    if (at == prefixes_.end()) return;
    Entries& entries = at->second;
    const auto entry =
        std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.metric == route.metric; });
    if (entry == entries.end()) return;
    const auto index = static_cast<std::size_t>(entry - entries.begin());
    if (route.via.size() == 1 && entry->via.size() > 1) {
        const auto hop = std::find(entry->via.begin(), entry->via.end(), route.via[0]);
        if (hop == entry->via.end()) return;
        count(route.via, -1);
        entry->via.erase(hop);
        if (index == 0) changed_(route.prefix, &entry->via);
        return;
    }
    drop(at, index);
}

void KernelRoutes::end_sync() {
    for (auto at = prefixes_.begin(); at != prefixes_.end();) {
        const Entries& entries = at->second;
        const auto old =
            std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.round != round_; });
        if (old == entries.end()) {
            ++at;
            continue;
        }
        const bool last = entries.size() == 1;
        const auto here = at;
        const auto next = drop(here, static_cast<std::size_t>(old - entries.begin()));
        at = last ? next : here;  // another one of this prefix may be gone as well
    }
}

void KernelRoutes::clear() {
    begin_sync();
    end_sync();
}

std::vector<KernelRoutes::Gateway> KernelRoutes::take_gateways() {
    gateways_changed_ = false;
    std::vector<Gateway> all;
    for (const auto& [gateway, routes] : gateways_) all.push_back(gateway);
    return all;
}

}  // namespace cachewire::control
