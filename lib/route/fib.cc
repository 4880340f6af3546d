// SPDX-License-Identifier: BSD-3-Clause
#include "route/fib.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "net/prefix.h"
#include "route/left_right.h"
#include "route/next_hop.h"

namespace cachewire::route {

namespace {

// The lanes of one family, gathered into the array that the bulk look-up takes.
template <class F>
struct Gathered {
    std::array<typename F::Lookup, kMaxBulk> addresses;
    std::array<std::uint8_t, kMaxBulk> lanes;
    unsigned count = 0;
    static_assert(kMaxBulk <= 256, "lanes are bytes");

    void add(const net::Address& address, std::size_t lane) noexcept {
        addresses[count] = F::lookup_form(address);
        lanes[count++] = static_cast<std::uint8_t>(lane);
    }
};

template <class F>
void lookup_family(const Tables<F>& tables, Gathered<F>& gathered, std::span<std::uint16_t> next_hops) noexcept {
    if (gathered.count == 0) return;
    if (tables.ranges) {
        for (unsigned k = 0; k < gathered.count; ++k) {
            next_hops[gathered.lanes[k]] = tables.ranges->lookup(F::key_of(gathered.addresses[k]));
        }
        return;
    }
    std::array<std::uint64_t, kMaxBulk> found;
    tables.table->lookup(gathered.addresses.data(), found.data(), gathered.count);
    for (unsigned k = 0; k < gathered.count; ++k) next_hops[gathered.lanes[k]] = static_cast<std::uint16_t>(found[k]);
}

// Immutable: the copies it holds are not changed while it lives.
class View final : public FibView {
  public:
    View(Tables<Ip4> ip4, Tables<Ip6> ip6) : ip4_(std::move(ip4)), ip6_(std::move(ip6)) {}

    void lookup(std::span<const net::Address* const> destinations,
                std::span<std::uint16_t> next_hops) const noexcept override {
        assert(destinations.size() == next_hops.size() && destinations.size() <= kMaxBulk);
        Gathered<Ip4> ip4;
        Gathered<Ip6> ip6;
        for (std::size_t i = 0; i < destinations.size(); ++i) {
            if (destinations[i]->is_v4()) {
                ip4.add(*destinations[i], i);
            } else {
                ip6.add(*destinations[i], i);
            }
        }
        lookup_family(ip4_, ip4, next_hops);
        lookup_family(ip6_, ip6, next_hops);
    }

  private:
    Tables<Ip4> ip4_;
    Tables<Ip6> ip6_;
};

net::Prefix truncate(const net::Address& address, net::Family family, unsigned length) noexcept {
    net::Prefix p{address, static_cast<std::uint8_t>(length), family};
    const unsigned kept = family == net::Family::ip4 ? 96 + length : length;
    for (unsigned bit = kept; bit < 128; ++bit) {
        p.address.bytes[bit / 8] &= static_cast<std::uint8_t>(~(0x80u >> (bit % 8)));
    }
    return p;
}

void check_change(const std::string& vrf, const RouteChange& change) {
    const net::Prefix& p = change.prefix;
    const bool ip4 = p.family == net::Family::ip4;
    const std::string route = "routes of VRF " + vrf + ": " + net::to_string(p) + ": ";
    if (p.length > (ip4 ? 32 : 128) || ip4 != p.address.is_v4() || !p.contains(p.address)) {
        throw base::MachineError(route + "not a prefix of its family, or host bits set");
    }
    if (change.next_hop && (*change.next_hop == 0 || *change.next_hop > kMaxNextHops)) {
        throw base::MachineError(route + "next hop " + std::to_string(*change.next_hop) + " is not in 1-" +
                                 std::to_string(kMaxNextHops));
    }
}

constexpr std::size_t kRouteBytes = 64;  // a node of the map, with malloc's header

// By prefix; the last change of a prefix is the one that counts.
std::vector<RouteChange> sorted_once(std::span<const RouteChange> batch) {
    const auto before = [](const RouteChange& a, const RouteChange& b) { return a.prefix < b.prefix; };
    std::vector<RouteChange> sorted(batch.begin(), batch.end());
    if (!std::is_sorted(sorted.begin(), sorted.end(), before)) std::stable_sort(sorted.begin(), sorted.end(), before);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        if (kept != 0 && sorted[kept - 1].prefix == sorted[i].prefix) --kept;
        sorted[kept++] = sorted[i];
    }
    sorted.resize(kept);
    return sorted;
}

struct Batch {  // without repetitions and without what changes nothing
    std::vector<RouteChange> ip4, ip6;
    std::vector<RouteChange>& of(net::Family family) { return family == net::Family::ip4 ? ip4 : ip6; }
};

}  // namespace

struct Vrf::Impl {
    Impl(std::string vrf, const Options& options)
        : name(std::move(vrf)),
          ip4(name, {options.compact_limit, options.max_routes, options.tbl8_groups_v4, options.socket_id}),
          ip6(name, {options.compact_limit, options.max_routes, options.tbl8_groups_v6, options.socket_id}),
          view(std::make_shared<View>(ip4.current(), ip6.current())) {}

    // Puts the changes, sorted, into the map; fills `done` with what really changes and `inverse` with what undoes it.
    void change_routes(const std::vector<RouteChange>& wanted, Batch& done) {
        auto at = routes.begin();
        for (const auto& [prefix, next_hop] : wanted) {
            at = first_from(at, prefix);
            const bool there = at != routes.end() && at->first == prefix;
            const std::optional<std::uint16_t> old = there ? std::optional(at->second) : std::nullopt;
            if (old == next_hop) continue;
            done.of(prefix.family).push_back({prefix, next_hop});
            inverse.of(prefix.family).push_back({prefix, old});
            std::size_t& count = count_of(prefix.family);
            if (!next_hop) {
                at = routes.erase(at);
                --count;
            } else if (there) {
                at->second = *next_hop;
            } else {
                at = routes.emplace_hint(at, prefix, *next_hop);
                ++count;
            }
        }
    }

    // The first route not before `prefix`. A large batch walks along the map, a small one goes down from its root.
    RouteMap::iterator first_from(RouteMap::iterator at, const net::Prefix& prefix) {
        for (int steps = 0; steps < 8; ++steps, ++at)
            if (at == routes.end() || !(at->first < prefix)) return at;
        return routes.lower_bound(prefix);
    }

    std::size_t& count_of(net::Family family) { return family == net::Family::ip4 ? ip4_count : ip6_count; }

    void set(const net::Prefix& prefix, std::optional<std::uint16_t> next_hop) {
        std::size_t& count = count_of(prefix.family);
        if (next_hop) {
            count += routes.insert_or_assign(prefix, *next_hop).second ? 1 : 0;
        } else {
            count -= routes.erase(prefix);
        }
    }

    // Back to before the last batch, prepared or committed.
    void undo() {
        for (auto* changes : {&inverse.ip4, &inverse.ip6}) {
            for (const RouteChange& c : *changes) set(c.prefix, c.next_hop);
        }
        ip4.cancel(inverse.ip4);
        ip6.cancel(inverse.ip6);
        inverse = {};
    }

    std::string name;
    RouteMap routes;
    std::size_t ip4_count = 0, ip6_count = 0;
    LeftRight<Ip4> ip4;
    LeftRight<Ip6> ip6;
    std::shared_ptr<const FibView> view, previous_view;
    Batch inverse;
    bool waiting = false;
};

Vrf::Vrf(std::string name, const Options& options) : impl_(std::make_unique<Impl>(std::move(name), options)) {}
Vrf::~Vrf() = default;

std::shared_ptr<const FibView> Vrf::apply(std::span<const RouteChange> batch) {
    Impl& vrf = *impl_;
    if (vrf.waiting) throw std::logic_error("Vrf::apply before the last batch's grace period was over");
    for (const RouteChange& change : batch) check_change(vrf.name, change);
    const std::vector<RouteChange> wanted = sorted_once(batch);

    Batch done;
    try {
        vrf.change_routes(wanted, done);
        vrf.ip4.prepare(done.ip4, vrf.routes, vrf.ip4_count);
        vrf.ip6.prepare(done.ip6, vrf.routes, vrf.ip6_count);
    } catch (...) {
        vrf.undo();
        throw;
    }
    if (done.ip4.empty() && done.ip6.empty()) return vrf.view;
    vrf.ip4.commit(std::move(done.ip4));
    vrf.ip6.commit(std::move(done.ip6));
    vrf.previous_view = std::move(vrf.view);
    vrf.view = std::make_shared<View>(vrf.ip4.current(), vrf.ip6.current());
    vrf.waiting = true;
    return vrf.view;
}

void Vrf::abandon() {
    Impl& vrf = *impl_;
    if (!vrf.waiting) return;
    vrf.view = std::move(vrf.previous_view);
    vrf.previous_view = nullptr;
    vrf.undo();
    vrf.waiting = false;
}

void Vrf::grace_period_over() {
    Impl& vrf = *impl_;
    vrf.previous_view = nullptr;
    vrf.inverse = {};
    vrf.waiting = false;
    vrf.ip4.grace_period_over(vrf.routes, vrf.ip4_count);
    vrf.ip6.grace_period_over(vrf.routes, vrf.ip6_count);
}

bool Vrf::waiting_for_grace_period() const noexcept { return impl_->waiting; }
std::shared_ptr<const FibView> Vrf::view() const noexcept { return impl_->view; }
const std::map<net::Prefix, std::uint16_t>& Vrf::routes() const noexcept { return impl_->routes; }

std::optional<RouteEntry> Vrf::lookup(const net::Address& address) const {
    const RouteMap& routes = impl_->routes;
    const net::Family family = address.is_v4() ? net::Family::ip4 : net::Family::ip6;
    for (int length = family == net::Family::ip4 ? 32 : 128; length >= 0; --length) {
        const auto it = routes.find(truncate(address, family, static_cast<unsigned>(length)));
        if (it != routes.end()) return RouteEntry{it->first, it->second};
    }
    return std::nullopt;
}

FibStats Vrf::stats() const {
    const Impl& vrf = *impl_;
    return {vrf.ip4_count, vrf.ip6_count,
            vrf.ip4.memory_bytes() + vrf.ip6.memory_bytes() + vrf.routes.size() * kRouteBytes,
            vrf.ip4.current().table != nullptr, vrf.ip6.current().table != nullptr};
}

}  // namespace cachewire::route
