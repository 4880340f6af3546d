#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What the kernel of one network namespace learns, by netlink: routes over twins (of BIRD, FRR, `ip route`), and
// addresses that somebody gave the twins or `lo` there. Control thread only; each turn reads a bounded part.
//
//   start, overrun, a link or address that went --> dump of addresses, IPv4 routes, IPv6 routes --> end_sync
//   between these: changes as they come
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/kernel/kernel_routes.h"
#include "control/kernel/netlink.h"

namespace cachewire::control {

class RouteMonitor {
  public:
    struct Address {
        std::uint16_t interface;  // of the twin; pipeline::kNoInterface: on `lo`
        net::Address address;
        std::uint8_t length;
        friend auto operator<=>(const Address&, const Address&) = default;
    };

    // Throws base::MachineError.
    RouteMonitor(const std::string& netns, KernelRoutes::Changed changed);

    [[nodiscard]] int fd() const noexcept { return netlink_->fd(); }
    // Which interface each twin is, by its ifindex. What the table leads over others is not taken.
    void set_twins(std::map<int, std::uint16_t> twins);
    // Asks for what is wanted and reads what is there. True: there may be more.
    bool poll();
    [[nodiscard]] bool wants_turn() const noexcept { return wants_sync_ && dump_ == Dump::none; }

    [[nodiscard]] KernelRoutes& routes() noexcept { return routes_; }
    [[nodiscard]] const KernelRoutes& routes() const noexcept { return routes_; }
    // After a dump, and whenever one came.
    [[nodiscard]] bool addresses_changed() const noexcept { return addresses_changed_; }
    std::vector<Address> take_addresses();

    struct Counters {
        std::uint64_t messages = 0, overruns = 0, syncs = 0, foreign = 0;  // foreign: routes over what is no twin
    };
    [[nodiscard]] const Counters& counters() const noexcept { return counters_; }

  private:
    enum class Dump { none, addresses, routes4, routes6 };

    void ask_for_sync() noexcept { wants_sync_ = true; }
    void next_dump(Dump what);
    void handle(const nlmsghdr& message);
    void handle_route(const nlmsghdr& message);
    void handle_address(const nlmsghdr& message);
    void handle_link(const nlmsghdr& message);
    bool read_hop(std::uint8_t family, const void* gateway, std::uint8_t gateway_family, int ifindex, unsigned weight,
                  KernelRoute& route);

    std::unique_ptr<Netlink> netlink_;
    KernelRoutes routes_;
    std::map<int, std::uint16_t> twins_;
    std::vector<Address> addresses_, dumped_;
    bool addresses_changed_ = false;
    bool wants_sync_ = true;
    Dump dump_ = Dump::none;
    Counters counters_;
};

}  // namespace cachewire::control
