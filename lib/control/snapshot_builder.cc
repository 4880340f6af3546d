// SPDX-License-Identifier: BSD-3-Clause
#include "control/snapshot_builder.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "control/attachments.h"
#include "control/kernel/tap.h"
#include "control/next_hops.h"
#include "control/policers.h"
#include "control/policy.h"
#include "control/routes.h"
#include "session/table.h"

namespace cachewire::control {

static_assert(config::kMssClampAuto == pipeline::kMssClampAuto);

namespace {

constexpr std::uint32_t kLeastKernelBurst = 32;
// Lanes ahead; the built-in choice for `session: auto`.
constexpr std::uint8_t kDefaultSessionPrefetch = session::Table::kDefaultAhead;

pipeline::SessionMode session_mode(config::SessionMode mode) {
    switch (mode) {
        case config::SessionMode::none:
            return pipeline::SessionMode::none;
        case config::SessionMode::cache:
            return pipeline::SessionMode::cache;
        case config::SessionMode::track:
            return pipeline::SessionMode::track;
    }
    return pipeline::SessionMode::none;
}

pipeline::Rpf rpf(config::Rpf rpf) {
    switch (rpf) {
        case config::Rpf::none:
            return pipeline::Rpf::none;
        case config::Rpf::loose:
            return pipeline::Rpf::loose;
        case config::Rpf::strict:
            return pipeline::Rpf::strict;
    }
    return pipeline::Rpf::none;
}

pipeline::OnPolicyChange on_policy_change(config::OnPolicyChange choice) {
    switch (choice) {
        case config::OnPolicyChange::revalidate:
            return pipeline::OnPolicyChange::revalidate;
        case config::OnPolicyChange::keep:
            return pipeline::OnPolicyChange::keep;
        case config::OnPolicyChange::kill:
            return pipeline::OnPolicyChange::kill;
    }
    return pipeline::OnPolicyChange::revalidate;
}

}  // namespace

class SnapshotBuilder::Pass {
  public:
    const SnapshotBuilder& builder;
    const config::Config& config;
    Registry registry;  // a copy; kept when all went well
    std::unique_ptr<pipeline::Snapshot> snapshot = std::make_unique<pipeline::Snapshot>();
    std::map<std::uint16_t, std::shared_ptr<const acl::Classifier>> tenant_lists;
    std::vector<std::shared_ptr<route::Vrf>> applied;

    Pass(const SnapshotBuilder& b, const config::Config& c) : builder(b), config(c), registry(b.registry_) {}
    ~Pass() {
        snapshot.reset();  // a view that something still holds can't be taken back, and its copy would be lost
        for (const auto& vrf : applied) vrf->abandon();
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

    void add_globals(std::uint64_t generation) {
        snapshot->generation = generation;
        snapshot->hash_seed = builder.seed_;
        snapshot->burst = config.pipeline.burst;
        snapshot->prefetch_header = static_cast<std::uint8_t>(std::min<unsigned>(config.pipeline.prefetch_header, 255));
        snapshot->prefetch_session =
            config.pipeline.prefetch_session == 0
                ? kDefaultSessionPrefetch
                : static_cast<std::uint8_t>(std::min<unsigned>(config.pipeline.prefetch_session, 255));
        snapshot->memoize = builder.memoize_override_.value_or(config.pipeline.memoize);
        snapshot->shadow_check = config.pipeline.shadow_check;
        snapshot->on_policy_change = on_policy_change(config.sessions.on_policy_change);
        const config::Timeouts& t = config.sessions.timeouts;
        snapshot->sessions.timeouts = {.fresh = t.fresh,
                                       .established_udp = t.established_udp,
                                       .established_tcp = t.established_tcp,
                                       .half_close = t.half_close,
                                       .time_wait = t.time_wait,
                                       .closed = t.closed,
                                       .icmp = t.icmp};
        snapshot->sessions.high_watermark_percent = config.sessions.high_watermark_percent;
        snapshot->sessions.on_full = config.sessions.on_full == config::OnFull::deny_new
                                         ? session::OnFull::deny_new
                                         : session::OnFull::evict_embryonic;
        snapshot->next_hops.resize(1);  // 0: no route
        add_kernel_rates();
    }

    // A quarter of a second may come at once: a peer that sends its table sends a window at a time.
    void add_kernel_rates() {
        const config::KernelPunt& punt = config.kernel_punt;
        const std::array<std::uint32_t, pipeline::kKernelClasses> rates = {punt.bgp_pps, punt.ospf_pps, punt.bfd_pps,
                                                                           punt.other_pps};
        for (std::size_t i = 0; i < rates.size(); ++i)
            snapshot->kernel_punt[i] = {base::tsc_hz() / rates[i], std::max(rates[i] / 4, kLeastKernelBurst)};
    }

    static pipeline::Port absent_port() {
        pipeline::Port port;
        port.attached = port.admin_up = port.sends = false;
        return port;
    }

    void add_ports() {
        std::vector<bool> used(pipeline::kMaxPorts);
        for (std::size_t i = 0; i < config.ports.size(); ++i) {
            const std::uint16_t index = registry.ports.get(config.ports[i].name);
            if (snapshot->ports.size() <= index) snapshot->ports.resize(index + 1u);
            used[index] = true;
            const PortInfo& info = builder.ports_.at(config.ports[i].name);
            pipeline::Port& port = snapshot->ports[index];
            port.mac = info.mac;
            port.ethdev = info.ethdev;
            port.txq = info.txq;
            port.attached = info.attached;
            port.admin_up = info.attached && config.ports[i].admin_up;
            port.sends = port.admin_up && info.link;
            port.partial_checksums = info.traits.partial_checksums;
            port.sends_chains = info.traits.sends_chains;
            port.max_frame_bytes = info.traits.max_frame_bytes;
            snapshot->partial_checksums |= port.partial_checksums;
            fill_attachments(config, i, registry, port);
        }
        // Places whose port is gone stay: workers may still hold frames for it, which are dropped as port_down then.
        snapshot->ports.resize(registry.ports.end(), absent_port());
        for (std::size_t index = 0; index < snapshot->ports.size(); ++index)
            if (!used[index]) snapshot->ports[index] = absent_port();
    }

    void add_interfaces() {
        for (const auto& interface : config.interfaces) {
            const std::uint16_t index = registry.interfaces.get(interface.name);
            if (snapshot->interfaces.size() <= index) snapshot->interfaces.resize(index + 1u);
            if (interface.is_loopback()) {
                snapshot->interfaces[index] = {.mac = kLoopbackMac,
                                               .port = pipeline::kNoPort,
                                               .tenant = registry.tenants.get(config.tenants[interface.tenant].name),
                                               .twin = interface.kernel.has_value()};
                continue;
            }
            const std::string& port = config.ports[interface.port].name;
            snapshot->interfaces[index] = {builder.ports_.at(port).mac,
                                           registry.ports.get(port),
                                           registry.tenants.get(config.tenants[interface.tenant].name),
                                           interface.mtu,
                                           interface.vlan,
                                           interface.inner_vlan,
                                           interface.mss_clamp,
                                           pipeline::kNoInterface,
                                           interface.kernel.has_value()};
            snapshot->mss_clamps |= interface.mss_clamp != pipeline::kNoMssClamp;
        }
    }

    // What stands for a pair's ports where lists and telemetry want an interface, and the way over.
    void add_pairs() {
        Pairs pairs;
        for (const config::CrossConnect& pair : config.cross_connects) {
            std::array<std::uint16_t, 2> interfaces{}, ports{};
            for (unsigned i = 0; i < 2; ++i) {
                const config::Port& port = config.ports[pair.ports[i]];
                ports[i] = registry.ports.get(port.name);
                interfaces[i] = registry.interfaces.get(port.name);
                if (snapshot->interfaces.size() <= interfaces[i]) snapshot->interfaces.resize(interfaces[i] + 1u);
                snapshot->interfaces[interfaces[i]] = {
                    .mac = builder.ports_.at(port.name).mac, .port = ports[i], .mtu = port.mtu};
            }
            for (unsigned i = 0; i < 2; ++i) {
                snapshot->interfaces[interfaces[i]].wire_peer = interfaces[1 - i];
                pipeline::Port& port = snapshot->ports[ports[i]];
                port.wire_interface = interfaces[i];
                port.wire_next_hop = registry.next_hops.get({pipeline::kNoTenant, interfaces[i], NextHopUse::wire, {}});
                port.wire_non_ip = pair.forward_non_ip;
            }
            pairs.push_back(ports);
        }
        // Sessions remember where their packets went.
        if (pairs != registry.pairs)
            for (auto& [slot, generations] : registry.generations) ++generations.route;
        registry.pairs = std::move(pairs);
    }

    // A list that stayed the same keeps its classifier, and with it the verdicts that came from it.
    void add_lists() {
        std::map<std::string, std::shared_ptr<const acl::Classifier>> lists;
        std::map<std::string, std::shared_ptr<const ListHits>> hits;
        for (const auto& acl : config.acls) {
            acl::List list = compile_list(config, acl, registry);
            const auto known = registry.classifiers.find(acl.name);
            const bool is_new = known == registry.classifiers.end();
            if (!is_new && known->second->list() == list) {
                lists[acl.name] = known->second;
                hits[acl.name] = registry.hits.at(acl.name);
                continue;
            }
            auto built = acl::Classifier::build(std::move(list), builder.socket_id_);
            hits[acl.name] = is_new ? builder.rule_hits_->next(nullptr, nullptr, built->list())
                                    : builder.rule_hits_->next(registry.hits.at(acl.name).get(), &known->second->list(),
                                                               built->list());
            lists[acl.name] = std::move(built);
        }
        registry.classifiers = std::move(lists);
        registry.hits = std::move(hits);
        for (const auto& [name, list] : registry.classifiers) snapshot->classifiers.push_back(list);
        for (const auto& [name, list] : registry.hits)
            if (list->numbers != nullptr) snapshot->rule_numbers.push_back(list->numbers->in_snapshot);
    }

    void add_tenants() {
        for (std::size_t i = 0; i < config.tenants.size(); ++i) {
            const config::Tenant& from = config.tenants[i];
            const std::uint16_t slot = registry.tenants.get(from.name);
            if (snapshot->tenants.size() <= slot) snapshot->tenants.resize(slot + 1u);
            add_policy(from, slot);
            add_fib(i, slot);
            add_policy_hops(i, slot);
            snapshot->tenants[slot].policy_generation = registry.generations[slot].policy;
        }
        for (const pipeline::Interface& interface : snapshot->interfaces)
            if (interface.twin) snapshot->tenants[interface.tenant].twins = true;
    }

    // Once every route has its next hop.
    void add_next_hops() {
        for (const auto& route : config.routes)
            for (const auto& via : route.via) snapshot->leaks |= via.tenant.has_value();
        fill_next_hops(registry, *snapshot);
        fill_groups(registry, *snapshot);
        bump_lookers(registry, builder.registry_.generations);
        write_route_generations(registry, *snapshot);
        write_local_ends(registry, *snapshot);
    }

    void add_policy(const config::Tenant& from, std::uint16_t slot) {
        pipeline::Tenant& tenant = snapshot->tenants[slot];
        tenant.sessions = session_mode(from.sessions);
        tenant.midstream = from.midstream == config::Midstream::allow;
        tenant.rpf = rpf(from.rpf);
        snapshot->rpf |= tenant.rpf != pipeline::Rpf::none;
        tenant.quota = {from.quota.sessions.value_or(session::Quota::kUnlimited),
                        from.quota.new_sessions_per_second.value_or(session::Quota::kUnlimited)};
        tenant.stateful = true;  // without a list there is no opinion that a reply could have of its own
        std::shared_ptr<const acl::Classifier> list;
        if (from.acl) {
            list = registry.classifiers.at(config.acls[*from.acl].name);
            tenant.acl = list.get();
            tenant.stateful = list->list().stateful;
            tenant.own_fields = fields_looked_at(list->list());
            const auto& numbers = registry.hits.at(list->list().name)->numbers;
            tenant.rule_base = numbers != nullptr ? numbers->first : pipeline::kNoRule;
            if (numbers != nullptr) tenant.default_rule = numbers->first + numbers->count - 1;
        }
        const auto before = builder.tenant_lists_.find(slot);
        if (before == builder.tenant_lists_.end() || before->second != list) {
            Generations& generations = registry.generations[slot];
            generations.list = ++generations.policy;
        }
        tenant_lists[slot] = std::move(list);
    }

    void add_fib(std::size_t tenant, std::uint16_t slot) {
        const auto want = std::make_shared<const RouteTable>(configured_routes(config, tenant, registry));
        auto& vrf = registry.vrfs[slot];
        if (vrf == nullptr) {
            route::Vrf::Options options;
            options.socket_id = builder.socket_id_;
            vrf = std::make_shared<route::Vrf>(config.tenants[tenant].name, options);
        }
        static const FedTable kNothingFed;
        const auto fed = builder.fed_.find(slot);
        auto& have = registry.configured[slot];
        const auto changes = route_changes(have.get(), *want, fed == builder.fed_.end() ? kNothingFed : fed->second);
        have = want;
        std::shared_ptr<const route::FibView> view = vrf->view();
        if (!changes.empty()) {
            view = vrf->apply(changes);
            applied.push_back(vrf);
            ++registry.generations[slot].route;
        }
        snapshot->tenants[slot].fib = view.get();
        if (snapshot->fibs.size() <= slot) snapshot->fibs.resize(slot + 1u);
        snapshot->fibs[slot] = std::move(view);
    }

    // What the list's rules call next hops, by this tenant's networks. A memo knows its next hop by the route
    // generation alone, so that one moves too where a rule's word goes before the route's, or did.
    void add_policy_hops(std::size_t tenant, std::uint16_t slot) {
        std::shared_ptr<const std::vector<std::uint16_t>> hops;
        const auto& list = tenant_lists.at(slot);
        if (list != nullptr && !list->list().next_hops.empty()) {
            std::vector<std::uint16_t> numbers = {pipeline::kNoNextHop};
            for (const net::Address& address : list->list().next_hops)
                numbers.push_back(gateway_hop(config, tenant, address, registry));
            registry.kept_hops.insert(numbers.begin() + 1, numbers.end());
            hops = std::make_shared<const std::vector<std::uint16_t>>(std::move(numbers));
            snapshot->policy_hops.push_back(hops);
            snapshot->tenants[slot].policy_hops = hops->data();
        }
        const auto before = registry.policy_hops.find(slot);
        const bool had = before != registry.policy_hops.end() && before->second != nullptr;
        const auto last = builder.tenant_lists_.find(slot);
        const bool same_list = last != builder.tenant_lists_.end() && last->second == list;
        if (had != (hops != nullptr) || (had && (!same_list || *before->second != *hops))) {
            ++registry.generations[slot].policy;
            ++registry.generations[slot].route;
        }
        registry.policy_hops[slot] = std::move(hops);
    }
};

SnapshotBuilder::SnapshotBuilder(std::map<std::string, PortInfo> ports, net::HashSeed seed, int socket_id)
    : ports_(std::move(ports)), seed_(seed), socket_id_(socket_id) {}

void SnapshotBuilder::PassDelete::operator()(Pass* pass) const noexcept { delete pass; }

SnapshotBuilder::PassPointer SnapshotBuilder::begin(const config::Config& config, std::uint64_t generation) {
    PassPointer pass(new Pass(*this, config));
    pass->add_globals(generation);
    pass->add_lists();
    return pass;
}

std::map<std::uint16_t, std::shared_ptr<const acl::Classifier>> SnapshotBuilder::lists_of(const Pass& pass) {
    std::map<std::uint16_t, std::shared_ptr<const acl::Classifier>> lists;
    for (const config::Tenant& tenant : pass.config.tenants) {
        const auto slot = pass.registry.tenants.find(tenant.name);
        if (!slot) continue;  // new: it has no sessions
        lists[*slot] = tenant.acl ? pass.registry.classifiers.at(pass.config.acls[*tenant.acl].name) : nullptr;
    }
    return lists;
}

void SnapshotBuilder::complete(Pass& pass) {
    pass.add_ports();
    pass.add_interfaces();
    pass.add_pairs();
    enter_static_neighbors(pass.config, pass.registry);
    fill_classes(pass.config, pass.registry, *pass.snapshot);
    pass.add_tenants();
    attach_policers(pass.config, pass.registry, *pass.snapshot);
    pass.add_next_hops();
    write_blocks(pass.registry, *pass.snapshot);
}

std::uint16_t SnapshotBuilder::port_index(const Pass& pass, const std::string& name) {
    return *pass.registry.ports.find(name);
}

void SnapshotBuilder::move_port(Pass& pass, const std::string& name) { pass.registry.ports.release(name); }

void SnapshotBuilder::write_blocks(const Registry& registry, pipeline::Snapshot& snapshot) const {
    snapshot.blocks.clear();
    for (const auto& [tenant, prefixes] : blocks_) {
        const auto slot = registry.tenants.find(tenant);
        if (!slot || prefixes.empty()) continue;
        if (snapshot.blocks.size() <= *slot) snapshot.blocks.resize(*slot + 1u);
        snapshot.blocks[*slot] = prefixes;
    }
}

std::unique_ptr<pipeline::Snapshot> SnapshotBuilder::commit(PassPointer pass) {
    registry_ = std::move(pass->registry);
    tenant_lists_ = std::move(pass->tenant_lists);
    pass->applied.clear();
    return std::move(pass->snapshot);
}

void SnapshotBuilder::grace_period_over() {
    for (const auto& [slot, vrf] : registry_.vrfs)
        if (vrf->waiting_for_grace_period()) vrf->grace_period_over();
}

}  // namespace cachewire::control
