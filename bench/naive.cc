// SPDX-License-Identifier: BSD-3-Clause
#include "naive.h"

#include <cstring>
#include <stdexcept>
#include <utility>

#include <rte_ethdev.h>
#include <rte_hash_crc.h>
#include <rte_ip.h>

#include "acl/batch.h"
#include "by_stage.h"
#include "net/checksum.h"
#include "net/headers.h"
#include "pipeline/forwarding.h"

namespace cachewire::bench::naive {

namespace {

template <bool kApart, class Step, class... Arguments>
void step(Arguments&... arguments) noexcept {
    if constexpr (kApart) {
        bench_stage<Step>(arguments...);
    } else {
        Step::process(arguments...);
    }
}

// Both directions are one flow.
net::FlowKey canonical_of(const net::FlowKey& key) noexcept {
    net::FlowKey out = key;
    if (std::memcmp(&key.src, &key.dst, sizeof key.src) > 0) {
        std::swap(out.src, out.dst);
        std::swap(out.src_port_be, out.dst_port_be);
    }
    return out;
}

}  // namespace

Forwarder::Forwarder(const std::string& name, const pipeline::Snapshot& snapshot, unsigned capacity, std::uint16_t west,
                     std::uint16_t east)
    : snapshot_(snapshot),
      west_(west),
      east_(east),
      flows_(capacity + capacity / 8 + 64),
      counters_(snapshot.tenants.size()) {
    for (const auto& port : snapshot.ports)
        for (const auto& tagged : port.tagged) tenant_of_vlan_[tagged.outer] = tagged.attachment.tenant;
    rte_hash_parameters parameters{};
    parameters.name = name.c_str();
    parameters.entries = static_cast<std::uint32_t>(flows_.size());
    parameters.key_len = net::kFlowIdentityBytes;
    parameters.hash_func = rte_hash_crc;
    parameters.socket_id = SOCKET_ID_ANY;
    table_ = rte_hash_create(&parameters);
    if (table_ == nullptr) throw std::runtime_error("rte_hash_create " + name);
}

Forwarder::~Forwarder() { rte_hash_free(table_); }

void Forwarder::Parse::process(Forwarder& shared, Packet& packet) noexcept {
    const auto* frame = rte_pktmbuf_mtod(packet.mbuf, const std::uint8_t*);
    const std::uint32_t length = packet.mbuf->pkt_len;
    packet.alive = false;
    if (length < net::kEthernetBytes + net::kTagBytes + net::kIp4Bytes) return;
    std::uint32_t at = 12;
    std::uint16_t type, tag = 0;
    std::memcpy(&type, frame + at, 2);
    if (type == net::be16(0x8100)) {
        std::memcpy(&tag, frame + 14, 2);
        at += net::kTagBytes;
        std::memcpy(&type, frame + at, 2);
    }
    if (type != net::be16(net::kEtherTypeIp4)) return;
    at += 2;
    const std::uint8_t* ip = frame + at;
    const unsigned header = (ip[0] & 15u) * 4u;
    std::uint16_t total;
    std::memcpy(&total, ip + 2, 2);
    total = __builtin_bswap16(total);
    if (ip[0] >> 4 != 4 || header < net::kIp4Bytes || total < header + 8 || length < at + total) return;
    if (net::checksum({ip, header}) != 0 || ip[8] <= 1) return;
    net::FlowKey& key = packet.key;
    std::uint32_t src, dst;
    std::memcpy(&src, ip + 12, 4);
    std::memcpy(&dst, ip + 16, 4);
    key.src = net::Address::from_v4(__builtin_bswap32(src));
    key.dst = net::Address::from_v4(__builtin_bswap32(dst));
    std::memcpy(&key.src_port_be, ip + header, 2);
    std::memcpy(&key.dst_port_be, ip + header + 2, 2);
    key.proto = ip[9];
    key.match_flags = net::kL4Known;
    key.tenant = shared.tenant_of_vlan_[net::be16(tag) & 0xfff];
    packet.ip_offset = at;
    packet.alive = key.tenant != 0;
}

// A flow that is new, by list and route. The lock is held.
Flow* Forwarder::begin_flow(const net::FlowKey& key, const net::FlowKey& canonical) noexcept {
    const std::int32_t at = rte_hash_add_key(table_, &canonical);
    if (at < 0) return nullptr;
    const pipeline::Tenant& tenant = snapshot_.tenants[key.tenant];
    Flow& flow = flows_[static_cast<std::size_t>(at)];
    flow = {};
    acl::Batch batch;
    batch.add(tenant.acl, &key, 0);
    batch.judge([&](auto, const acl::Verdict& verdict) { flow.permit = verdict.action == acl::Action::permit; });
    const net::Address* destination = &key.dst;
    tenant.fib->lookup({&destination, 1}, {&flow.next_hop, 1});
    return &flow;
}

void Forwarder::Session::process(Forwarder& shared, Packet& packet) noexcept {
    const net::FlowKey canonical = canonical_of(packet.key);
    rte_spinlock_lock(&shared.lock_);
    const std::int32_t at = rte_hash_lookup(shared.table_, &canonical);
    Flow* flow = at >= 0 ? &shared.flows_[static_cast<std::size_t>(at)] : shared.begin_flow(packet.key, canonical);
    if (flow != nullptr) {
        ++flow->packets;
        flow->bytes += packet.mbuf->pkt_len;
        flow->last_seen = base::now_tsc();
    }
    rte_spinlock_unlock(&shared.lock_);
    packet.flow = flow;
    packet.alive = flow != nullptr && flow->permit;
}

void Forwarder::Count::process(Forwarder& shared, Packet& packet) noexcept {
    TenantCounters& counters = shared.counters_[packet.key.tenant];
    counters.packets.fetch_add(1);
    counters.bytes.fetch_add(packet.mbuf->pkt_len);
}

void Forwarder::Tx::process(Forwarder& shared, Packet& packet) noexcept {
    const route::NextHop& next_hop = shared.snapshot_.next_hops[packet.flow->next_hop];
    rte_mbuf* mbuf = packet.mbuf;
    auto* frame = rte_pktmbuf_mtod(mbuf, std::uint8_t*);
    net::decrement_ttl_ip4(frame + packet.ip_offset);
    // In and out carry one tag each, so nothing moves.
    std::memcpy(frame, next_hop.l2_header.data(), next_hop.l2_length - 2u);
    std::uint16_t total;
    std::memcpy(&total, frame + packet.ip_offset + 2, 2);
    mbuf->data_len = static_cast<std::uint16_t>(packet.ip_offset + __builtin_bswap16(total));
    mbuf->pkt_len = mbuf->data_len;
    shared.sending_[shared.to_send_++] = mbuf;
}

template <bool kApart>
void Forwarder::finish(Packet& packet) noexcept {
    if (packet.alive) step<kApart, Session>(*this, packet);
    if (packet.alive) {
        step<kApart, Count>(*this, packet);
        step<kApart, Tx>(*this, packet);
    } else {
        rte_pktmbuf_free(packet.mbuf);
    }
}

void Forwarder::send() noexcept {
    const std::uint16_t sent = rte_eth_tx_burst(east_, 0, sending_.data(), to_send_);
    if (sent < to_send_) rte_pktmbuf_free_bulk(sending_.data() + sent, to_send_ - sent);
    to_send_ = 0;
}

template <bool kApart>
void Forwarder::in_place() noexcept {
    std::array<rte_mbuf*, kBurst> mbufs;
    const std::uint16_t n = rte_eth_rx_burst(west_, 0, mbufs.data(), kBurst);
    for (std::uint16_t i = 0; i < n; ++i) {
        Packet packet;
        packet.mbuf = mbufs[i];
        step<kApart, Parse>(*this, packet);
        finish<kApart>(packet);
    }
    send();
}

template <bool kApart>
void Forwarder::after_descriptor(pipeline::WorkerState& worker, const pipeline::RxQueue& queue) noexcept {
    pipeline::Burst& burst = worker.burst;
    worker.rx_queue = queue;
    worker.now_tsc = worker.last_tsc = base::now_tsc();
    step<kApart, pipeline::stages::Rx>(worker, snapshot_, burst);
    step<kApart, pipeline::stages::Parse>(worker, snapshot_, burst);
    for (const auto i : burst.live()) {
        Packet packet;
        packet.mbuf = burst.lane(i).mbuf;
        packet.ip_offset = burst.lane(i).l3_offset;
        packet.key = burst.key(i);
        finish<kApart>(packet);
    }
    pipeline::stages::Drop::process(worker, burst);
    send();
}

template void Forwarder::in_place<false>() noexcept;
template void Forwarder::in_place<true>() noexcept;
template void Forwarder::after_descriptor<false>(pipeline::WorkerState&, const pipeline::RxQueue&) noexcept;
template void Forwarder::after_descriptor<true>(pipeline::WorkerState&, const pipeline::RxQueue&) noexcept;

}  // namespace cachewire::bench::naive
