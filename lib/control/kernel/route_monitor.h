#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What the kernel of one network namespace learns, by netlink: routes over twins (of BIRD, FRR, `ip route`), addresses
// that somebody gave the twins or `lo` there, and neighbors that somebody entered. Control thread only; each turn reads
// a bounded part.
//
//   start, overrun, a link or address that went --> dump of addresses, neighbors, IPv4 routes, IPv6 routes --> end_sync
//   between these: changes as they come
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/kernel/kernel_routes.h"
#include "control/kernel/netlink.h"
#include "net/mac.h"

namespace cachewire::control {

// On a twin, as its kernel has it.
struct KernelNeighbor {
    std::uint16_t interface = 0;
    net::Address address{};
    net::Mac mac{};
    friend auto operator<=>(const KernelNeighbor&, const KernelNeighbor&) = default;
};

class RouteMonitor {
  public:
    // More than the neighbor table holds of its own, and bounded: what is over it is not taken.
    static constexpr std::size_t kMostNeighbors = 8192;

    struct Address {
        std::uint16_t interface;  // of the twin; pipeline::kNoInterface: on `lo` or a loopback's
        net::Address address;
        std::uint8_t length;
        friend auto operator<=>(const Address&, const Address&) = default;
    };

    // Throws base::MachineError.
    RouteMonitor(const std::string& netns, KernelRoutes::Changed changed);

    [[nodiscard]] int fd() const noexcept { return netlink_->fd(); }
    // By ifindex: which interface each twin is, and the loopbacks' twins, which are as `lo` is. What the table leads
    // over others than the first is not taken.
    struct Interfaces {
        std::map<int, std::uint16_t> twins;
        std::set<int> loopbacks;
        friend bool operator==(const Interfaces&, const Interfaces&) = default;
    };
    void watch(Interfaces interfaces);
    // Asks for what is wanted and reads what is there. True: there may be more.
    bool poll();
    [[nodiscard]] bool wants_turn() const noexcept { return wants_sync_ && dump_ == Dump::none; }

    [[nodiscard]] KernelRoutes& routes() noexcept { return routes_; }
    [[nodiscard]] const KernelRoutes& routes() const noexcept { return routes_; }
    // After a dump, and whenever one came.
    [[nodiscard]] bool addresses_changed() const noexcept { return addresses_changed_; }
    std::vector<Address> take_addresses();

    // Those that the kernel keeps as they are: permanent, or a daemon's (NTF_EXT_LEARNED). What it learned itself it
    // has from us.
    [[nodiscard]] bool neighbors_changed() const noexcept { return neighbors_changed_; }
    std::vector<KernelNeighbor> take_neighbors();
    // Somebody entered these for a time, `nud reachable` say.
    std::vector<KernelNeighbor> take_heard() { return std::exchange(heard_, {}); }

    struct Counters {
        std::uint64_t messages = 0, overruns = 0, syncs = 0, foreign = 0;  // foreign: routes over what is no twin
        std::uint64_t neighbors_refused = 0;                               // over kMostNeighbors
    };
    [[nodiscard]] const Counters& counters() const noexcept { return counters_; }

  private:
    enum class Dump { none, addresses, neighbors, routes4, routes6 };

    void ask_for_sync() noexcept { wants_sync_ = true; }
    void next_dump(Dump what);
    void handle(const nlmsghdr& message);
    void handle_route(const nlmsghdr& message);
    void handle_address(const nlmsghdr& message);
    void handle_neighbor(const nlmsghdr& message);
    void handle_link(const nlmsghdr& message);
    [[nodiscard]] bool is_loopback(int ifindex) const;
    bool read_hop(std::uint8_t family, const void* gateway, std::uint8_t gateway_family, int ifindex, unsigned weight,
                  KernelRoute& route);

    std::unique_ptr<Netlink> netlink_;
    KernelRoutes routes_;
    Interfaces interfaces_;
    std::vector<Address> addresses_, dumped_;
    std::map<std::pair<std::uint16_t, net::Address>, net::Mac> neighbors_, dumped_neighbors_;
    std::vector<KernelNeighbor> heard_;
    bool addresses_changed_ = false, neighbors_changed_ = false;
    bool wants_sync_ = true;
    Dump dump_ = Dump::none;
    Counters counters_;
};

}  // namespace cachewire::control
