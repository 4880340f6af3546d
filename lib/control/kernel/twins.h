#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The kernel's side of interfaces with `kernel:`: one TAP each, and of each network namespace that has some what its
// kernel learns. Control thread only: workers punt what is for a twin, and what a twin sends leaves by a worker's
// return queue (slow_path/twin_traffic.cc).
//
//   begin() makes what a new configuration adds, and may refuse; commit() takes it over and lets go of what went.
//   Twins that stay keep their TAP, and routes that came by them stay in force over every reload.
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/kernel/route_monitor.h"
#include "control/kernel/tap.h"
#include "control/registry.h"

namespace cachewire::control {

struct TwinCounters {
    std::uint64_t to_kernel = 0, from_kernel = 0, refused = 0;  // refused: the kernel did not take it
};

class Twins {
  public:
    struct Hooks {
        // nullptr: withdrawn.
        std::function<void(std::uint16_t tenant, const net::Prefix& prefix, const std::vector<FedVia>* via)> route;
        std::function<void(std::uint16_t interface, std::span<const std::uint8_t> frame)> frame;
        // All gateways of kernel routes.
        std::function<void(const std::vector<KernelRoutes::Gateway>& gateways)> gateways;
        // What the kernel's interfaces have beside the configured addresses, by interface.
        std::function<void(const std::map<std::uint16_t, std::vector<config::InterfaceAddress>>& addresses)> addresses;
        // All neighbors that stay in the kernel as they are, and those that it was told of for a time.
        std::function<void(const std::vector<KernelNeighbor>& neighbors)> neighbors;
        std::function<void(const KernelNeighbor& neighbor)> heard;
    };
    explicit Twins(Hooks hooks);
    ~Twins();
    Twins(const Twins&) = delete;
    Twins& operator=(const Twins&) = delete;

    // Interface name -> its new TAP.
    using Pending = std::map<std::string, std::unique_ptr<Tap>>;
    // `macs`: by port index in the configuration; zero where it is not known yet, and commit() sets it. Throws
    // base::MachineError.
    [[nodiscard]] Pending begin(const config::Config& config, const std::vector<net::Mac>& macs) const;
    // After publication.
    void commit(Pending pending, const config::Config& config, const Registry& registry,
                const pipeline::Snapshot& snapshot);

    // True: it has gone to the kernel. `header`: Ethernet; `mbuf`: what follows.
    bool deliver(std::uint16_t interface, std::span<const std::uint8_t> header, const rte_mbuf* mbuf);
    [[nodiscard]] bool has(std::uint16_t interface) const { return taps_.contains(interface); }

    // Readable when any twin or namespace has something.
    [[nodiscard]] int fd() const noexcept { return ready_; }
    // Frames and messages that are there, a bounded number, and once a second whether all twins are there still: those
    // that somebody deleted, or whose namespace went, are made anew. Returns how many frames.
    unsigned poll(std::uint64_t now_ms);

    struct Twin {
        std::string name;
        std::unique_ptr<Tap> tap;
        std::uint16_t tenant = 0;
        std::vector<config::InterfaceAddress> configured;
        TwinCounters counters;
        bool loopback = false;  // its interface is on no link
        Tap::Settings settings;
        bool lost = false;        // deleted under us, and not back yet
        bool complained = false;  // of why not
    };
    struct Space {
        std::unique_ptr<RouteMonitor> monitor;
        std::uint16_t tenant = 0;
        std::uint64_t identity = 0;
        std::map<net::Prefix, std::vector<FedVia>> learned;  // of addresses
        std::vector<KernelNeighbor> neighbors;
    };
    [[nodiscard]] const std::map<std::uint16_t, Twin>& all() const noexcept { return taps_; }
    [[nodiscard]] const std::map<std::string, Space>& spaces() const noexcept { return spaces_; }

  private:
    void watch_spaces();
    void register_all();
    void tell_gateways();
    void tell_neighbors();
    void lose(Twin& twin, const char* why);
    void look_after(std::uint64_t now_ms);
    void make_anew(Twin& twin);
    unsigned read_frames(std::uint16_t interface, Twin& twin);
    void drop_space(Space& space);
    void learn_addresses(Space& space);
    [[nodiscard]] bool is_configured(std::uint16_t tenant, const net::Address& address) const;

    Hooks hooks_;
    int ready_ = -1;                      // epoll: of many twins few have something
    std::map<std::uint16_t, Twin> taps_;  // by interface index
    std::map<std::string, Space> spaces_;
    std::map<std::uint16_t, std::vector<config::InterfaceAddress>> learned_;  // by interface
    std::uint64_t next_look_ms_ = 0;
    std::array<std::uint8_t, 65536> frame_;
};

}  // namespace cachewire::control
