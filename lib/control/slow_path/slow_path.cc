// SPDX-License-Identifier: BSD-3-Clause
#include "control/slow_path/slow_path.h"

#include <algorithm>
#include <cstring>
#include <set>

#include <rte_mbuf.h>

#include "net/headers.h"
#include "pipeline/egress.h"

namespace cachewire::control {

using pipeline::PuntReason;
using pipeline::PuntRecord;
using pipeline::ReturnKind;
using route::NextHopKind;

namespace {

constexpr unsigned kRecordsATurn = 256;  // of each worker, so that one's storm leaves room for the others'
constexpr std::uint64_t kAnnounceAgainMs = 2000;
constexpr std::uint64_t kPublishMs = 2000;
// Host unreachable, for each port that the packets came in by.
constexpr std::uint64_t kUnreachableEveryMs = 1;
constexpr std::uint64_t kUnreachableBurst = 100;

std::vector<pipeline::ReturnRing*> return_rings(const std::vector<SlowPath::Worker>& workers) {
    std::vector<pipeline::ReturnRing*> rings;
    rings.reserve(workers.size());
    for (const auto& worker : workers) rings.push_back(worker.returns);
    return rings;
}

net::Address destination_of(bool ip6, const std::uint8_t* ip) noexcept {
    if (!ip6) return net::Address::from_v4(__builtin_bswap32(net::load32(ip + 16)));
    net::Address a;
    std::memcpy(a.bytes.data(), ip + 24, 16);
    return a;
}

}  // namespace

SlowPath::SlowPath(std::vector<Worker> workers, rte_mempool* pool, Hooks hooks)
    : workers_(std::move(workers)),
      hooks_(std::move(hooks)),
      sender_(return_rings(workers_), pool),
      resolver_(table_, interfaces_, sender_),
      answers_(interfaces_, [this](std::uint16_t tenant, const net::Address& to) {
          const route::NextHop* hop = next_hop_towards(tenant, to);
          return hop == nullptr ? NextHopKind::no_route : hop->kind;
      }) {}

SlowPath::~SlowPath() {
    for (const Held& held : holds_.take_all()) rte_pktmbuf_free(held.packet.mbuf);
}

void SlowPath::configure(const config::Config& config, const Registry& registry, const std::vector<bool>& is_link,
                         std::uint64_t now_ms) {
    now_ms_ = now_ms;
    const std::vector<OwnInterface> before = interfaces_.all();
    interfaces_.configure(config, registry, hooks_.snapshot());
    announce_changed(before, is_link);
    table_.flush(
        [&](const NeighborKey& key) {
            const OwnInterface* own = interfaces_.find(key.interface);
            return own == nullptr || own->tenant != key.tenant ||
                   (!own->is_neighbor(key.address) && !net::is_link_local(key.address));
        },
        now_ms);
    doubt_behind_new_links(before);
    const auto key_of = [&](std::size_t tenant, const net::Address& address,
                            const std::optional<std::size_t>& interface) -> std::optional<NeighborKey> {
        const std::uint16_t slot = *registry.tenants.find(config.tenants[tenant].name);
        const OwnInterface* own = interface ? &interfaces_.all()[*interface] : interfaces_.towards(slot, address);
        if (own == nullptr) return std::nullopt;
        return NeighborKey{own->tenant, own->index, address};
    };
    std::map<NeighborKey, net::Mac>& permanent = configured_neighbors_;
    permanent.clear();
    for (const config::Neighbor& neighbor : config.neighbors)
        if (const auto key = key_of(neighbor.tenant, neighbor.address, neighbor.interface))
            permanent[*key] = neighbor.mac;
    std::set<NeighborKey> wanted;
    const auto want = [&](std::size_t tenant, const config::RouteVia& via) {
        if (!via.address) return;
        const auto key = key_of(via.tenant.value_or(tenant), *via.address, via.interface);
        if (key && !permanent.contains(*key)) wanted.insert(*key);
    };
    for (const config::Route& route : config.routes)
        for (const config::RouteVia& via : route.via) want(route.tenant, via);
    for (const config::RouteFile& file : config.route_files)
        for (const config::RouteVia& via : file.vias) want(file.tenant, via);
    for (std::size_t tenant = 0; tenant < config.tenants.size(); ++tenant) {
        const auto hops = registry.policy_hops.find(*registry.tenants.find(config.tenants[tenant].name));
        if (hops == registry.policy_hops.end() || hops->second == nullptr) continue;
        for (const config::AclRule& rule : config.acls[*config.tenants[tenant].acl].rules)
            if (rule.next_hop) want(tenant, {.address = rule.next_hop->address});
    }
    configured_gateways_ = std::move(wanted);
    settle_permanent();
    recheck_host_routes();
}

void SlowPath::want_gateways() {
    std::set<NeighborKey> wanted = configured_gateways_;
    for (const NeighborKey& key : kernel_gateways_)
        if (interfaces_.find(key.interface) != nullptr) wanted.insert(key);
    table_.set_wanted(wanted, now_ms_);
    // Of a link-local one nobody was told so far, though its address may be known.
    for (const NeighborKey& key : wanted) {
        const Neighbor* neighbor = net::is_link_local(key.address) ? table_.find(key) : nullptr;
        if (neighbor != nullptr && neighbor->has_mac && !hooks_.forwards(key))
            hooks_.change({key, neighbor->mac, false});
    }
}

void SlowPath::doubt_behind_new_links(const std::vector<OwnInterface>& before) {
    std::set<std::uint16_t> came_up;
    for (const OwnInterface& was : before)
        if (const OwnInterface* own = interfaces_.find(was.index); !was.up && own != nullptr && own->up)
            came_up.insert(was.index);
    if (!came_up.empty())
        table_.doubt([&came_up](const NeighborKey& key) { return came_up.contains(key.interface); }, now_ms_);
}

unsigned SlowPath::poll(std::uint64_t now_ms, Routes routes) {
    now_ms_ = now_ms;
    unsigned packets = 0;
    for (unsigned worker = 0; worker < workers_.size(); ++worker) packets += take_punted(worker);
    table_.tick(now_ms);
    act_on_neighbors();
    if (!bound_.empty()) release_bound();
    if (routes == Routes::settled) recheck_some();
    if (!announcements_.empty()) announce_due();
    if (closing_)
        for (const Held& held : holds_.take_all()) give_up(held, false);
    sender_.publish();
    return packets;
}

unsigned SlowPath::take_punted(unsigned worker) {
    pipeline::PuntRing& ring = *workers_[worker].punted;
    const unsigned count = std::min(ring.ready(), kRecordsATurn);
    for (unsigned i = 0; i < count; ++i) handle(ring.take(), worker);
    if (count != 0) ring.release();
    return count;
}

// Each case sends the mbuf on or frees it.
void SlowPath::handle(const PuntRecord& record, unsigned worker) {
    switch (record.reason) {
        case PuntReason::arp:
        case PuntReason::nd:
            return handle_resolution(record);
        case PuntReason::no_neighbor:
            return wait_for_neighbor(record, worker);
        case PuntReason::echo:
            return handle_echo(record, worker);
        case PuntReason::local:
        case PuntReason::no_route:
        case PuntReason::ttl_exceeded:
        case PuntReason::mtu_exceeded:
        case PuntReason::reject:
            return handle_error(record, worker);
        case PuntReason::kernel_bgp:
        case PuntReason::kernel_ospf:
        case PuntReason::kernel_bfd:
        case PuntReason::kernel_other:
            return handle_for_twin(record, worker);
    }
    rte_pktmbuf_free(record.mbuf);
}

// The packet's bytes in one piece, as far as they are there.
std::span<const std::uint8_t> SlowPath::read(const PuntRecord& record, std::uint32_t from, std::uint32_t bytes) {
    const std::uint32_t there = record.mbuf->pkt_len > from ? record.mbuf->pkt_len - from : 0;
    bytes = std::min({bytes, there, static_cast<std::uint32_t>(scratch_.size())});
    const void* data = bytes == 0 ? nullptr : rte_pktmbuf_read(record.mbuf, from, bytes, scratch_.data());
    return {static_cast<const std::uint8_t*>(data), data == nullptr ? 0 : bytes};
}

void SlowPath::handle_resolution(const PuntRecord& record) {
    const auto frame = read(record, 0, record.mbuf->pkt_len);
    if (record.reason == PuntReason::arp) {
        resolver_.on_arp(frame, record, now_ms_);
    } else {
        resolver_.on_nd(frame, record, now_ms_);
    }
    rte_pktmbuf_free(record.mbuf);
}

void SlowPath::handle_echo(const PuntRecord& record, unsigned worker) {
    rte_mbuf* mbuf = record.mbuf;
    rte_pktmbuf_adj(mbuf, record.l3_offset);
    if (mbuf->pkt_len > record.l3_length)  // L2 padding
        rte_pktmbuf_trim(mbuf, static_cast<std::uint16_t>(mbuf->pkt_len - record.l3_length));
    const bool whole = rte_pktmbuf_linearize(mbuf) == 0;
    const std::span bytes(rte_pktmbuf_mtod(mbuf, std::uint8_t*), mbuf->data_len);
    if (!whole || !answers_.echo(record, bytes)) {
        rte_pktmbuf_free(mbuf);
        return;
    }
    mbuf->ol_flags &= RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
    route_out(mbuf, record, worker);
}

void SlowPath::handle_error(const PuntRecord& record, unsigned worker) {
    const auto& next_hops = hooks_.snapshot().next_hops;
    const std::uint16_t mtu = record.next_hop < next_hops.size() ? next_hops[record.next_hop].mtu : 0;
    send_datagram(answers_.about(record, read(record, record.l3_offset, record.l3_length), mtu), record, worker);
    rte_pktmbuf_free(record.mbuf);
}

void SlowPath::send_datagram(std::span<const std::uint8_t> datagram, const PuntRecord& about, unsigned worker) {
    if (datagram.empty()) return;
    if (rte_mbuf* mbuf = sender_.make(datagram)) route_out(mbuf, about, worker);
}

const route::NextHop* SlowPath::next_hop_towards(std::uint16_t tenant, const net::Address& to) const {
    const pipeline::Snapshot& snapshot = hooks_.snapshot();
    if (tenant >= snapshot.tenants.size() || snapshot.tenants[tenant].fib == nullptr) return nullptr;
    return &snapshot.next_hops[pipeline::egress_next_hop(snapshot, tenant, to, 0, pipeline::kNoNextHop)];
}

void SlowPath::route_out(rte_mbuf* mbuf, const PuntRecord& about, unsigned worker) {
    const net::Address to = destination_of(about.ip6, rte_pktmbuf_mtod(mbuf, const std::uint8_t*));
    if (net::is_link_local(to)) return send_on_link(mbuf, to, about, worker);
    const route::NextHop* hop = next_hop_towards(about.tenant, to);
    if (hop != nullptr && hop->kind == NextHopKind::unresolved) {
        Held held{about, worker, true};
        held.packet.mbuf = mbuf;
        const std::uint16_t tenant =
            hooks_.snapshot().interfaces[hop->interface].tenant;  // a leak leads to another one
        return hold({tenant, hop->interface, hop->via == net::Address{} ? to : hop->via}, held);
    }
    if (hop == nullptr || hop->kind != NextHopKind::forward || mbuf->pkt_len > hop->mtu) {
        ++counters_.no_way_back;
        rte_pktmbuf_free(mbuf);
        return;
    }
    const unsigned l2_bytes = hop->l2_length;
    auto* frame = reinterpret_cast<std::uint8_t*>(rte_pktmbuf_prepend(mbuf, static_cast<std::uint16_t>(l2_bytes)));
    if (frame == nullptr) {
        rte_pktmbuf_free(mbuf);
        return;
    }
    std::memcpy(frame, hop->l2_header.data(), l2_bytes - 2);
    const std::uint16_t ether_type = net::be16(about.ip6 ? net::kEtherTypeIp6 : net::kEtherTypeIp4);
    std::memcpy(frame + l2_bytes - 2, &ether_type, 2);
    sender_.give(worker, {.mbuf = mbuf, .kind = ReturnKind::transmit, .tenant = about.tenant, .port = hop->port});
}

void SlowPath::wait_for_neighbor(const PuntRecord& record, unsigned worker) {
    const auto& next_hops = hooks_.snapshot().next_hops;
    const auto packet = read(record, record.l3_offset, record.ip6 ? net::kIp6Bytes : net::kIp4Bytes);
    const Held held{record, worker, false};
    if (record.next_hop >= next_hops.size() || packet.empty()) return give_up(held, false);
    const route::NextHop& hop = next_hops[record.next_hop];
    // Whoever punted may have seen an older snapshot: what is known by now goes on at once.
    if (hop.kind == NextHopKind::forward) return release(held);
    const net::Address to = hop.via == net::Address{} ? destination_of(record.ip6, packet.data()) : hop.via;
    const OwnInterface* own = interfaces_.find(hop.interface);
    if (own == nullptr) return give_up(held, false);
    hold({own->tenant, own->index, to}, held);
}

void SlowPath::hold(const NeighborKey& key, const Held& held) {
    ++counters_.held;
    const OwnInterface* own = interfaces_.find(key.interface);
    if (closing_ || own == nullptr) return give_up(held, false);
    switch (table_.need(key, now_ms_)) {
        case NeighborTable::Need::refused:
            return give_up(held, true);
        case NeighborTable::Need::known:
            // Bound and not yet published, or published since the packet was punted.
            watch(key);
            break;
        case NeighborTable::Need::waiting:
            break;
    }
    if (const auto gone = holds_.push(key, held)) give_up(*gone, false);
}

void SlowPath::release(const Held& held) {
    ++counters_.released;
    if (held.own) return route_out(held.packet.mbuf, held.packet, held.worker);
    sender_.give(
        held.worker,
        {.mbuf = held.packet.mbuf, .kind = ReturnKind::retry, .tenant = held.packet.tenant, .port = held.packet.port});
}

// `tell`: the sender hears of it.
void SlowPath::give_up(const Held& held, bool tell) {
    ++counters_.gave_up;
    const PuntRecord& packet = held.packet;
    if (held.own) {
        rte_pktmbuf_free(packet.mbuf);
        return;
    }
    if (tell && unreachable_meters_[packet.port].admit(now_ms_, kUnreachableEveryMs, kUnreachableBurst))
        send_datagram(answers_.host_unreachable(packet, read(packet, packet.l3_offset, packet.l3_length)), packet,
                      held.worker);
    sender_.give(held.worker, {.mbuf = packet.mbuf,
                               .kind = ReturnKind::drop,
                               .drop = closing_ ? pipeline::DropReason::shutdown : pipeline::DropReason::no_neighbor,
                               .tenant = packet.tenant,
                               .port = packet.port});
}

void SlowPath::act_on_neighbors() {
    using Kind = NeighborAction::Kind;
    for (const NeighborAction& action : table_.take_actions()) {
        switch (action.kind) {
            case Kind::ask_group:
            case Kind::ask_it:
                resolver_.ask(action);
                break;
            case Kind::bound:
                if (is_on_link(action.key)) hooks_.change({action.key, action.mac, false});
                if (holds_.has(action.key)) watch(action.key);
                break;
            case Kind::unbound:
                hooks_.change({action.key, std::nullopt, false});
                break;
            case Kind::failed:
                // Only of a gateway anybody wants to know; a scan's absent hosts leave no trace.
                if (const Neighbor* neighbor = table_.find(action.key); neighbor != nullptr && neighbor->wanted)
                    hooks_.change({action.key, std::nullopt, true});
                for (const Held& held : holds_.take(action.key)) give_up(held, true);
                break;
        }
    }
}

void SlowPath::watch(const NeighborKey& key) {
    const auto same = [&key](const Bound& bound) { return bound.key == key; };
    if (std::none_of(bound_.begin(), bound_.end(), same)) bound_.push_back({key, now_ms_});
}

// Link-local ones are in no snapshot, unless they are gateways.
bool SlowPath::is_published(const NeighborKey& key) const {
    const Neighbor* neighbor = net::is_link_local(key.address) ? table_.find(key) : nullptr;
    return (neighbor != nullptr && !neighbor->wanted) || hooks_.forwards(key);
}

// A neighbor that can't be published (its VRF's table is full, say) keeps nothing waiting for long.
void SlowPath::release_bound() {
    std::vector<std::pair<NeighborKey, bool>> due;
    std::erase_if(bound_, [&](const Bound& bound) {
        const bool forwards = is_published(bound.key);
        if (!forwards && now_ms_ - bound.since_ms < kPublishMs) return false;
        due.emplace_back(bound.key, forwards);
        return true;
    });
    // Now, since what is released may wait for another neighbor, and be watched.
    for (const auto& [key, forwards] : due)
        for (const Held& held : holds_.take(key)) forwards ? release(held) : give_up(held, true);
}

void SlowPath::announce_changed(const std::vector<OwnInterface>& before, const std::vector<bool>& is_link) {
    for (const OwnInterface& own : interfaces_.all()) {
        const auto same = [&own](const OwnInterface& other) { return own.looks_like(other); };
        if (!own.up || own.is_loopback() || !is_link[own.port] || std::any_of(before.begin(), before.end(), same))
            continue;
        announcements_.push_back({now_ms_, own.index});
        announcements_.push_back({now_ms_ + kAnnounceAgainMs, own.index});
    }
}

void SlowPath::announce_due() {
    std::erase_if(announcements_, [this](const Announcement& announcement) {
        if (announcement.due_ms > now_ms_) return false;
        if (const OwnInterface* own = interfaces_.find(announcement.interface)) resolver_.announce(*own);
        return true;
    });
}

std::size_t SlowPath::flush(std::optional<std::uint16_t> tenant, std::uint64_t now_ms) {
    now_ms_ = now_ms;
    return table_.flush([tenant](const NeighborKey& key) { return !tenant || key.tenant == *tenant; }, now_ms);
}

}  // namespace cachewire::control
