// SPDX-License-Identifier: BSD-3-Clause
#include "control/kernel/tap.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_tun.h>
#include <rte_mbuf.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/error.h"
#include "control/kernel/netlink.h"
#include "control/kernel/netns.h"

namespace cachewire::control {

namespace {

struct Socket {
    Socket() : fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}
    ~Socket() { close(fd); }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    int fd;
};

ifreq request_for(const std::string& name) {
    ifreq request{};
    name.copy(request.ifr_name, IFNAMSIZ - 1);
    return request;
}

[[noreturn]] void fail(const config::KernelTwin& twin, const char* what, int error) {
    const char* hint = error == EBUSY   ? "; somebody else has an interface of that name there"
                       : error == EPERM ? "; it takes CAP_NET_ADMIN"
                                        : "";
    throw base::MachineError(
        fmt::format("kernel twin {} in netns {}: {}: {}{}", twin.ifname, twin.netns, what, std::strerror(error), hint));
}

bool has(const std::vector<config::InterfaceAddress>& addresses, const config::InterfaceAddress& one) {
    return std::any_of(addresses.begin(), addresses.end(),
                       [&](const auto& other) { return other.address == one.address && other.prefix == one.prefix; });
}

}  // namespace

Tap::Tap(const config::KernelTwin& twin, const Settings& settings) : twin_(twin), netns_(netns_identity(twin.netns)) {
    const InNetns inside(twin_.netns);
    try {
        make();
        apply(settings);
    } catch (...) {
        close();
        throw;
    }
}

Tap::~Tap() { close(); }

void Tap::close() noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

void Tap::make() {
    fd_ = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd_ < 0) fail(twin_, "/dev/net/tun", errno);
    ifreq request = request_for(twin_.ifname);
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    if (ioctl(fd_, TUNSETIFF, &request) != 0) fail(twin_, "can't be made", errno);
    const Socket socket;
    request = request_for(twin_.ifname);
    if (ioctl(socket.fd, SIOCGIFINDEX, &request) != 0) fail(twin_, "has no index", errno);
    ifindex_ = request.ifr_ifindex;
}

bool Tap::is_where_it_should_be() const noexcept { return netns_identity(twin_.netns) == netns_; }

void Tap::change(const Settings& to) {
    const InNetns inside(twin_.netns);
    apply(to);
}

// The namespace is the thread's. Up first: IPv6 addresses want an interface that is.
void Tap::apply(const Settings& to) {
    const Socket socket;
    ifreq request = request_for(twin_.ifname);
    if (to.mac != applied_.mac) {
        request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
        std::copy(to.mac.bytes.begin(), to.mac.bytes.end(), request.ifr_hwaddr.sa_data);
        if (ioctl(socket.fd, SIOCSIFHWADDR, &request) != 0) fail(twin_, "its MAC address", errno);
        applied_.mac = to.mac;
    }
    request = request_for(twin_.ifname);
    request.ifr_mtu = to.mtu;
    if (ioctl(socket.fd, SIOCSIFMTU, &request) != 0) fail(twin_, "its MTU", errno);
    applied_.mtu = to.mtu;
    request = request_for(twin_.ifname);
    if (ioctl(socket.fd, SIOCGIFFLAGS, &request) != 0) fail(twin_, "its flags", errno);
    request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
    if (ioctl(socket.fd, SIOCSIFFLAGS, &request) != 0) fail(twin_, "up", errno);
    Netlink netlink({});
    const auto set = [&](bool add, const config::InterfaceAddress& one) {
        const int error = netlink.set_address(add, ifindex_, one.address, one.prefix.length);
        if (error != 0 && add) fail(twin_, ("address " + net::to_string(one.address)).c_str(), error);
    };
    const auto before = applied_.addresses;
    for (const auto& one : before)
        if (!has(to.addresses, one)) set(false, one);
    applied_.addresses.clear();
    for (const auto& one : to.addresses) {
        if (!has(before, one)) set(true, one);
        applied_.addresses.push_back(one);
    }
}

bool Tap::write(std::span<const std::uint8_t> header, const rte_mbuf* mbuf) noexcept {
    std::array<iovec, 64> parts;
    unsigned count = 0;
    parts[count++] = {const_cast<std::uint8_t*>(header.data()), header.size()};
    for (const rte_mbuf* segment = mbuf; segment != nullptr; segment = segment->next) {
        if (count == parts.size()) return false;
        parts[count++] = {rte_pktmbuf_mtod(segment, void*), segment->data_len};
    }
    return writev(fd_, parts.data(), static_cast<int>(count)) >= 0;
}

std::span<const std::uint8_t> Tap::read(std::span<std::uint8_t> out) noexcept {
    const ssize_t size = ::read(fd_, out.data(), out.size());
    return out.first(size > 0 ? static_cast<std::size_t>(size) : 0);
}

}  // namespace cachewire::control
