// SPDX-License-Identifier: BSD-3-Clause
#include "control/route_feed.h"

#include <algorithm>
#include <stdexcept>

#include "base/error.h"
#include "base/log.h"
#include "control/next_hops.h"

namespace cachewire::control {

namespace {

std::uint16_t& field_of(FedRoute& route, RouteSource source) {
    return source == RouteSource::kernel ? route.kernel : route.neighbor;
}

void check_source(RouteSource source) {
    if (source != RouteSource::kernel && source != RouteSource::neighbor)
        throw std::invalid_argument("RouteFeed: these routes are the configuration's");
}

}  // namespace

// The snapshot in the making.
struct RouteFeed::Work {
    std::unique_ptr<pipeline::Snapshot> snapshot;
    std::map<std::uint16_t, Generations> generations_before;
    std::vector<NextHopKey> hops;  // whose content has to be written
    bool changed = false;
    bool reclaimed = false;
};

void RouteFeed::set_route(RouteSource source, std::uint16_t tenant, const net::Prefix& prefix,
                          std::vector<FedVia> via) {
    check_source(source);
    std::size_t weights = 0;
    for (const FedVia& v : via) weights += std::max<std::uint16_t>(v.weight, 1);
    if (weights > route::Group::kBuckets) throw std::invalid_argument("RouteFeed: next hops weigh too much together");
    add(source, tenant, {prefix, false, std::move(via)});
}

void RouteFeed::add(RouteSource source, std::uint16_t tenant, Change change) {
    Changes& changes = queues_[tenant].of(source);
    if (!changes.refused.empty()) changes.refused.erase(change.prefix);
    changes.all.push_back(std::move(change));
}

void RouteFeed::withdraw(RouteSource source, std::uint16_t tenant, const net::Prefix& prefix) {
    check_source(source);
    add(source, tenant, {prefix, true, {}});
}

void RouteFeed::withdraw_all(RouteSource source, std::uint16_t tenant) {
    check_source(source);
    // What is still queued comes before, so it is withdrawn too.
    std::map<net::Prefix, bool> there;
    if (const auto fed = builder_.fed_.find(tenant); fed != builder_.fed_.end())
        for (auto& [prefix, route] : fed->second) there[prefix] = field_of(route, source) != 0;
    Changes& queued = queues_[tenant].of(source);
    queued.refused.clear();
    for (std::size_t i = queued.next; i < queued.all.size(); ++i) there[queued.all[i].prefix] = true;
    for (const auto& [prefix, is_there] : there)
        if (is_there) withdraw(source, tenant, prefix);
}

void RouteFeed::set_neighbor(std::uint16_t tenant, std::uint16_t interface, const net::Address& address,
                             const NeighborBinding& binding) {
    queues_[tenant].bindings[{tenant, interface, NextHopUse::neighbor, address}] = binding;
    if (is_link_local(address)) return;
    if (binding.mac) {
        set_route(RouteSource::neighbor, tenant, host_prefix(address), {{interface, address, 1}});
    } else {
        withdraw(RouteSource::neighbor, tenant, host_prefix(address));
    }
}

// Takes back the indices of neighbours and groups that no route leads to. Sessions that hold one look up again, because
// every VRF's generation moves; after the grace period no worker does either, and the indices may be given anew.
void RouteFeed::reclaim(std::uint64_t now_ms, Work& work) {
    Registry& registry = builder_.registry_;
    if (std::min(registry.next_hops.left(), registry.groups.left()) >= kReclaimBelow) return;
    if (reclaimed_ms_ && now_ms - *reclaimed_ms_ < kReclaimEveryMs) return;
    reclaimed_ms_ = now_ms;
    std::vector<bool> used(std::size_t{route::kMaxNextHops} + 1);
    for (const auto& [slot, vrf] : registry.vrfs)
        for (const auto& [prefix, next_hop] : vrf->routes()) used[next_hop] = true;
    for (const auto& [slot, table] : builder_.fed_)
        for (const auto& [prefix, route] : table) used[route.kernel] = used[route.neighbor] = true;
    for (const std::uint16_t next_hop : registry.kept_hops) used[next_hop] = true;
    std::vector<GroupKey> idle_groups;
    for (const auto& [key, number] : registry.groups.all()) {
        const auto hop = registry.next_hops.find({key.first, number, NextHopUse::group, {}});
        if (!hop || !used[*hop]) {
            idle_groups.push_back(key);
            continue;
        }
        for (const auto& [member, weight] : key.second) used[member] = true;
    }
    std::vector<NextHopKey> idle;
    for (const auto& [key, index] : registry.next_hops.all())
        if (!used[index] && (key.use == NextHopUse::neighbor || key.use == NextHopUse::group)) idle.push_back(key);
    if (idle.empty()) return;
    for (const GroupKey& key : idle_groups) {
        registry.group_tables[*registry.groups.find(key)] = nullptr;
        registry.groups.release(key);
    }
    for (const NextHopKey& key : idle) registry.next_hops.release(key);
    for (auto& [slot, generations] : registry.generations) ++generations.route;
    work.changed = work.reclaimed = true;
}

void RouteFeed::bind(const NextHopKey& key, const NeighborBinding& binding, Work& work) {
    auto& learned = builder_.registry_.learned_neighbors;
    if (binding == NeighborBinding{}) {
        learned.erase(key);
    } else {
        learned[key] = binding;
    }
    if (builder_.registry_.next_hops.find(key)) work.hops.push_back(key);
    work.changed = true;
}

std::uint16_t RouteFeed::next_hop(std::uint16_t tenant, const Change& change, Work& work) {
    Registry& registry = builder_.registry_;
    const auto get = [&](const NextHopKey& key) {
        const bool is_new = !registry.next_hops.find(key);
        const std::uint16_t hop = registry.next_hops.get(key);
        if (is_new) work.hops.push_back(key);
        return hop;
    };
    const auto neighbor = [&](const FedVia& via) {
        const NextHopUse use = via.address == net::Address{} ? NextHopUse::glean : NextHopUse::neighbor;
        return get({tenant, via.interface, use, via.address});
    };
    if (change.via.empty()) return get({tenant, pipeline::kNoInterface, NextHopUse::drop, {}});
    if (change.via.size() == 1 && change.via[0].local) {
        note_local(registry, tenant, change.prefix);
        return get({tenant, pipeline::kNoInterface, NextHopUse::local, {}});
    }
    if (change.via.size() == 1) return neighbor(change.via[0]);
    std::vector<std::pair<std::uint16_t, std::uint16_t>> members;
    for (const FedVia& via : change.via) members.emplace_back(neighbor(via), std::max<std::uint16_t>(via.weight, 1));
    return get(group_key(registry, tenant, std::move(members)));
}

// One tenant's turn: what is known of neighbours, and the changes of one source.
void RouteFeed::apply(std::uint16_t tenant, Queue& queue, Work& work) {
    for (const auto& [key, binding] : queue.bindings) bind(key, binding, work);
    queue.bindings.clear();
    RouteSource source = queue.kernel_next ? RouteSource::kernel : RouteSource::neighbor;
    if (queue.of(source).left() == 0)
        source = source == RouteSource::kernel ? RouteSource::neighbor : RouteSource::kernel;
    queue.kernel_next = source != RouteSource::kernel;
    Changes& changes = queue.of(source);
    const std::size_t count = std::min(changes.left(), kMaxBatch);
    if (count == 0) return;
    try {
        apply_changes(tenant, source, changes, count, work);
        stats_.changed += count;
        if (changes.refused.empty()) changes.retry_after_ms = kRetryFirstMs;
    } catch (const base::MachineError& error) {
        work.changed |= !work.hops.empty();  // their indices are taken: the next change that uses one finds it filled
        stats_.refused += count;
        for (std::size_t i = changes.next; i < changes.next + count; ++i)
            changes.refused.insert_or_assign(changes.all[i].prefix, changes.all[i]);
        // Of what is queued behind, the newer word counts.
        for (std::size_t i = changes.next + count; i < changes.all.size(); ++i)
            changes.refused.erase(changes.all[i].prefix);
        changes.retry_ms = *queue.flushed_ms + changes.retry_after_ms;
        changes.retry_after_ms = std::min(2 * changes.retry_after_ms, kRetryLastMs);
        if (!queue.complained_ms || *queue.flushed_ms - *queue.complained_ms >= 1000) {
            base::log_error("routes at run time: {} changes refused: {}; refused since start: {}", count, error.what(),
                            stats_.refused);
            queue.complained_ms = queue.flushed_ms;
        }
    }
    changes.next += count;
    if (changes.left() != 0) return;
    changes.all = {};
    changes.next = 0;
}

void RouteFeed::retry(std::uint64_t now_ms) {
    for (auto& [tenant, queue] : queues_) {
        for (Changes* changes : {&queue.kernel, &queue.neighbor}) {
            if (changes->refused.empty() || now_ms < changes->retry_ms) continue;
            for (auto& [prefix, change] : std::exchange(changes->refused, {}))
                changes->all.push_back(std::move(change));
        }
    }
}

void RouteFeed::apply_changes(std::uint16_t tenant, RouteSource source, Changes& changes, std::size_t count,
                              Work& work) {
    Registry& registry = builder_.registry_;
    const auto vrf = registry.vrfs.find(tenant);
    if (vrf == registry.vrfs.end()) throw base::MachineError("tenant slot " + std::to_string(tenant) + " has no VRF");
    FedTable& fed = builder_.fed_[tenant];
    FedTable updated;
    for (std::size_t i = changes.next; i < changes.next + count; ++i) {
        const Change& change = changes.all[i];
        const auto [at, fresh] = updated.try_emplace(change.prefix);
        if (fresh)
            if (const auto it = fed.find(change.prefix); it != fed.end()) at->second = it->second;
        field_of(at->second, source) = change.withdraw ? std::uint16_t{0} : next_hop(tenant, change, work);
    }
    std::vector<route::RouteChange> batch;
    batch.reserve(updated.size());
    const RouteTable* configured = registry.configured[tenant].get();
    for (const auto& [prefix, route] : updated) {
        if (find_route(configured, prefix) != nullptr) continue;  // waits behind it
        batch.push_back({prefix, route.best() == 0 ? std::nullopt : std::optional(route.best())});
    }
    const auto before = vrf->second->view();
    auto view = vrf->second->apply(batch);
    for (const auto& [prefix, route] : updated) {
        if (route.best() == 0) {
            fed.erase(prefix);
        } else {
            fed[prefix] = route;
        }
    }
    work.changed |= !work.hops.empty();
    if (view == before) return;
    work.changed = true;
    // A neighbor's host route takes the place of its link's next hop, which no session remembers, and a session that
    // remembers the neighbor's own next hop goes on with that when the route is gone.
    if (source != RouteSource::neighbor) ++registry.generations[tenant].route;
    // A tenant that a reload took away keeps its routes for the day when it comes back.
    if (tenant >= work.snapshot->fibs.size() || work.snapshot->fibs[tenant] == nullptr) return;
    work.snapshot->tenants[tenant].fib = view.get();
    work.snapshot->fibs[tenant] = std::move(view);
}

bool RouteFeed::flush(std::uint64_t now_ms) {
    const auto is_due = [&](const Queue& queue) {
        return queue.left() != 0 && (!queue.flushed_ms || now_ms - *queue.flushed_ms >= 1000 / kFlushesPerSecond);
    };
    // With many VRFs one is due nearly always, and each publication copies the snapshot.
    if (flushed_ms_ && now_ms - *flushed_ms_ < kFlushEveryMs) return false;
    retry(now_ms);
    if (std::none_of(queues_.begin(), queues_.end(), [&](const auto& entry) { return is_due(entry.second); }))
        return false;
    if (publisher_.reap() != 0) return false;
    Registry& registry = builder_.registry_;
    Work work;
    work.snapshot = std::make_unique<pipeline::Snapshot>(*publisher_.current());
    work.generations_before = registry.generations;
    reclaim(now_ms, work);
    for (auto& [tenant, queue] : queues_) {
        if (!is_due(queue)) continue;
        queue.flushed_ms = now_ms;
        apply(tenant, queue, work);
    }
    flushed_ms_ = now_ms;
    if (!work.changed) return false;
    for (const NextHopKey& key : work.hops) fill_next_hop(registry, key, *registry.next_hops.find(key), *work.snapshot);
    fill_groups(registry, *work.snapshot);
    bump_lookers(registry, work.generations_before);
    write_route_generations(registry, *work.snapshot);
    write_local_ends(registry, *work.snapshot);
    publisher_.publish(std::move(work.snapshot), [this, reclaimed = work.reclaimed] {
        builder_.grace_period_over();
        if (!reclaimed) return;
        builder_.registry_.next_hops.reuse_released();
        builder_.registry_.groups.reuse_released();
    });
    ++stats_.flushes;
    return true;
}

RouteFeed::Stats RouteFeed::stats() const noexcept {
    Stats stats = stats_;
    for (const auto& [tenant, queue] : queues_) stats.pending += queue.left();
    return stats;
}

}  // namespace cachewire::control
