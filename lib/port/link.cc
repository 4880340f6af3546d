// SPDX-License-Identifier: BSD-3-Clause
#include "port/link.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>
#include <thread>

#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

namespace cachewire::port {

namespace {

constexpr unsigned kLowerUp = 1u << 16;  // IFF_LOWER_UP: a carrier, at once; IFF_RUNNING follows up to a second later

int open_netlink() noexcept { return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE); }

int open_events() noexcept {
    const int fd = open_netlink();
    sockaddr_nl address{};
    address.nl_family = AF_NETLINK;
    address.nl_groups = RTMGRP_LINK;
    if (fd >= 0 && bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

bool is_up(unsigned flags) noexcept { return (flags & IFF_UP) != 0 && (flags & kLowerUp) != 0; }

// Attributes as they stand in a message: length and type, then the payload, each on four bytes.
template <class Use>
void for_each_attribute(std::span<const char> bytes, Use&& use) {
    while (bytes.size() >= sizeof(rtattr)) {
        rtattr head;
        std::memcpy(&head, bytes.data(), sizeof head);
        if (head.rta_len < sizeof head || head.rta_len > bytes.size()) return;
        use(static_cast<unsigned>(head.rta_type & NLA_TYPE_MASK),
            bytes.subspan(sizeof head, head.rta_len - sizeof head));
        bytes = bytes.subspan(std::min<std::size_t>(bytes.size(), RTA_ALIGN(head.rta_len)));
    }
}

// The shorter of both: older kernels send a shorter structure.
template <class T>
T value_of(std::span<const char> payload) noexcept {
    T value{};
    std::memcpy(&value, payload.data(), std::min(payload.size(), sizeof value));
    return value;
}

void read_xdp(std::span<const char> nested, LinkFacts& facts) {
    for_each_attribute(nested, [&facts](unsigned type, std::span<const char> payload) {
        const bool is_program = type == IFLA_XDP_PROG_ID || type == IFLA_XDP_DRV_PROG_ID ||
                                type == IFLA_XDP_SKB_PROG_ID || type == IFLA_XDP_HW_PROG_ID;
        if (is_program && facts.xdp_program == 0) facts.xdp_program = value_of<std::uint32_t>(payload);
        if (type == IFLA_XDP_ATTACHED) facts.xdp_generic = value_of<std::uint8_t>(payload) == XDP_ATTACHED_SKB;
    });
}

std::optional<LinkFacts> parse(std::span<const char> message, std::uint32_t sequence) {
    nlmsghdr head{};
    if (message.size() < NLMSG_LENGTH(sizeof(ifinfomsg))) return std::nullopt;
    std::memcpy(&head, message.data(), sizeof head);
    if (head.nlmsg_seq != sequence || head.nlmsg_type != RTM_NEWLINK || head.nlmsg_len > message.size())
        return std::nullopt;
    const auto info = value_of<ifinfomsg>(message.subspan(NLMSG_HDRLEN));
    LinkFacts facts;
    facts.link = is_up(info.ifi_flags);
    const std::size_t attributes = NLMSG_SPACE(sizeof(ifinfomsg));
    for_each_attribute(message.subspan(attributes, head.nlmsg_len - attributes),
                       [&facts](unsigned type, std::span<const char> payload) {
                           if (type == IFLA_XDP) read_xdp(payload, facts);
                           if (type != IFLA_STATS64) return;
                           const auto stats = value_of<rtnl_link_stats64>(payload);
                           facts.rx_dropped = stats.rx_dropped;
                           facts.rx_missed = stats.rx_missed_errors;
                           facts.tx_dropped = stats.tx_dropped;
                       });
    return facts;
}

}  // namespace

LinkReader::LinkReader() : fd_(open_netlink()), events_(open_events()) {}

// A socket stays in the namespace that it was opened in. Another thread opens it: this one must never be left there.
LinkReader::LinkReader(int network_namespace) {
    std::thread([this, network_namespace] {
        if (setns(network_namespace, CLONE_NEWNET) != 0) return;
        fd_ = open_netlink();
        events_ = open_events();
    }).join();
}

LinkReader::~LinkReader() {
    if (fd_ >= 0) close(fd_);
    if (events_ >= 0) close(events_);
}

// An event holds one message, with the name and the flags that the interface had then.
bool LinkReader::was_away(const std::string& interface) noexcept {
    bool away = false;
    std::array<char, 16384> event;
    for (;;) {
        const ssize_t bytes = recv(events_, event.data(), event.size(), MSG_DONTWAIT);
        if (bytes < 0 && errno == ENOBUFS) away = true;
        if (bytes < 0 && errno != ENOBUFS) return away;
        const std::span<const char> message(event.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
        if (message.size() < NLMSG_SPACE(sizeof(ifinfomsg))) continue;
        if (is_up(value_of<ifinfomsg>(message.subspan(NLMSG_HDRLEN)).ifi_flags)) continue;
        for_each_attribute(
            message.subspan(NLMSG_SPACE(sizeof(ifinfomsg))), [&](unsigned type, std::span<const char> name) {
                if (type == IFLA_IFNAME)
                    away |= std::string_view(name.data(), strnlen(name.data(), name.size())) == interface;
            });
    }
}

std::optional<LinkFacts> LinkReader::read(const std::string& interface) noexcept {
    if (fd_ < 0 || interface.empty() || interface.size() >= IFNAMSIZ) return std::nullopt;
    struct {
        nlmsghdr head;
        ifinfomsg info;
        rtattr name_head;
        std::array<char, RTA_ALIGN(IFNAMSIZ)> name;
    } request{};
    request.head.nlmsg_type = RTM_GETLINK;
    request.head.nlmsg_flags = NLM_F_REQUEST;
    request.head.nlmsg_seq = ++sequence_;
    request.info.ifi_family = AF_UNSPEC;
    request.name_head.rta_type = IFLA_IFNAME;
    request.name_head.rta_len = static_cast<unsigned short>(RTA_LENGTH(interface.size() + 1));
    interface.copy(request.name.data(), request.name.size() - 1);
    request.head.nlmsg_len = NLMSG_LENGTH(sizeof request.info) + RTA_ALIGN(request.name_head.rta_len);
    if (send(fd_, &request, request.head.nlmsg_len, 0) < 0) return std::nullopt;
    // The kernel answers before send() returns, so nothing here waits. A veth with its peer takes 1.5 KiB.
    std::array<char, 16384> answer;
    for (;;) {
        const ssize_t bytes = recv(fd_, answer.data(), answer.size(), MSG_DONTWAIT);
        if (bytes <= 0) return std::nullopt;
        const std::span<const char> message(answer.data(), static_cast<std::size_t>(bytes));
        if (value_of<nlmsghdr>(message).nlmsg_seq == sequence_) return parse(message, sequence_);
    }
}

}  // namespace cachewire::port
