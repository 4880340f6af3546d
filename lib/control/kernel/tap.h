#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// An interface's twin: a TAP in another network namespace, with the interface's addresses, MAC address and MTU. What
// the kernel sends there is read here, what is for it is written here, by the control thread. It goes with the object.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "config/config.h"
#include "net/mac.h"

struct rte_mbuf;

namespace cachewire::control {

// Of a loopback's twin: no port has one for it, and nobody but the twin's kernel sees it. Locally administered.
inline constexpr net::Mac kLoopbackMac{{0x02, 0x63, 0x77, 0x00, 0x00, 0x02}};

// Every neighbor, as the twins see it. Locally administered (IEEE 802c).
inline constexpr net::Mac kWireMac{{0x02, 0x63, 0x77, 0x00, 0x00, 0x01}};

class Tap {
  public:
    struct Settings {
        net::Mac mac;
        std::uint16_t mtu = 1500;
        std::vector<config::InterfaceAddress> addresses;
    };

    // Makes it and sets it up. Throws base::MachineError, and nothing is left behind.
    Tap(const config::KernelTwin& twin, const Settings& settings);
    ~Tap();
    Tap(const Tap&) = delete;
    Tap& operator=(const Tap&) = delete;

    // What differs; addresses that somebody else gave it stay. Throws base::MachineError.
    void change(const Settings& to);

    [[nodiscard]] int fd() const noexcept { return fd_; }
    [[nodiscard]] int ifindex() const noexcept { return ifindex_; }
    [[nodiscard]] const config::KernelTwin& twin() const noexcept { return twin_; }
    // Its interface goes, if it is still there; nothing is read or written any more.
    void close() noexcept;
    // The namespace is still the one of that name.
    [[nodiscard]] bool is_where_it_should_be() const noexcept;

    // A frame; false: the kernel did not take it (its interface is down). `mbuf`'s bytes follow `header`.
    bool write(std::span<const std::uint8_t> header, const rte_mbuf* mbuf = nullptr) noexcept;
    // The next frame into `out`; empty: none now.
    std::span<const std::uint8_t> read(std::span<std::uint8_t> out) noexcept;

  private:
    void make();
    void apply(const Settings& to);

    config::KernelTwin twin_;
    std::uint64_t netns_;
    int fd_ = -1;
    int ifindex_ = 0;
    Settings applied_{};
};

}  // namespace cachewire::control
