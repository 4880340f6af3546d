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

namespace {

// nullptr: a reload took it away.
port::EthPort* find(Ports& ports, const std::string& name) {
    const auto at = std::find_if(ports.begin(), ports.end(), [&](const auto& port) { return port->name() == name; });
    return at == ports.end() ? nullptr : at->get();
}

}  // namespace

void LinkWatch::follow(std::span<const config::CrossConnect> pairs, const config::Config& config, Ports& ports) {
    std::vector<Followed> next;
    for (const config::CrossConnect& pair : pairs) {
        if (!pair.link_follow) continue;
        const std::array<std::string, 2> names = {config.ports[pair.ports[0]].name, config.ports[pair.ports[1]].name};
        const auto same = [&](const Followed& f) { return f.name == pair.name && f.ports == names; };
        const auto known = std::find_if(followed_.begin(), followed_.end(), same);
        if (known == followed_.end()) {
            next.push_back({pair.name, names, {}, false});
            continue;
        }
        next.push_back(*known);
        followed_.erase(known);
    }
    for (const Followed& gone : followed_) {
        const auto side = gone.pair.taken_down();
        if (port::EthPort* port = side ? find(ports, gone.ports[*side]) : nullptr) port->set_wire(true);
    }
    followed_ = std::move(next);
}

void LinkWatch::look_at(Followed& followed, Ports& ports, std::uint64_t now_ms) {
    const std::array<port::EthPort*, 2> both = {find(ports, followed.ports[0]), find(ports, followed.ports[1])};
    if (both[0] == nullptr || both[1] == nullptr) return;
    const std::array<std::optional<bool>, 2> links = {both[0]->wire(), both[1]->wire()};
    const auto change = followed.pair.look(links, now_ms);
    if (!change) return;
    port::EthPort& port = *both[change->side];
    const port::EthPort& other = *both[1 - change->side];
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
