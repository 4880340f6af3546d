// SPDX-License-Identifier: BSD-3-Clause
#include "control/kernel/twins.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <sys/epoll.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "control/kernel/netns.h"
#include "control/next_hops.h"

namespace cachewire::control {

namespace {

constexpr unsigned kFramesATurn = 64;  // of each twin
constexpr std::uint64_t kLookEveryMs = 1000;
constexpr std::uint32_t kSpaces = 0x10000;  // behind the interfaces' indices

Tap::Settings settings_of(const config::Interface& interface, const net::Mac& mac) {
    return {mac, interface.mtu, interface.addresses};
}

net::Prefix network_of(const net::Address& address, std::uint8_t length) {
    net::Prefix prefix{address, length, address.is_v4() ? net::Family::ip4 : net::Family::ip6};
    for (unsigned bit = (address.is_v4() ? 96u : 0u) + length; bit < 128; ++bit)
        prefix.address.bytes[bit / 8] &= static_cast<std::uint8_t>(~(0x80u >> (bit % 8)));
    return prefix;
}

}  // namespace

Twins::Twins(Hooks hooks) : hooks_(std::move(hooks)), ready_(epoll_create1(EPOLL_CLOEXEC)) {
    if (ready_ < 0) base::check(-errno, "epoll_create1");
}

Twins::~Twins() { close(ready_); }

Twins::Pending Twins::begin(const config::Config& config, const std::vector<net::Mac>& macs) const {
    Pending pending;
    for (const config::Interface& interface : config.interfaces) {
        if (!interface.kernel) continue;
        const auto stays = std::any_of(taps_.begin(), taps_.end(), [&](const auto& entry) {
            const Twin& twin = entry.second;
            return twin.name == interface.name && twin.tap->twin() == *interface.kernel && !twin.lost &&
                   twin.tap->is_where_it_should_be();
        });
        if (!stays)
            pending[interface.name] = std::make_unique<Tap>(
                *interface.kernel,
                settings_of(interface, interface.is_loopback() ? kLoopbackMac : macs[interface.port]));
    }
    return pending;
}

void Twins::commit(Pending pending, const config::Config& config, const Registry& registry,
                   const pipeline::Snapshot& snapshot) {
    std::map<std::uint16_t, Twin> next;
    for (const config::Interface& interface : config.interfaces) {
        if (!interface.kernel) continue;
        const std::uint16_t index = *registry.interfaces.find(interface.name);
        Twin& twin = next[index];
        if (const auto known = taps_.find(index); known != taps_.end()) twin = std::move(known->second);
        twin.name = interface.name;
        twin.tenant = snapshot.interfaces[index].tenant;
        twin.loopback = interface.is_loopback();
        twin.configured = interface.addresses;
        if (const auto made = pending.find(interface.name); made != pending.end()) {
            twin.tap = std::move(made->second);
            twin.lost = twin.complained = false;
            base::log_info("interface {}: its twin in the kernel is {} in netns {}", twin.name, twin.tap->twin().ifname,
                           twin.tap->twin().netns);
        }
        twin.settings = settings_of(interface, snapshot.interfaces[index].mac);
        if (twin.lost) continue;
        try {
            twin.tap->change(twin.settings);
        } catch (const base::MachineError& error) {
            base::log_error("interface {}: {}", twin.name, error.what());
        }
    }
    taps_ = std::move(next);
    watch_spaces();
}

void Twins::watch_spaces() {
    struct Wanted {
        RouteMonitor::Interfaces interfaces;
        std::uint16_t tenant = 0;
    };
    std::map<std::string, Wanted> wanted;
    for (const auto& [index, twin] : taps_) {
        if (twin.lost) continue;
        Wanted& space = wanted[twin.tap->twin().netns];
        space.tenant = twin.tenant;
        if (twin.loopback) {
            space.interfaces.loopbacks.insert(twin.tap->ifindex());
        } else {
            space.interfaces.twins[twin.tap->ifindex()] = index;
        }
    }
    for (auto at = spaces_.begin(); at != spaces_.end();) {
        const bool stays = wanted.contains(at->first) && at->second.identity == netns_identity(at->first) &&
                           at->second.tenant == wanted[at->first].tenant;
        if (!stays) drop_space(at->second);
        at = stays ? std::next(at) : spaces_.erase(at);
    }
    for (auto& [netns, want] : wanted) {
        auto at = spaces_.find(netns);
        if (at == spaces_.end()) {
            Space fresh;
            fresh.tenant = want.tenant;
            fresh.identity = netns_identity(netns);
            fresh.monitor = std::make_unique<RouteMonitor>(
                netns, [this, tenant = want.tenant](const net::Prefix& prefix, const std::vector<FedVia>* via) {
                    hooks_.route(tenant, prefix, via);
                });
            at = spaces_.emplace(netns, std::move(fresh)).first;
        }
        Space& space = at->second;
        space.monitor->watch(std::move(want.interfaces));
        learn_addresses(space);
    }
    register_all();
    tell_gateways();
    tell_neighbors();
}

void Twins::drop_space(Space& space) {
    space.monitor->routes().clear();
    for (const auto& [prefix, via] : space.learned) hooks_.route(space.tenant, prefix, nullptr);
    for (const auto& [index, twin] : taps_)
        if (twin.tenant == space.tenant) learned_.erase(index);
    hooks_.addresses(learned_);
}

bool Twins::is_configured(std::uint16_t tenant, const net::Address& address) const {
    return std::any_of(taps_.begin(), taps_.end(), [&](const auto& entry) {
        const Twin& twin = entry.second;
        return twin.tenant == tenant && std::any_of(twin.configured.begin(), twin.configured.end(),
                                                    [&](const auto& own) { return own.address == address; });
    });
}

// An address that somebody gave a twin or `lo` is the router's too: what is for it is the kernel's, and a twin's
// network is connected.
void Twins::learn_addresses(Space& space) {
    std::map<net::Prefix, std::vector<FedVia>> learned;
    for (const auto& [index, twin] : taps_)
        if (twin.tenant == space.tenant) learned_.erase(index);
    for (const RouteMonitor::Address& own : space.monitor->take_addresses()) {
        if (is_configured(space.tenant, own.address)) continue;
        const bool loopback = own.address.is_v4()
                                  ? own.address.v4() >> 24 == 127
                                  : own.address == net::Address{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
        if (loopback) continue;
        learned[host_prefix(own.address)] = {FedVia{.local = true}};
        if (own.interface == pipeline::kNoInterface) continue;
        const net::Prefix network = network_of(own.address, own.length);
        learned.try_emplace(network, std::vector{FedVia{.interface = own.interface}});
        learned_[own.interface].push_back({own.address, network});
    }
    for (const auto& [prefix, via] : space.learned)
        if (!learned.contains(prefix)) hooks_.route(space.tenant, prefix, nullptr);
    for (const auto& [prefix, via] : learned)
        if (const auto known = space.learned.find(prefix); known == space.learned.end() || known->second != via)
            hooks_.route(space.tenant, prefix, &via);
    space.learned = std::move(learned);
    hooks_.addresses(learned_);
}

bool Twins::deliver(std::uint16_t interface, std::span<const std::uint8_t> header, const rte_mbuf* mbuf) {
    const auto twin = taps_.find(interface);
    if (twin == taps_.end()) return false;
    const bool taken = twin->second.tap->write(header, mbuf);
    ++(taken ? twin->second.counters.to_kernel : twin->second.counters.refused);
    return taken;
}

// What was registered and closed has left by itself.
void Twins::register_all() {
    const auto add = [this](int fd, std::uint32_t what) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u32 = what;
        if (epoll_ctl(ready_, EPOLL_CTL_ADD, fd, &event) != 0 && errno != EEXIST) base::check(-errno, "epoll_ctl");
    };
    for (const auto& [index, twin] : taps_)
        if (!twin.lost) add(twin.tap->fd(), index);
    for (const auto& [name, space] : spaces_) add(space.monitor->fd(), kSpaces);
}

unsigned Twins::read_frames(std::uint16_t interface, Twin& twin) {
    unsigned frames = 0;
    for (; frames < kFramesATurn; ++frames) {
        const auto frame = twin.tap->read(frame_);
        if (frame.empty()) break;
        ++twin.counters.from_kernel;
        hooks_.frame(interface, frame);
    }
    return frames;
}

unsigned Twins::poll(std::uint64_t now_ms) {
    if (taps_.empty()) return 0;
    if (now_ms >= next_look_ms_) look_after(now_ms);
    std::array<epoll_event, 64> events;
    const int count = epoll_wait(ready_, events.data(), static_cast<int>(events.size()), 0);
    unsigned frames = 0;
    bool spaces = false, neighbors = false;
    for (int i = 0; i < count; ++i) {
        const std::uint32_t what = events[static_cast<std::size_t>(i)].data.u32;
        spaces |= what == kSpaces;
        const auto twin = taps_.find(static_cast<std::uint16_t>(what));
        if (what == kSpaces || twin == taps_.end()) continue;
        frames += read_frames(twin->first, twin->second);
        if ((events[static_cast<std::size_t>(i)].events & EPOLLERR) == 0) continue;
        lose(twin->second, "was deleted");
        next_look_ms_ = now_ms;
    }
    for (auto& [name, space] : spaces_) {
        if (spaces || space.monitor->wants_turn()) space.monitor->poll();
        if (space.monitor->addresses_changed()) learn_addresses(space);
        neighbors |= space.monitor->neighbors_changed();
        for (const KernelNeighbor& neighbor : space.monitor->take_heard()) hooks_.heard(neighbor);
    }
    if (neighbors) tell_neighbors();
    if (std::any_of(spaces_.begin(), spaces_.end(),
                    [](const auto& space) { return space.second.monitor->routes().gateways_changed(); }))
        tell_gateways();
    return frames;
}

void Twins::tell_gateways() {
    std::vector<KernelRoutes::Gateway> all;
    for (auto& [name, space] : spaces_) {
        const auto some = space.monitor->routes().take_gateways();
        all.insert(all.end(), some.begin(), some.end());
    }
    hooks_.gateways(all);
}

void Twins::tell_neighbors() {
    std::vector<KernelNeighbor> all;
    for (auto& [name, space] : spaces_) {
        if (space.monitor->neighbors_changed()) space.neighbors = space.monitor->take_neighbors();
        all.insert(all.end(), space.neighbors.begin(), space.neighbors.end());
    }
    hooks_.neighbors(all);
}

// Somebody took it away. Its descriptor, which would say so for ever, leaves `ready_` by being closed; so does what is
// left of it in a namespace that has no name any more.
void Twins::lose(Twin& twin, const char* why) {
    twin.tap->close();
    twin.lost = true;
    base::log_warning("interface {}: its twin {} in netns {} {}; it is made anew", twin.name, twin.tap->twin().ifname,
                      twin.tap->twin().netns, why);
}

// A twin that can't be made now (its namespace is not there, say) is tried again each second; what went wrong was said
// when it was tried first.
void Twins::make_anew(Twin& twin) {
    try {
        twin.tap = std::make_unique<Tap>(twin.tap->twin(), twin.settings);
    } catch (const base::MachineError& error) {
        if (!std::exchange(twin.complained, true))
            base::log_error("interface {}: {}; tried again each second", twin.name, error.what());
        return;
    }
    twin.lost = twin.complained = false;
    base::log_info("interface {}: its twin {} in netns {} is there again", twin.name, twin.tap->twin().ifname,
                   twin.tap->twin().netns);
}

void Twins::look_after(std::uint64_t now_ms) {
    next_look_ms_ = now_ms + kLookEveryMs;
    bool changed = false;
    for (const auto& [netns, space] : spaces_) {
        if (space.identity == netns_identity(netns)) continue;
        for (auto& [index, twin] : taps_)
            if (!twin.lost && twin.tap->twin().netns == netns) lose(twin, "went with its namespace");
        changed = true;
    }
    for (auto& [index, twin] : taps_) {
        if (!twin.lost) continue;
        changed = true;
        make_anew(twin);
    }
    if (changed) watch_spaces();
}

}  // namespace cachewire::control
