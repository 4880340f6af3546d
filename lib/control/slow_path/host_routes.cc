// SPDX-License-Identifier: BSD-3-Clause
// Which neighbors may have a host route: those that the routes look for on their own link. A route that comes later, by
// a reload or from the kernel, may lead elsewhere; then the host route, the longest match of all, has to go.
#include "control/slow_path/slow_path.h"
#include "net/nd.h"

namespace cachewire::control {

namespace {

constexpr std::uint64_t kRecheckMs = 1000;

}  // namespace

// Whoever speaks for an address that the routes lead elsewhere gets nothing sent: a host route would take the address
// from its gateway. A gateway itself is asked for by name.
bool SlowPath::is_on_link(const NeighborKey& key) const {
    const Neighbor* neighbor = table_.find(key);
    if (neighbor == nullptr || is_configured(key)) return false;
    if (neighbor->wanted) return true;
    const route::NextHop* hop = next_hop_towards(key.tenant, key.address);
    if (hop == nullptr || hop->interface != key.interface) return false;
    return hop->via == key.address || (hop->kind == route::NextHopKind::unresolved && hop->via == net::Address{});
}

void SlowPath::recheck_some() {
    constexpr unsigned kATurn = 256;
    if (!rechecked_) {
        if (!recheck_wanted_ || now_ms_ < next_recheck_ms_ || !hooks_.is_elsewhere) return;
        recheck_wanted_ = false;
        next_recheck_ms_ = now_ms_ + kRecheckMs;
        rechecked_ = NeighborKey{};
    }
    auto at = table_.all().upper_bound(*rechecked_);
    for (unsigned i = 0; i < kATurn && at != table_.all().end(); ++i, ++at) {
        recheck(at->first, at->second);
        rechecked_ = at->first;
    }
    if (at == table_.all().end()) rechecked_.reset();
}

void SlowPath::recheck(const NeighborKey& key, const Neighbor& neighbor) {
    if (!neighbor.has_mac || neighbor.wanted || is_configured(key) || net::is_link_local(key.address)) return;
    const route::NextHop* hop = next_hop_towards(key.tenant, key.address);
    if (hop == nullptr) return;
    const bool has_host_route = hop->interface == key.interface && hop->via == key.address;
    if (has_host_route && hooks_.is_elsewhere(key)) hooks_.change({key, std::nullopt, false});
    if (!has_host_route && is_on_link(key)) hooks_.change({key, neighbor.mac, false});
}

}  // namespace cachewire::control
