// SPDX-License-Identifier: BSD-3-Clause
#include "control/kernel/route_monitor.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <libmnl/libmnl.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/log.h"
#include "control/kernel/netns.h"
#include "control/kernel/tap.h"

namespace cachewire::control {

namespace {

constexpr unsigned kReadsATurn = 64;
constexpr int kLo = 1;  // `lo` is the first interface of every namespace

constexpr std::array<unsigned, 6> kGroups = {RTNLGRP_LINK,       RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR,
                                             RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE,  RTNLGRP_NEIGH};

template <std::size_t N>
void collect(const nlmsghdr& message, std::size_t header, std::array<const nlattr*, N>& attributes) {
    auto left = static_cast<int>(mnl_nlmsg_get_payload_len(&message) - MNL_ALIGN(header));
    for (const auto* attribute = static_cast<const nlattr*>(mnl_nlmsg_get_payload_offset(&message, header));
         mnl_attr_ok(attribute, left);
         left -= static_cast<int>(MNL_ALIGN(attribute->nla_len)), attribute = mnl_attr_next(attribute)) {
        const std::uint16_t type = mnl_attr_get_type(attribute);
        if (type < N) attributes[type] = attribute;
    }
}

// Connected networks come from the configuration and from addresses; redirects and advertisements are no routing.
bool is_taken(std::uint8_t protocol) noexcept {
    return protocol != RTPROT_KERNEL && protocol != RTPROT_REDIRECT && protocol != RTPROT_RA;
}

std::unique_ptr<Netlink> open_in(const std::string& netns) {
    const InNetns inside(netns);
    return std::make_unique<Netlink>(kGroups);
}

}  // namespace

RouteMonitor::RouteMonitor(const std::string& netns, KernelRoutes::Changed changed)
    : netlink_(open_in(netns)), routes_(std::move(changed)) {}

void RouteMonitor::watch(Interfaces interfaces) {
    if (interfaces == interfaces_) return;
    interfaces_ = std::move(interfaces);
    ask_for_sync();
}

bool RouteMonitor::is_loopback(int ifindex) const { return ifindex == kLo || interfaces_.loopbacks.contains(ifindex); }

void RouteMonitor::next_dump(Dump what) {
    dump_ = what;
    bool asked = true;
    switch (what) {
        case Dump::none:
            routes_.end_sync();
            ++counters_.syncs;
            return;
        case Dump::addresses:
            dumped_.clear();
            routes_.begin_sync();
            asked = netlink_->dump(RTM_GETADDR, AF_UNSPEC);
            break;
        case Dump::neighbors:
            dumped_neighbors_.clear();
            asked = netlink_->dump(RTM_GETNEIGH, AF_UNSPEC);
            break;
        case Dump::routes4:
            asked = netlink_->dump(RTM_GETROUTE, AF_INET);
            break;
        case Dump::routes6:
            asked = netlink_->dump(RTM_GETROUTE, AF_INET6);
            break;
    }
    if (asked) return;
    dump_ = Dump::none;
    ask_for_sync();
}

bool RouteMonitor::poll() {
    if (wants_turn()) {
        wants_sync_ = false;
        next_dump(Dump::addresses);
    }
    const auto result = netlink_->read(kReadsATurn, [this](const nlmsghdr& message) { handle(message); });
    if (result == Netlink::Read::overrun) {
        // Messages are lost, a dump's end perhaps among them: the next one begins when this one has, or now.
        ++counters_.overruns;
        dump_ = Dump::none;
        ask_for_sync();
    }
    return result != Netlink::Read::idle;
}

void RouteMonitor::handle(const nlmsghdr& message) {
    ++counters_.messages;
    // A table that changed while it was dumped may lack something.
    if ((message.nlmsg_flags & NLM_F_DUMP_INTR) != 0) ask_for_sync();
    // What an earlier dump, given up, still says is old.
    const bool answers = (message.nlmsg_flags & NLM_F_MULTI) != 0 || message.nlmsg_type == NLMSG_ERROR;
    if (answers && message.nlmsg_seq != netlink_->sequence()) return;
    switch (message.nlmsg_type) {
        case NLMSG_ERROR:  // such as EBUSY, while that one goes on
            dump_ = Dump::none;
            return ask_for_sync();
        case NLMSG_DONE:
            if (dump_ == Dump::addresses) {
                addresses_changed_ |= dumped_ != addresses_;
                addresses_ = dumped_;
                next_dump(Dump::neighbors);
            } else if (dump_ == Dump::neighbors) {
                neighbors_changed_ |= dumped_neighbors_ != neighbors_;
                neighbors_ = dumped_neighbors_;
                next_dump(Dump::routes4);
            } else if (dump_ == Dump::routes4) {
                next_dump(Dump::routes6);
            } else if (dump_ == Dump::routes6) {
                next_dump(Dump::none);
            }
            return;
        case RTM_NEWROUTE:
        case RTM_DELROUTE:
            return handle_route(message);
        case RTM_NEWADDR:
        case RTM_DELADDR:
            return handle_address(message);
        case RTM_NEWNEIGH:
        case RTM_DELNEIGH:
            return handle_neighbor(message);
        case RTM_NEWLINK:
        case RTM_DELLINK:
            return handle_link(message);
        default:
            return;
    }
}

// False: it leads over something that is no twin.
bool RouteMonitor::read_hop(std::uint8_t family, const void* gateway, std::uint8_t gateway_family, int ifindex,
                            unsigned weight, KernelRoute& route) {
    const auto twin = interfaces_.twins.find(ifindex);
    if (twin == interfaces_.twins.end()) return false;
    FedVia via{twin->second, {}, static_cast<std::uint16_t>(std::clamp(weight, 1u, 256u))};
    if (gateway != nullptr) via.address = address_of(gateway_family != 0 ? gateway_family : family, gateway);
    route.via.push_back(via);
    return true;
}

void RouteMonitor::handle_route(const nlmsghdr& message) {
    const auto& body = *static_cast<const rtmsg*>(mnl_nlmsg_get_payload(&message));
    if (body.rtm_family != AF_INET && body.rtm_family != AF_INET6) return;
    if ((body.rtm_flags & RTM_F_CLONED) != 0 || body.rtm_src_len != 0 || body.rtm_tos != 0) return;
    if (!is_taken(body.rtm_protocol)) return;
    std::array<const nlattr*, RTA_MAX + 1> attributes{};
    collect(message, sizeof(rtmsg), attributes);
    const auto number = [&](unsigned type) {
        return attributes[type] != nullptr ? mnl_attr_get_u32(attributes[type]) : 0u;
    };
    const std::uint32_t table = attributes[RTA_TABLE] != nullptr ? number(RTA_TABLE) : body.rtm_table;
    if (table != RT_TABLE_MAIN) return;

    KernelRoute route;
    route.metric = number(RTA_PRIORITY);
    route.prefix.family = body.rtm_family == AF_INET ? net::Family::ip4 : net::Family::ip6;
    route.prefix.length = body.rtm_dst_len;
    if (attributes[RTA_DST] != nullptr) {
        route.prefix.address = address_of(body.rtm_family, mnl_attr_get_payload(attributes[RTA_DST]));
    } else if (body.rtm_family == AF_INET) {
        route.prefix.address = net::Address::from_v4(0);
    }
    const auto via_of = [](const nlattr* via) { return static_cast<const rtvia*>(mnl_attr_get_payload(via)); };
    switch (body.rtm_type) {
        case RTN_UNICAST:
            break;
        case RTN_BLACKHOLE:
        case RTN_UNREACHABLE:
        case RTN_PROHIBIT:
            return message.nlmsg_type == RTM_NEWROUTE ? routes_.set(route) : routes_.withdraw(route);
        default:
            return;  // local, broadcast, multicast
    }
    bool ours = true;
    if (const nlattr* hops = attributes[RTA_MULTIPATH]; hops != nullptr) {
        auto left = static_cast<int>(mnl_attr_get_payload_len(hops));
        for (auto* hop = static_cast<rtnexthop*>(mnl_attr_get_payload(hops)); RTNH_OK(hop, left);
             left -= static_cast<int>(NLMSG_ALIGN(hop->rtnh_len)), hop = RTNH_NEXT(hop)) {
            const void* gateway = nullptr;
            std::uint8_t family = 0;
            auto rest = static_cast<int>(hop->rtnh_len - sizeof(rtnexthop));
            for (const auto* attribute = reinterpret_cast<const nlattr*>(RTNH_DATA(hop)); mnl_attr_ok(attribute, rest);
                 rest -= static_cast<int>(MNL_ALIGN(attribute->nla_len)), attribute = mnl_attr_next(attribute)) {
                if (mnl_attr_get_type(attribute) == RTA_GATEWAY) gateway = mnl_attr_get_payload(attribute);
                if (mnl_attr_get_type(attribute) != RTA_VIA) continue;
                gateway = via_of(attribute)->rtvia_addr;
                family = static_cast<std::uint8_t>(via_of(attribute)->rtvia_family);
            }
            ours &= read_hop(body.rtm_family, gateway, family, hop->rtnh_ifindex, hop->rtnh_hops + 1u, route);
        }
    } else {
        const void* gateway =
            attributes[RTA_GATEWAY] != nullptr ? mnl_attr_get_payload(attributes[RTA_GATEWAY]) : nullptr;
        std::uint8_t family = 0;
        if (attributes[RTA_VIA] != nullptr) {
            gateway = via_of(attributes[RTA_VIA])->rtvia_addr;
            family = static_cast<std::uint8_t>(via_of(attributes[RTA_VIA])->rtvia_family);
        }
        ours = read_hop(body.rtm_family, gateway, family, static_cast<int>(number(RTA_OIF)), 1, route);
    }
    // A route of which a part leads elsewhere is in force with the part that we can serve, if there is one.
    if (!ours) ++counters_.foreign;
    if (route.via.empty()) return;
    if (message.nlmsg_type == RTM_NEWROUTE) {
        routes_.set(route);
    } else {
        routes_.withdraw(route);
    }
}

void RouteMonitor::handle_address(const nlmsghdr& message) {
    const auto& body = *static_cast<const ifaddrmsg*>(mnl_nlmsg_get_payload(&message));
    // IPv4 routes that go with it are not told.
    if (message.nlmsg_type == RTM_DELADDR) ask_for_sync();
    if (body.ifa_scope != RT_SCOPE_UNIVERSE || (body.ifa_family != AF_INET && body.ifa_family != AF_INET6)) return;
    const auto ifindex = static_cast<int>(body.ifa_index);
    const auto twin = interfaces_.twins.find(ifindex);
    const bool on_link = twin != interfaces_.twins.end();
    if (!on_link && !is_loopback(ifindex)) return;
    std::array<const nlattr*, IFA_MAX + 1> attributes{};
    collect(message, sizeof(ifaddrmsg), attributes);
    const nlattr* bytes = attributes[IFA_LOCAL] != nullptr ? attributes[IFA_LOCAL] : attributes[IFA_ADDRESS];
    if (bytes == nullptr) return;
    const Address address{on_link ? twin->second : pipeline::kNoInterface,
                          address_of(body.ifa_family, mnl_attr_get_payload(bytes)), body.ifa_prefixlen};
    auto& to = dump_ == Dump::addresses && (message.nlmsg_flags & NLM_F_MULTI) != 0 ? dumped_ : addresses_;
    const auto at = std::find(to.begin(), to.end(), address);
    if (message.nlmsg_type == RTM_NEWADDR && at == to.end()) to.push_back(address);
    if (message.nlmsg_type == RTM_DELADDR && at != to.end()) to.erase(at);
    addresses_changed_ |= &to == &addresses_;
}

void RouteMonitor::handle_neighbor(const nlmsghdr& message) {
    const auto& body = *static_cast<const ndmsg*>(mnl_nlmsg_get_payload(&message));
    if (body.ndm_family != AF_INET && body.ndm_family != AF_INET6) return;
    const auto twin = interfaces_.twins.find(body.ndm_ifindex);
    if (twin == interfaces_.twins.end() || (body.ndm_flags & NTF_PROXY) != 0) return;
    std::array<const nlattr*, NDA_MAX + 1> attributes{};
    collect(message, sizeof(ndmsg), attributes);
    if (attributes[NDA_DST] == nullptr) return;
    const std::pair who{twin->second, address_of(body.ndm_family, mnl_attr_get_payload(attributes[NDA_DST]))};
    net::Mac mac;
    const nlattr* link_layer = attributes[NDA_LLADDR];
    const bool has_mac = link_layer != nullptr && mnl_attr_get_payload_len(link_layer) == mac.bytes.size();
    if (has_mac) std::memcpy(mac.bytes.data(), mnl_attr_get_payload(link_layer), mac.bytes.size());
    const bool there = message.nlmsg_type == RTM_NEWNEIGH && has_mac && (mac.bytes[0] & 1) == 0 && mac != kWireMac;
    const bool stays = (body.ndm_state & NUD_PERMANENT) != 0 || (body.ndm_flags & NTF_EXT_LEARNED) != 0;
    const bool dumped = dump_ == Dump::neighbors && (message.nlmsg_flags & NLM_F_MULTI) != 0;
    auto& to = dumped ? dumped_neighbors_ : neighbors_;
    if (there && stays) {
        if (to.size() >= kMostNeighbors && !to.contains(who)) {
            ++counters_.neighbors_refused;
            return;
        }
        const bool differs = std::exchange(to[who], mac) != mac;
        neighbors_changed_ |= !dumped && differs;
        return;
    }
    neighbors_changed_ |= to.erase(who) != 0 && !dumped;
    constexpr unsigned kKnown = NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE;
    if (there && !dumped && (body.ndm_state & kKnown) != 0 && heard_.size() < kMostNeighbors)
        heard_.push_back({who.first, who.second, mac});
}

std::vector<KernelNeighbor> RouteMonitor::take_neighbors() {
    neighbors_changed_ = false;
    std::vector<KernelNeighbor> all;
    for (const auto& [who, mac] : neighbors_) all.push_back({who.first, who.second, mac});
    return all;
}

void RouteMonitor::handle_link(const nlmsghdr& message) {
    const auto& body = *static_cast<const ifinfomsg*>(mnl_nlmsg_get_payload(&message));
    const bool down = message.nlmsg_type == RTM_DELLINK || (body.ifi_flags & IFF_UP) == 0;
    if (down && (interfaces_.twins.contains(body.ifi_index) || is_loopback(body.ifi_index))) ask_for_sync();
}

std::vector<RouteMonitor::Address> RouteMonitor::take_addresses() {
    addresses_changed_ = false;
    return addresses_;
}

}  // namespace cachewire::control
