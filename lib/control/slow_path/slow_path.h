#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The control plane's end of the punt queues: ARP and neighbor discovery, packets that wait for a neighbor, ICMP. Runs
// on the main lcore, in the control loop, which polls it often; a worker never waits for it.
//
//   punt queue --> Resolver  (ARP, ND)      --> NeighborTable --> Publish: next hops of a new snapshot
//              --> HoldQueue (no_neighbor)  <-- bound, failed --> the worker: retry, drop
//              --> Answers   (echo, errors) --> route_out     --> the worker: transmit
//
// A neighbor's MAC address is published before the packets that wait for it are given back, and a worker looks for
// packets before it takes its snapshot, so they find their way at once.
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "config/config.h"
#include "control/kernel/route_monitor.h"
#include "control/registry.h"
#include "control/slow_path/answers.h"
#include "control/slow_path/frame_sender.h"
#include "control/slow_path/hold_queue.h"
#include "control/slow_path/neighbor_table.h"
#include "control/slow_path/own_interfaces.h"
#include "control/slow_path/resolver.h"
#include "pipeline/snapshot.h"

namespace cachewire::control {

// nullopt: it has none any more; `failed`: and it was asked for.
struct NeighborChange {
    NeighborKey key;
    std::optional<net::Mac> mac;
    bool failed = false;
};

struct SlowPathCounters {
    std::uint64_t held = 0;         // packets that began to wait
    std::uint64_t released = 0;     // and went on
    std::uint64_t gave_up = 0;      // and were dropped: no answer, no room
    std::uint64_t no_way_back = 0;  // answers of ours, or the kernel's packets, without a route
    std::uint64_t to_kernel = 0, from_kernel = 0;
    std::uint64_t kernel_refused = 0;  // its interface is down, or has no twin any more
};

class SlowPath {
  public:
    struct Worker {
        pipeline::PuntRing* punted;
        pipeline::ReturnRing* returns;
    };
    struct Hooks {
        std::function<const pipeline::Snapshot&()> snapshot;  // the published one
        // What is known of a neighbor now, for the next hop that it is. It need not be published at once ...
        std::function<void(const NeighborChange&)> change;
        // ... and this says whether its next hop forwards in the published snapshot.
        std::function<bool(const NeighborKey&)> forwards;
        // The longest route to it that is no host route leads elsewhere than to its link.
        std::function<bool(const NeighborKey&)> is_elsewhere;
        // Ethernet header and what follows it to the kernel's twin of an interface. False: it has none, or did not take
        // it.
        std::function<bool(std::uint16_t interface, std::span<const std::uint8_t> header, const rte_mbuf* rest)>
            to_twin;
    };

    SlowPath(std::vector<Worker> workers, rte_mempool* pool, Hooks hooks);
    ~SlowPath();
    SlowPath(const SlowPath&) = delete;
    SlowPath& operator=(const SlowPath&) = delete;

    // After each publication of a configuration, or of a port that went, came back or has another address. Interfaces
    // that are new or have changed are announced to their links, and again two seconds later (RFC 5227 3).
    // `is_link`: somebody may be there to hear it, by port index.
    void configure(const config::Config& config, const Registry& registry, const std::vector<bool>& is_link,
                   std::uint64_t now_ms);
    // Routes have changed: a neighbor's host route must not stand in front of one that leads elsewhere. Looked at
    // within a second or so, some neighbors a turn.
    void recheck_host_routes() { recheck_wanted_ = true; }
    // One turn: what the workers have punted, what is due. Returns how many packets that were. `changing`:
    // `is_elsewhere` can't be asked now, because somebody is building.
    enum class Routes { settled, changing };
    unsigned poll(std::uint64_t now_ms, Routes routes = Routes::settled);
    // A frame that the kernel has sent by its twin of an interface.
    void from_twin(std::uint16_t interface, std::span<const std::uint8_t> frame);
    // Gateways of the kernel's routes, all of them: asked for and kept as the configuration's are.
    void set_kernel_gateways(const std::vector<std::pair<std::uint16_t, net::Address>>& gateways, std::uint64_t now_ms);
    // Neighbors of the twins' that stay as they are, all of them: as the configuration's static ones, behind those.
    void set_kernel_neighbors(const std::vector<KernelNeighbor>& neighbors, std::uint64_t now_ms);
    // Of one that may change: as an unsolicited word from it.
    void hear_kernel_neighbor(const KernelNeighbor& neighbor, std::uint64_t now_ms);
    // What the kernel's interfaces have beside the configured addresses: answered for as those are.
    void set_kernel_addresses(const std::map<std::uint16_t, std::vector<config::InterfaceAddress>>& addresses);
    // Nothing waits from now on, and what does is dropped: before the workers drain.
    void close() { closing_ = true; }
    // Learned neighbors of a tenant (nullopt: of all) are forgotten and asked for anew. Returns how many.
    std::size_t flush(std::optional<std::uint16_t> tenant, std::uint64_t now_ms);

    [[nodiscard]] const NeighborTable& neighbors() const noexcept { return table_; }
    [[nodiscard]] const OwnInterfaces& interfaces() const noexcept { return interfaces_; }
    [[nodiscard]] const SlowPathCounters& counters() const noexcept { return counters_; }
    [[nodiscard]] const ResolverCounters& resolver() const noexcept { return resolver_.counters(); }
    [[nodiscard]] const AnswerCounters& answers() const noexcept { return answers_.counters(); }
    [[nodiscard]] std::uint64_t refused() const noexcept { return sender_.refused(); }
    [[nodiscard]] std::size_t waiting() const noexcept { return holds_.size(); }

  private:
    struct Bound {
        NeighborKey key;
        std::uint64_t since_ms;
    };
    struct Announcement {
        std::uint64_t due_ms;
        std::uint16_t interface;
    };

    unsigned take_punted(unsigned worker);
    void handle(const pipeline::PuntRecord& record, unsigned worker);
    void handle_resolution(const pipeline::PuntRecord& record);
    void handle_echo(const pipeline::PuntRecord& record, unsigned worker);
    void handle_error(const pipeline::PuntRecord& record, unsigned worker);
    void handle_for_twin(const pipeline::PuntRecord& record, unsigned worker);
    [[nodiscard]] std::optional<std::uint16_t> twin_for(const pipeline::PuntRecord& record,
                                                        const net::Address& destination) const;
    void answer_twin(const OwnInterface& own, std::uint16_t ether_type, std::span<const std::uint8_t> payload);
    void send_on_link(rte_mbuf* mbuf, const net::Address& to, const pipeline::PuntRecord& about, unsigned worker);
    void wait_for_neighbor(const pipeline::PuntRecord& record, unsigned worker);
    void hold(const NeighborKey& key, const Held& held);
    void release(const Held& held);
    void give_up(const Held& held, bool tell);
    void send_datagram(std::span<const std::uint8_t> datagram, const pipeline::PuntRecord& about, unsigned worker);
    // Takes the mbuf, which begins with the IP header.
    void route_out(rte_mbuf* mbuf, const pipeline::PuntRecord& about, unsigned worker);
    void want_gateways();
    void settle_permanent();
    [[nodiscard]] std::optional<NeighborKey> link_key(const KernelNeighbor& neighbor) const;
    void act_on_neighbors();
    void release_bound();
    [[nodiscard]] bool is_published(const NeighborKey& key) const;
    void recheck_some();
    void recheck(const NeighborKey& key, const Neighbor& neighbor);
    [[nodiscard]] bool is_on_link(const NeighborKey& key) const;
    [[nodiscard]] bool is_configured(const NeighborKey& key) const { return configured_neighbors_.contains(key); }
    void watch(const NeighborKey& key);
    void doubt_behind_new_links(const std::vector<OwnInterface>& before);
    void announce_changed(const std::vector<OwnInterface>& before, const std::vector<bool>& is_link);
    void announce_due();
    [[nodiscard]] const route::NextHop* next_hop_towards(std::uint16_t tenant, const net::Address& to) const;
    std::span<const std::uint8_t> read(const pipeline::PuntRecord& record, std::uint32_t from, std::uint32_t bytes);

    std::vector<Worker> workers_;
    Hooks hooks_;
    std::uint64_t now_ms_ = 0;
    bool closing_ = false;
    OwnInterfaces interfaces_;
    NeighborTable table_;
    HoldQueue holds_;
    FrameSender sender_;
    Resolver resolver_;
    Answers answers_;
    SlowPathCounters counters_;
    std::set<NeighborKey> configured_gateways_, kernel_gateways_;
    std::map<NeighborKey, net::Mac> configured_neighbors_;
    std::vector<KernelNeighbor> kernel_neighbors_;
    std::vector<Bound> bound_;  // what waits for these goes on once they are published
    bool recheck_wanted_ = false;
    std::uint64_t next_recheck_ms_ = 0;
    std::optional<NeighborKey> rechecked_;  // so far, while a pass goes on
    std::vector<Announcement> announcements_;
    std::array<pipeline::Meter, pipeline::kMaxPorts> unreachable_meters_{};
    std::array<std::uint8_t, Answers::kQuoteBytes> scratch_{};
};

}  // namespace cachewire::control
