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
#include <memory>
#include <optional>
#include <vector>

#include "config/config.h"
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
    std::uint64_t no_way_back = 0;  // answers of ours without a route
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
    // One turn: what the workers have punted, what is due. Returns how many packets that were.
    unsigned poll(std::uint64_t now_ms);
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
    void wait_for_neighbor(const pipeline::PuntRecord& record, unsigned worker);
    void hold(const NeighborKey& key, const Held& held);
    void release(const Held& held);
    void give_up(const Held& held, bool tell);
    void send_datagram(std::span<const std::uint8_t> datagram, const pipeline::PuntRecord& about, unsigned worker);
    // Takes the mbuf, which begins with the IP header.
    void route_out(rte_mbuf* mbuf, const pipeline::PuntRecord& about, unsigned worker);
    void act_on_neighbors();
    void release_bound();
    [[nodiscard]] bool is_on_link(const NeighborKey& key) const;
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
    std::vector<Bound> bound_;  // what waits for these goes on once they are published
    std::vector<Announcement> announcements_;
    std::array<pipeline::Meter, pipeline::kMaxPorts> unreachable_meters_{};
    std::array<std::uint8_t, Answers::kQuoteBytes> scratch_{};
};

}  // namespace cachewire::control
