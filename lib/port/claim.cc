// SPDX-License-Identifier: BSD-3-Clause
#include "port/claim.h"

#include <cerrno>
#include <cstddef>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace cachewire::port {

namespace {

int open_local() noexcept { return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

// The process that listens there.
std::string owner(const sockaddr_un& address, socklen_t size) {
    const int wire = open_local();
    ucred peer{};
    socklen_t peer_size = sizeof peer;
    const bool known = connect(wire, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                       getsockopt(wire, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) == 0 && peer.pid != 0;
    close(wire);
    return known ? fmt::format("pid {}", peer.pid) : "its pid is not known";
}

}  // namespace

// Whoever can't open such a socket has no claim, and goes on: that is no reason not to forward.
InterfaceClaim::InterfaceClaim(unsigned interface_index) : fd_(open_local()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = fmt::format("cachewire/interface/{}", interface_index);
    name.copy(address.sun_path + 1, sizeof address.sun_path - 1);  // a zero in front: abstract (unix(7))
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (bind(fd_, reinterpret_cast<const sockaddr*>(&address), size) == 0) {
        listen(fd_, 128);  // nobody is answered: whoever connects reads our pid
    } else if (errno == EADDRINUSE) {
        holder_ = owner(address, size);
    }
}

InterfaceClaim::~InterfaceClaim() {
    if (fd_ >= 0) close(fd_);
}

}  // namespace cachewire::port
