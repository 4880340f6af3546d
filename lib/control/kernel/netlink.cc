// SPDX-License-Identifier: BSD-3-Clause
#include "control/kernel/netlink.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "base/error.h"

namespace cachewire::control {

namespace {

// What a full table's changes take until the control loop comes round. Beyond it the kernel says ENOBUFS.
constexpr int kReceiveBytes = 16 << 20;
constexpr std::size_t kDatagramBytes = 32768;  // NLMSG_GOODSIZE is at most a page; dumps grow up to this

}  // namespace

Netlink::Netlink(std::span<const unsigned> groups)
    : socket_(mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | (groups.empty() ? 0 : SOCK_NONBLOCK))) {
    if (socket_ == nullptr) base::check(-errno, "netlink socket");
    if (mnl_socket_bind(socket_, 0, MNL_SOCKET_AUTOPID) != 0) {
        const int error = errno;
        mnl_socket_close(socket_);
        base::check(-error, "netlink bind");
    }
    if (groups.empty()) return;
    setsockopt(fd(), SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBytes, sizeof kReceiveBytes);
    for (unsigned group : groups) mnl_socket_setsockopt(socket_, NETLINK_ADD_MEMBERSHIP, &group, sizeof group);
}

Netlink::~Netlink() { mnl_socket_close(socket_); }

int Netlink::fd() const noexcept { return mnl_socket_get_fd(socket_); }

int Netlink::change(nlmsghdr* request) {
    request->nlmsg_seq = ++sequence_;
    request->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
    if (mnl_socket_sendto(socket_, request, request->nlmsg_len) < 0) return errno;
    std::array<char, 8192> answer;
    for (;;) {
        const ssize_t size = mnl_socket_recvfrom(socket_, answer.data(), answer.size());
        if (size < 0) return errno;
        const int rc = mnl_cb_run(answer.data(), static_cast<std::size_t>(size), sequence_,
                                  mnl_socket_get_portid(socket_), nullptr, nullptr);
        if (rc < 0) return errno;
        if (rc == MNL_CB_STOP) return 0;
    }
}

int Netlink::set_address(bool add, int ifindex, const net::Address& address, std::uint8_t length) {
    std::array<char, 256> buffer{};
    nlmsghdr* request = mnl_nlmsg_put_header(buffer.data());
    request->nlmsg_type = add ? RTM_NEWADDR : RTM_DELADDR;
    if (add) request->nlmsg_flags = NLM_F_CREATE | NLM_F_REPLACE;
    auto* body = static_cast<ifaddrmsg*>(mnl_nlmsg_put_extra_header(request, sizeof(ifaddrmsg)));
    const bool v4 = address.is_v4();
    body->ifa_family = v4 ? AF_INET : AF_INET6;
    body->ifa_prefixlen = length;
    // Duplicate address detection is cachewire's, on the wire.
    body->ifa_flags = v4 ? 0 : IFA_F_NODAD;
    body->ifa_scope = RT_SCOPE_UNIVERSE;
    body->ifa_index = static_cast<unsigned>(ifindex);
    const std::uint8_t* bytes = address.bytes.data() + (v4 ? 12 : 0);
    const std::size_t size = v4 ? 4 : 16;
    mnl_attr_put(request, IFA_LOCAL, size, bytes);
    mnl_attr_put(request, IFA_ADDRESS, size, bytes);
    return change(request);
}

bool Netlink::dump(std::uint16_t type, std::uint8_t family) {
    std::array<char, 256> buffer{};
    nlmsghdr* request = mnl_nlmsg_put_header(buffer.data());
    request->nlmsg_type = type;
    request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    request->nlmsg_seq = ++sequence_;
    // rtmsg, ifaddrmsg and ndmsg begin with the family; the kernel wants the whole of the type's struct.
    auto* body = static_cast<std::uint8_t*>(mnl_nlmsg_put_extra_header(request, sizeof(rtmsg)));
    body[0] = family;
    return mnl_socket_sendto(socket_, request, request->nlmsg_len) >= 0;
}

Netlink::Read Netlink::read(unsigned reads, const std::function<void(const nlmsghdr&)>& on_message) {
    std::array<char, kDatagramBytes> buffer;
    for (unsigned i = 0; i < reads; ++i) {
        const ssize_t size = mnl_socket_recvfrom(socket_, buffer.data(), buffer.size());
        if (size < 0) return errno == ENOBUFS ? Read::overrun : Read::idle;
        auto left = static_cast<int>(size);
        for (const auto* message = reinterpret_cast<const nlmsghdr*>(buffer.data()); mnl_nlmsg_ok(message, left);
             message = mnl_nlmsg_next(message, &left))
            on_message(*message);
    }
    return Read::more;
}

net::Address address_of(std::uint8_t family, const void* bytes) noexcept {
    net::Address address{};
    if (family == AF_INET) {
        std::uint32_t word;
        std::memcpy(&word, bytes, sizeof word);
        return net::Address::from_v4(__builtin_bswap32(word));
    }
    std::memcpy(address.bytes.data(), bytes, 16);
    return address;
}

}  // namespace cachewire::control
