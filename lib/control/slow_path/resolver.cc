// SPDX-License-Identifier: BSD-3-Clause
#include "control/slow_path/resolver.h"

#include <array>
#include <cstring>

#include "base/log.h"
#include "net/arp.h"
#include "net/headers.h"

namespace cachewire::control {

namespace {

constexpr net::Mac kBroadcast{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
constexpr std::uint64_t kWarnMs = 10000;

net::Mac mac_at(const std::uint8_t* p) noexcept {
    net::Mac mac;
    std::memcpy(mac.bytes.data(), p, 6);
    return mac;
}

void send_arp(FrameSender& sender, const OwnInterface& by, const net::Mac& to, const net::Arp& arp) {
    std::array<std::uint8_t, net::kArpBytes> bytes;
    net::write_arp(arp, bytes.data());
    sender.send(by, to, net::kEtherTypeArp, bytes);
}

void send_nd(FrameSender& sender, const OwnInterface& by, const net::Mac& to, const net::NeighborMessage& message) {
    std::array<std::uint8_t, net::kMaxNeighborBytes> bytes;
    const unsigned size = net::write_neighbor_message(message, bytes.data());
    sender.send(by, to, net::kEtherTypeIp6, std::span(bytes).first(size));
}

}  // namespace

void Resolver::on_arp(std::span<const std::uint8_t> frame, const pipeline::PuntRecord& record, std::uint64_t now_ms) {
    ++counters_.arp_in;
    const OwnInterface* in = interfaces_.find(record.interface);
    const auto arp = net::read_arp(frame.subspan(std::min<std::size_t>(record.l3_offset, frame.size())));
    if (in == nullptr || !arp) {
        ++counters_.malformed;
        return;
    }
    if (in->has(arp->sender)) return conflict(*in, arp->sender, arp->sender_mac, now_ms);
    const bool for_us = in->has(arp->target);
    // RFC 5227 2.1.1: a probe has no sender yet; it is answered and teaches nothing.
    if (in->is_neighbor(arp->sender)) {
        const bool to_us = for_us && (frame[0] & 1) == 0;
        table_.hear({in->tenant, in->index, arp->sender},
                    {.mac = arp->sender_mac,
                     .solicited = arp->op == net::ArpOp::reply && to_us,
                     .overrides = true,
                     .creates = arp->op == net::ArpOp::request && for_us},
                    now_ms);
    }
    if (arp->op != net::ArpOp::request || !for_us) return;
    ++counters_.answered;
    send_arp(sender_, *in, arp->sender_mac, {net::ArpOp::reply, in->mac, arp->target, arp->sender_mac, arp->sender});
}

void Resolver::on_nd(std::span<const std::uint8_t> frame, const pipeline::PuntRecord& record, std::uint64_t now_ms) {
    ++counters_.nd_in;
    const OwnInterface* in = interfaces_.find(record.interface);
    const auto datagram = frame.subspan(std::min<std::size_t>(record.l3_offset, frame.size()));
    const std::uint8_t type = datagram.size() > net::kIp6Bytes ? datagram[net::kIp6Bytes] : 0;
    if (in != nullptr && (type == 133 || type == 134 || type == 137)) return;  // routers' and redirects: not for us
    const auto message = net::read_neighbor_message(datagram);
    if (in == nullptr || !message) {
        ++counters_.malformed;
        return;
    }
    const auto is_own = [in](const net::Address& a) { return in->has(a) || a == net::link_local(in->mac); };
    if (message->advertisement) {
        if (is_own(message->target)) {
            if (message->link_layer && *message->link_layer != in->mac)
                conflict(*in, message->target, *message->link_layer, now_ms);
            return;
        }
        table_.hear({in->tenant, in->index, message->target},
                    {message->link_layer, message->solicited, message->override_, false}, now_ms);
        return;
    }
    const bool for_us = is_own(message->target);
    const bool from_host = in->is_neighbor(message->src) || (net::is_link_local(message->src) && !is_own(message->src));
    if (from_host && message->link_layer) {
        // RFC 4861 7.2.3. A link-local address is nobody's next hop unless a route says so, and then it is in the
        // table.
        table_.hear({in->tenant, in->index, message->src},
                    {message->link_layer, false, true, for_us && !net::is_link_local(message->src)}, now_ms);
    }
    if (for_us) answer(*in, *message, message->link_layer.value_or(mac_at(frame.data() + 6)));
}

void Resolver::answer(const OwnInterface& in, const net::NeighborMessage& asked, const net::Mac& to) {
    ++counters_.answered;
    net::NeighborMessage reply;
    reply.advertisement = reply.router = reply.override_ = true;
    reply.src = reply.target = asked.target;
    reply.link_layer = in.mac;
    // RFC 4861 7.2.4: who has no address yet hears it with all the others.
    reply.solicited = asked.src != net::Address{};
    reply.dst = reply.solicited ? asked.src : net::all_nodes();
    send_nd(sender_, in, reply.solicited ? to : net::multicast_mac(reply.dst), reply);
}

void Resolver::ask(const NeighborAction& action) {
    const OwnInterface* by = interfaces_.find(action.key.interface);
    if (by == nullptr) return;
    ++counters_.asked;
    const net::Address& target = action.key.address;
    const bool alone = action.kind == NeighborAction::Kind::ask_it;
    if (target.is_v4()) {
        const auto own = by->address_towards(target);
        if (!own) return;
        send_arp(sender_, *by, alone ? action.mac : kBroadcast, {net::ArpOp::request, by->mac, *own, {}, target});
        return;
    }
    net::NeighborMessage message;
    message.src = net::is_link_local(target) ? net::link_local(by->mac)
                                             : by->address_towards(target).value_or(net::link_local(by->mac));
    message.target = target;
    message.dst = alone ? target : net::solicited_node(target);
    message.link_layer = by->mac;
    send_nd(sender_, *by, alone ? action.mac : net::multicast_mac(message.dst), message);
}

void Resolver::announce(const OwnInterface& interface) {
    for (const auto& own : interface.addresses) {
        if (own.address.is_v4()) {
            send_arp(sender_, interface, kBroadcast,
                     {net::ArpOp::request, interface.mac, own.address, {}, own.address});
            continue;
        }
        net::NeighborMessage message;
        message.advertisement = message.router = message.override_ = true;
        message.src = message.target = own.address;
        message.dst = net::all_nodes();
        message.link_layer = interface.mac;
        send_nd(sender_, interface, net::multicast_mac(message.dst), message);
    }
}

void Resolver::conflict(const OwnInterface& in, const net::Address& address, const net::Mac& mac,
                        std::uint64_t now_ms) {
    if (mac == in.mac) return;  // our own word, come back by a loop
    ++counters_.conflicts;
    if (now_ms < next_warning_ms_) return;
    next_warning_ms_ = now_ms + kWarnMs;
    base::log_warning("interface {}: {} says that {} is its address; it is ours", in.name, net::to_string(mac),
                      net::to_string(address));
}

}  // namespace cachewire::control
