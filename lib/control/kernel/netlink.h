#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// rtnetlink as this program speaks it: a request with an acknowledgement, and what comes in by itself.
#include <cstdint>
#include <functional>
#include <span>

#include "net/prefix.h"

struct mnl_socket;
struct nlmsghdr;

namespace cachewire::control {

class Netlink {
  public:
    // In the network namespace that the thread is in. `groups`: RTNLGRP_ numbers. Throws base::MachineError.
    explicit Netlink(std::span<const unsigned> groups);
    ~Netlink();
    Netlink(const Netlink&) = delete;
    Netlink& operator=(const Netlink&) = delete;

    [[nodiscard]] int fd() const noexcept;

    // Waits for the acknowledgement: 0, or errno. Only on a socket without groups.
    int change(nlmsghdr* request);
    int set_address(bool add, int ifindex, const net::Address& address, std::uint8_t length);

    // Asks for everything of a type (RTM_GETROUTE, ...) and family. False: not now.
    bool dump(std::uint16_t type, std::uint8_t family);
    // Of the last request: its answers carry it.
    [[nodiscard]] std::uint32_t sequence() const noexcept { return sequence_; }
    // Reads at most `reads` datagrams, each message to `on_message`. A dump's end is NLMSG_DONE.
    enum class Read { idle, more, overrun };
    Read read(unsigned reads, const std::function<void(const nlmsghdr&)>& on_message);

  private:
    mnl_socket* socket_;
    std::uint32_t sequence_ = 0;
};

// An address attribute's bytes.
net::Address address_of(std::uint8_t family, const void* bytes) noexcept;

}  // namespace cachewire::control
