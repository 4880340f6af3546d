#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The routes that one network namespace's kernel has, as far as they lead over twins, and what of them is in force: of
// several for one prefix the one with the least metric, as the kernel has it. Pure: messages come in as values, changes
// go out by a callback.
//
// A resync reads the whole table again between begin_sync() and end_sync(); what was not seen in between has gone. The
// kernel does not say when an IPv4 route goes with its interface or address, so those lead to one too.
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "control/route_feed.h"

namespace cachewire::control {

struct KernelRoute {
    net::Prefix prefix;
    std::uint32_t metric = 0;
    std::vector<FedVia> via;  // none: it drops
    friend bool operator==(const KernelRoute&, const KernelRoute&) = default;
};

class KernelRoutes {
  public:
    // nullptr: the prefix has no route any more.
    using Changed = std::function<void(const net::Prefix& prefix, const std::vector<FedVia>* via)>;
    using Gateway = std::pair<std::uint16_t, net::Address>;  // interface and address

    explicit KernelRoutes(Changed changed) : changed_(std::move(changed)) {}

    void set(const KernelRoute& route);
    // A withdrawal that names one of several next hops (IPv6) takes that one.
    void withdraw(const KernelRoute& route);
    void begin_sync() noexcept { ++round_; }
    void end_sync();
    // All of them, as when no twin is left.
    void clear();

    [[nodiscard]] std::size_t size() const noexcept { return prefixes_.size(); }
    // Who is a gateway of any route; taking them says that they are no news any more.
    [[nodiscard]] bool gateways_changed() const noexcept { return gateways_changed_; }
    std::vector<Gateway> take_gateways();

  private:
    struct Entry {
        std::uint32_t metric;
        std::uint32_t round;  // seen last
        std::vector<FedVia> via;
    };
    using Entries = std::vector<Entry>;  // by metric; nearly always one
    using Prefixes = std::map<net::Prefix, Entries>;

    void count(const std::vector<FedVia>& via, int by);
    Prefixes::iterator drop(Prefixes::iterator at, std::size_t index);

    Changed changed_;
    Prefixes prefixes_;
    std::map<Gateway, std::uint32_t> gateways_;
    bool gateways_changed_ = false;
    std::uint32_t round_ = 0;
};

}  // namespace cachewire::control
