// SPDX-License-Identifier: BSD-3-Clause
// Reloads while a worker is kept full: what both policies deny never passes, what both permit is never lost. Every
// snapshot comes from a file's text, goes through the builder and is freed after its grace period, as in a process.
#include <array>
#include <atomic>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "config/load.h"
#include "control/publisher.h"
#include "control/snapshot_builder.h"
#include "control/workers.h"
#include "pipeline/worker.h"
#include "port/port.h"
#include "support/catch.h"
#include "support/config_of.h"
#include "support/eal.h"
#include "support/mbuf.h"
#include "support/packet_builder.h"
#include "support/ring_port.h"

namespace cachewire {
namespace {

constexpr std::uint16_t kPermitted = 1000, kDenied = 2000, kTurning = 3000, kFlows = 100;  // destination ports
constexpr net::Mac kEastMac{{2, 0, 0, 0, 0, 0xee}};

// Policies differ in what they say about kTurning and in where their other rules stand.
std::string config_text(bool odd, unsigned rules, const std::string& sessions) {
    std::string text = R"(version: 1
ports: [{name: west, device: net_ring_w}, {name: east, device: net_ring_e}]
interfaces:
  - {name: lan, port: west, tenant: red, addresses: ["10.0.0.1/24"]}
  - {name: wan, port: east, tenant: red, addresses: ["192.0.2.1/24"]}
neighbors: [{tenant: red, address: 192.0.2.9, mac: "02:00:00:00:00:99"}]
sessions: {capacity: 4096}
tenants: [{name: red, id: 1, match: [{port: west}, {port: east}], acl: edge)";
    text += sessions + "}]\nacl: [{name: edge, stateful: " + (sessions.empty() ? "true" : "false") + ", rules: [\n";
    const auto range = [&](const char* action, unsigned first) {
        text += fmt::format("  {{action: {}, proto: udp, dst_ports: {}-{}}},\n", action, first, first + kFlows - 1);
    };
    const auto filler = [&](unsigned from, unsigned to) {
        for (unsigned i = from; i < to; ++i)
            text += fmt::format("  {{action: deny, proto: udp, src: 172.16.{}.{}/32}},\n", i / 250, i % 250);
    };
    filler(0, odd ? rules / 2 : rules / 4);
    range(odd ? "deny" : "permit", kTurning);
    range("permit", kPermitted);
    filler(odd ? rules / 2 : rules / 4, rules);
    range("deny", kDenied);
    return text + "]}]\n";
}

struct Ports {
    rte_mempool* pool = port::make_mempool("reload_test", 8191, 0, 2176, -1);
    test::RingPort west{"reload_west", 1024, pool}, east{"reload_east", 1024, pool};

    static Ports& get() {
        test::ensure_eal();
        static Ports ports;
        return ports;
    }
};

// Keeps the west ring full and the east ring empty, and counts by class of destination port.
class Traffic {
  public:
    Traffic() : thread_([this] { run(); }) {}
    ~Traffic() { stop(); }
    void stop() {
        if (!thread_.joinable()) return;
        ending_ = true;
        thread_.join();
    }
    static unsigned class_of(std::uint16_t port) { return port / 1000 - 1; }
    std::array<std::uint64_t, 3> sent{}, received{};
    std::atomic<std::uint64_t> offered{0};

    void collect() {
        std::array<rte_mbuf*, 64> mbufs;
        while (const unsigned n = Ports::get().east.collect(mbufs)) {
            for (unsigned i = 0; i < n; ++i) {
                const auto* frame = rte_pktmbuf_mtod(mbufs[i], const std::uint8_t*);
                ++received[class_of(static_cast<std::uint16_t>(frame[36] << 8 | frame[37]))];
            }
            rte_pktmbuf_free_bulk(mbufs.data(), n);
        }
    }

  private:
    void run() {
        std::vector<test::Bytes> frames;
        for (const std::uint16_t first : {kPermitted, kDenied, kTurning})
            for (std::uint16_t i = 0; i < kFlows; ++i)
                frames.push_back(test::PacketBuilder()
                                     .eth()
                                     .ip4("10.0.0.9", "192.0.2.9")
                                     .udp(4000, static_cast<std::uint16_t>(first + i))
                                     .payload(8)
                                     .bytes());
        for (std::size_t next = 0; !ending_;) {
            rte_mbuf* mbuf = test::make_mbuf(frames[next], Ports::get().pool).release();
            bool taken = false;
            while (!(taken = Ports::get().west.offer({&mbuf, 1}) == 1) && !ending_) collect();
            if (!taken) return rte_pktmbuf_free(mbuf);
            ++sent[next / kFlows];
            offered.fetch_add(1, std::memory_order_relaxed);
            next = (next + 7) % frames.size();
            if (next % 16 == 0) collect();
        }
    }
    std::atomic<bool> ending_{false};
    std::thread thread_;
};

void reload_under_load(unsigned reloads, unsigned rules, const std::string& sessions) {
    Ports& ports = Ports::get();
    control::SnapshotBuilder builder(
        {{"west", {ports.west.id(), 1, test::kRouterMac}}, {"east", {ports.east.id(), 1, kEastMac}}}, {}, -1);
    control::Publisher publisher(1);
    std::array<config::Config, 2> policies;
    for (const bool odd : {false, true}) policies[odd] = test::config_of(config_text(odd, rules, sessions));
    const auto publish = [&](unsigned n) {
        auto pass = builder.begin(policies[n % 2], n + 1);
        while (publisher.reap() != 0) std::this_thread::yield();
        builder.complete(*pass);
        publisher.publish(builder.commit(std::move(pass)), [&] { builder.grace_period_over(); });
    };
    publish(0);
    auto state = control::make_worker_state(rte_lcore_id(), 4096);
    builder.rule_hits().add_worker(state->rules);
    const auto index = [&](const char* name) { return *builder.registry().ports.find(name); };
    pipeline::Worker worker(
        std::move(state),
        std::vector<pipeline::RxQueue>{{index("west"), ports.west.id(), 0}, {index("east"), ports.east.id(), 0}},
        publisher.add_worker());
    std::thread thread([&] { worker.run(); });
    {
        Traffic traffic;
        for (unsigned n = 1; n <= reloads; ++n) {
            const std::uint64_t before = traffic.offered.load();
            publish(n);
            while (traffic.offered.load() < before + 64) std::this_thread::yield();  // each policy sees packets
        }
        traffic.stop();
        const std::uint64_t all = traffic.sent[0] + traffic.sent[1] + traffic.sent[2];
        for (unsigned waited = 0; worker.state().published_ledger.read().rx < all && waited < 20000; ++waited) {
            traffic.collect();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        worker.set_phase(pipeline::Worker::Phase::stopped);
        thread.join();
        traffic.collect();
        INFO(reloads << " reloads of " << rules << " rules, " << all << " packets" << sessions);
        CHECK(worker.state().published_ledger.read().rx == all);
        CHECK(traffic.received[0] == traffic.sent[0]);
        CHECK(traffic.received[1] == 0);
        CHECK(traffic.received[2] > 0);
        CHECK(traffic.received[2] < traffic.sent[2]);
        // Nothing else was ever dropped for.
        const auto slot = *builder.registry().tenants.find("red");
        const auto& drops = worker.state().tenants[slot].drops;
        CHECK(drops[static_cast<unsigned>(pipeline::DropReason::acl_deny)].read() ==
              all - traffic.received[0] - traffic.received[2]);
    }
}

TEST_CASE("reload: 100 reloads under load let nothing through and lose nothing", "[reload]") {
    reload_under_load(100, 50, "");
    reload_under_load(100, 50, ", sessions: none");
}

TEST_CASE("reload: 1000 reloads of up to 1000 rules under load", "[.][slow][reload]") {
    reload_under_load(1000, 1000, "");
    reload_under_load(1000, 100, ", sessions: cache");
}

}  // namespace
}  // namespace cachewire
