// SPDX-License-Identifier: BSD-3-Clause
#include "control/link_watch.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace cachewire::control {

std::optional<LinkPair::Change> LinkPair::look(std::array<std::optional<bool>, 2> links, std::uint64_t now_ms) {
    for (unsigned side = 0; side < 2; ++side) {
        if (links[side].value_or(false)) settles_ms_[side].reset();
        if (settles_ms_[side] && now_ms >= *settles_ms_[side]) settles_ms_[side].reset();
    }
    if (taken_down_) {
        const unsigned other = 1 - *taken_down_;
        if (!links[other].value_or(false)) return std::nullopt;
        const unsigned side = *taken_down_;
        taken_down_.reset();
        settles_ms_[side] = now_ms + kSettleMs;
        return Change{side, true};
    }
    for (unsigned side = 0; side < 2; ++side) {
        if (links[side] != false || settles_ms_[side]) continue;
        taken_down_ = 1 - side;
        return Change{1 - side, false};
    }
    return std::nullopt;
}

void LinkWatch::follow(std::span<const config::CrossConnect> pairs, Ports& ports) {
    std::vector<Followed> next;
    for (const config::CrossConnect& pair : pairs) {
        if (!pair.link_follow) continue;
        const auto same = [&](const Followed& f) { return f.name == pair.name && f.ports == pair.ports; };
        const auto known = std::find_if(followed_.begin(), followed_.end(), same);
        if (known == followed_.end()) {
            next.push_back({pair.name, pair.ports, {}, false});
            continue;
        }
        next.push_back(*known);
        followed_.erase(known);
    }
    for (const Followed& gone : followed_)
        if (const auto side = gone.pair.taken_down()) ports[gone.ports[*side]]->set_wire(true);
    followed_ = std::move(next);
}

void LinkWatch::look_at(Followed& followed, Ports& ports, std::uint64_t now_ms) {
    std::array<std::optional<bool>, 2> links;
    for (unsigned side = 0; side < 2; ++side) links[side] = ports[followed.ports[side]]->wire();
    const auto change = followed.pair.look(links, now_ms);
    if (!change) return;
    port::EthPort& port = *ports[followed.ports[change->side]];
    const port::EthPort& other = *ports[followed.ports[1 - change->side]];
    if (!port.set_wire(change->up)) {
        followed.pair.forget();
        if (!std::exchange(followed.complained, true))
            base::log_warning("pair {}: the link of port {} ({}) can't be taken down or up", followed.name, port.name(),
                              port.driver());
        return;
    }
    base::log_info("pair {}: the link of port {} is {}, and that of port {} follows", followed.name, other.name(),
                   change->up ? "up" : "down", port.name());
}

void LinkWatch::look(Ports& ports, std::uint64_t now_ms) {
    for (Followed& followed : followed_) look_at(followed, ports, now_ms);
}

}  // namespace cachewire::control
