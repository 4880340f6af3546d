// SPDX-License-Identifier: BSD-3-Clause
// Between the wire and the kernel's twins. ARP and neighbor discovery on the wire are cachewire's alone: the twin's own
// questions are answered here, all of them with one MAC address, and what it sends to that goes by cachewire's routes
// and neighbors. What is for a group leaves as it is. Echo requests to configured addresses never come here.
#include <algorithm>
#include <array>
#include <cstring>

#include <rte_mbuf.h>

#include "control/kernel/tap.h"
#include "control/slow_path/slow_path.h"
#include "net/arp.h"
#include "net/headers.h"
#include "net/nd.h"
#include "pipeline/partial_checksum.h"

namespace cachewire::control {

using pipeline::PuntReason;
using pipeline::PuntRecord;

namespace {

using Header = std::array<std::uint8_t, net::kEthernetBytes>;

Header ethernet(const net::Mac& to, const net::Mac& from, std::uint16_t ether_type) {
    Header header;
    std::memcpy(header.data(), to.bytes.data(), 6);
    std::memcpy(header.data() + 6, from.bytes.data(), 6);
    header[12] = static_cast<std::uint8_t>(ether_type >> 8);
    header[13] = static_cast<std::uint8_t>(ether_type);
    return header;
}

net::Address address_at(bool ip6, const std::uint8_t* bytes) {
    if (!ip6) return net::Address::from_v4(__builtin_bswap32(net::load32(bytes)));
    net::Address address;
    std::memcpy(address.bytes.data(), bytes, 16);
    return address;
}

// A peer in this machine may have left it to a NIC that isn't there, and the kernel would find it wrong.
void complete_l4_checksum(const PuntRecord& record, rte_mbuf* mbuf) {
    const auto* ip = rte_pktmbuf_mtod(mbuf, const std::uint8_t*);
    if (record.l4_offset == 0) return;
    net::FlowKey key;
    key.src = address_at(record.ip6, ip + (record.ip6 ? 8 : 12));
    key.dst = address_at(record.ip6, ip + (record.ip6 ? 24 : 16));
    key.proto = record.ip6 ? ip[6] : ip[9];
    if (key.proto != net::kProtoTcp && key.proto != net::kProtoUdp) return;
    const unsigned l4 = record.l4_offset - record.l3_offset;
    if (!record.ip6 && ((ip[6] & 0x3f) | ip[7]) != 0) return;  // pieces are whole before they are cut
    pipeline::complete_checksum(mbuf, l4, record.l3_length - l4, key);
}

bool is_group(const std::uint8_t* mac) { return (mac[0] & 1) != 0; }

}  // namespace

// The interface that it came in by, as a host would see it; else whose address it is, and of those on `lo` any.
std::optional<std::uint16_t> SlowPath::twin_for(const PuntRecord& record, const net::Address& destination) const {
    const auto& interfaces = hooks_.snapshot().interfaces;
    const auto has_twin = [&](std::uint16_t index) { return index < interfaces.size() && interfaces[index].twin; };
    std::optional<std::uint16_t> any;
    for (const OwnInterface& own : interfaces_.all()) {
        if (own.tenant != record.tenant) continue;
        if (own.has(destination)) {
            if (!has_twin(own.index)) return std::nullopt;  // an address that the kernel has not got
            any = own.index;
            break;
        }
        if (!any && has_twin(own.index)) any = own.index;
    }
    return has_twin(record.interface) ? record.interface : any;
}

void SlowPath::handle_for_twin(const PuntRecord& record, unsigned worker) {
    rte_mbuf* mbuf = record.mbuf;
    const unsigned ip_bytes = record.ip6 ? net::kIp6Bytes : net::kIp4Bytes;
    const auto ip = read(record, record.l3_offset, ip_bytes);
    const auto twin = ip.size() < ip_bytes
                          ? std::nullopt
                          : twin_for(record, address_at(record.ip6, ip.data() + (record.ip6 ? 24 : 16)));
    const OwnInterface* own = twin ? interfaces_.find(*twin) : nullptr;
    if (own == nullptr) {  // an address without a twin: nothing listens there
        PuntRecord local = record;
        local.reason = PuntReason::local;
        return handle_error(local, worker);
    }
    net::Mac to = own->mac, from;
    const auto* frame = rte_pktmbuf_mtod(mbuf, const std::uint8_t*);
    if (is_group(frame)) std::memcpy(to.bytes.data(), frame, 6);
    std::memcpy(from.bytes.data(), frame + 6, 6);
    rte_pktmbuf_adj(mbuf, record.l3_offset);
    if (mbuf->pkt_len > record.l3_length)  // L2 padding
        rte_pktmbuf_trim(mbuf, static_cast<std::uint16_t>(mbuf->pkt_len - record.l3_length));
    complete_l4_checksum(record, mbuf);
    const Header header = ethernet(to, from, record.ip6 ? net::kEtherTypeIp6 : net::kEtherTypeIp4);
    const bool taken = hooks_.to_twin && hooks_.to_twin(*twin, header, mbuf);
    ++(taken ? counters_.to_kernel : counters_.kernel_refused);
    rte_pktmbuf_free(mbuf);
}

// ARP requests and neighbor solicitations: whoever is asked for has kWireMacMac. Announcements, probes and what else a
// host says to its link stay here.
void SlowPath::answer_twin(const OwnInterface& own, std::uint16_t ether_type, std::span<const std::uint8_t> payload) {
    if (!hooks_.to_twin) return;
    std::array<std::uint8_t, net::kEthernetBytes + net::kMaxNeighborBytes> frame;
    const Header header = ethernet(own.mac, kWireMac, ether_type);
    std::copy(header.begin(), header.end(), frame.begin());
    unsigned size = 0;
    if (ether_type == net::kEtherTypeArp) {
        const auto arp = net::read_arp(payload);
        const bool asks = arp && arp->op == net::ArpOp::request && arp->sender != arp->target &&
                          arp->sender != net::Address::from_v4(0) && !own.has(arp->target);
        if (!asks) return;
        net::write_arp({net::ArpOp::reply, kWireMac, arp->target, arp->sender_mac, arp->sender},
                       frame.data() + header.size());
        size = net::kArpBytes;
    } else {
        const auto asked = net::read_neighbor_message(payload);
        if (!asked || asked->advertisement || asked->src == net::Address{} || own.has(asked->target)) return;
        net::NeighborMessage reply;
        reply.advertisement = reply.router = reply.solicited = reply.override_ = true;
        reply.src = reply.target = asked->target;
        reply.dst = asked->src;
        reply.link_layer = kWireMac;
        size = net::write_neighbor_message(reply, frame.data() + header.size());
    }
    hooks_.to_twin(own.index, std::span(frame).first(header.size() + size), nullptr);
}

void SlowPath::from_twin(std::uint16_t interface, std::span<const std::uint8_t> frame) {
    const OwnInterface* own = interfaces_.find(interface);
    if (own == nullptr || !own->up || closing_ || frame.size() < net::kEthernetBytes + net::kIp4Bytes) return;
    const std::uint16_t ether_type = net::load16_be(frame.data() + 12);
    const auto payload = frame.subspan(net::kEthernetBytes);
    if (ether_type == net::kEtherTypeArp) return answer_twin(*own, ether_type, payload);
    const bool ip6 = ether_type == net::kEtherTypeIp6;
    if (!ip6 && ether_type != net::kEtherTypeIp4) return;
    if (ip6 && payload.size() < net::kIp6Bytes) return;
    if (ip6 && payload[6] == net::kProtoIcmp6 && payload.size() > net::kIp6Bytes && payload[net::kIp6Bytes] >= 133 &&
        payload[net::kIp6Bytes] <= 137)
        return answer_twin(*own, ether_type, payload);
    ++counters_.from_kernel;
    constexpr unsigned kWorker = 0;  // one queue, so that nothing overtakes
    if (is_group(frame.data())) {
        if (own->is_loopback()) return;  // on no link there is no group
        net::Mac to;
        std::memcpy(to.bytes.data(), frame.data(), 6);
        sender_.send(*own, to, ether_type, payload, kWorker);
        return;
    }
    PuntRecord about;
    about.reason = ip6 ? PuntReason::nd : PuntReason::arp;  // not asked for: it is of our own making
    about.ip6 = ip6;
    about.tenant = own->tenant;
    about.interface = own->index;
    about.port = own->port;
    if (rte_mbuf* mbuf = sender_.make(payload)) route_out(mbuf, about, kWorker);
}

// To a link-local address: no route says where, the interface does.
void SlowPath::send_on_link(rte_mbuf* mbuf, const net::Address& to, const PuntRecord& about, unsigned worker) {
    const OwnInterface* own = interfaces_.find(about.interface);
    if (own == nullptr || own->is_loopback()) {
        ++counters_.no_way_back;
        rte_pktmbuf_free(mbuf);
        return;
    }
    const NeighborKey key{own->tenant, own->index, to};
    const Neighbor* neighbor = table_.find(key);
    if (neighbor == nullptr || !neighbor->has_mac) {
        Held held{about, worker, true};
        held.packet.mbuf = mbuf;
        return hold(key, held);
    }
    auto* frame =
        reinterpret_cast<std::uint8_t*>(rte_pktmbuf_prepend(mbuf, static_cast<std::uint16_t>(own->l2_bytes())));
    if (frame == nullptr) {
        rte_pktmbuf_free(mbuf);
        return;
    }
    own->write_ethernet(neighbor->mac, net::kEtherTypeIp6, frame);
    sender_.give(worker,
                 {.mbuf = mbuf, .kind = pipeline::ReturnKind::transmit, .tenant = own->tenant, .port = own->port});
}

void SlowPath::set_kernel_gateways(const std::vector<std::pair<std::uint16_t, net::Address>>& gateways,
                                   std::uint64_t now_ms) {
    now_ms_ = now_ms;
    kernel_gateways_.clear();
    for (const auto& [interface, address] : gateways)
        if (const OwnInterface* own = interfaces_.find(interface))
            kernel_gateways_.insert({own->tenant, interface, address});
    want_gateways();
}

void SlowPath::set_kernel_neighbors(const std::vector<KernelNeighbor>& neighbors, std::uint64_t now_ms) {
    now_ms_ = now_ms;
    kernel_neighbors_ = neighbors;
    settle_permanent();
}

void SlowPath::hear_kernel_neighbor(const KernelNeighbor& neighbor, std::uint64_t now_ms) {
    now_ms_ = now_ms;
    if (const auto key = link_key(neighbor))
        table_.hear(*key, {.mac = neighbor.mac, .creates = !net::is_link_local(neighbor.address)}, now_ms);
}

// nullopt: nobody on that link can have the address.
std::optional<NeighborKey> SlowPath::link_key(const KernelNeighbor& neighbor) const {
    const OwnInterface* own = interfaces_.find(neighbor.interface);
    if (own == nullptr || own->is_loopback()) return std::nullopt;
    if (!own->is_neighbor(neighbor.address) && !net::is_link_local(neighbor.address)) return std::nullopt;
    return NeighborKey{own->tenant, own->index, neighbor.address};
}

// The configuration's word goes before the kernel's, and both before what the link says.
void SlowPath::settle_permanent() {
    std::map<NeighborKey, net::Mac> permanent = configured_neighbors_;
    for (const KernelNeighbor& neighbor : kernel_neighbors_)
        if (const auto key = link_key(neighbor)) permanent.try_emplace(*key, neighbor.mac);
    table_.set_permanent(permanent, now_ms_);
    want_gateways();
}

void SlowPath::set_kernel_addresses(const std::map<std::uint16_t, std::vector<config::InterfaceAddress>>& addresses) {
    interfaces_.set_learned(addresses);
}

}  // namespace cachewire::control
