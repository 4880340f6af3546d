// SPDX-License-Identifier: BSD-3-Clause
// Two scheduled ports on one lcore: each has its own rate, order and drops, and one that does not take anything holds
// the other up by nothing.
#include <array>
#include <map>

#include <rte_lcore.h>

#include "base/clock.h"
#include "control/scheduler_lcore.h"
#include "control/snapshot_builder.h"
#include "control/workers.h"
#include "pipeline/tx_flush.h"
#include "support/catch.h"
#include "support/config_of.h"
#include "support/eal.h"
#include "support/mbuf.h"
#include "support/ring_port.h"

namespace cachewire {

namespace {

constexpr const char* kTwoScheduled = R"(version: 1
ports:
  - {name: left, device: "net_null0"}
  - {name: right, device: "net_null1"}
interfaces:
  - {name: l, port: left, addresses: ["10.0.0.1/24"]}
  - {name: r, port: right, addresses: ["10.0.1.1/24"]}
qos:
  classes: [{name: low}, {name: gold, priority: 2}]
  schedulers:
    - {port: left, rate: 8kbit, classes: [{name: gold}, {name: low, weight: 1}]}
    - {port: right, rate: 1Tbit, classes: [{name: low, priority: 0}, {name: gold, weight: 1}]}
)";

class TwoScheduledRig {
  public:
    TwoScheduledRig()
        : config_(test::config_of(kTwoScheduled)),
          builder_({{"left", {device("left").id(), 1, {}}}, {"right", {device("right").id(), 1, {}}}}, {}, -1),
          publisher_(1) {
        auto pass = builder_.begin(config_, 1);
        builder_.complete(*pass);
        auto snapshot = builder_.commit(std::move(pass));
        for (auto& each : snapshot->ports) each.sends = true;
        publisher_.publish(std::move(snapshot), [this] { builder_.grace_period_over(); });
        worker = control::make_worker_state(rte_lcore_id(), 1024);
        pipeline::WorkerState* states[] = {worker.get()};
        lcore_.emplace(config_, builder_.registry(), rte_lcore_id(), publisher_.add_worker(), states);
        scheduler().begin();
    }
    ~TwoScheduledRig() {
        scheduler().drop_all();
        for (auto& buffer : worker->tx) buffer.discard();
        for (const char* name : {"left", "right"}) collect(name);
    }

    pipeline::SchedulerWorker& scheduler() { return lcore_->worker(); }
    std::uint16_t port(const std::string& name) const { return *builder_.registry().ports.find(name); }
    std::uint8_t slot(const std::string& name) const {
        return static_cast<std::uint8_t>(*builder_.registry().classes.find(name));
    }
    const pipeline::ScheduledPort& scheduled(const std::string& name) { return *scheduler().find(port(name)); }
    // Into the port's buffer, as the TX stage leaves it; the frame begins with the class.
    void push(const std::string& name, const std::string& traffic_class) {
        test::Bytes frame(1000);
        frame[0] = slot(traffic_class);
        rte_mbuf* mbuf = test::make_mbuf(frame).release();
        pipeline::put_label(mbuf, {1, slot(traffic_class)});
        REQUIRE(worker->tx[port(name)].push(mbuf));
        ++worker->ledger.rx;
        ++worker->ledger.held;
    }
    void turn() {
        pipeline::flush_tx(*worker, *publisher_.current());
        pipeline::publish_iteration(*worker);
        scheduler().iterate();
        const pipeline::LedgerLine lines[] = {scheduler().published_ledger(), worker->published_ledger.read()};
        REQUIRE(control::unaccounted(control::sum_of(lines)) == 0);
    }
    // Classes of what came out.
    static std::vector<unsigned> collect(const std::string& name) {
        std::vector<unsigned> classes;
        std::array<rte_mbuf*, 64> out;
        for (unsigned n; (n = device(name).collect(out)) != 0;)
            for (unsigned i = 0; i < n; ++i) {
                classes.push_back(test::bytes_of(out[i])[0]);
                rte_pktmbuf_free(out[i]);
            }
        return classes;
    }

    std::unique_ptr<pipeline::WorkerState> worker;

  private:
    // Of 31 places on the right, so that it can be full.
    static test::RingPort& device(const std::string& name) {
        test::ensure_eal();
        static test::RingPort left("scheduled-left", 2048, test::test_pool());
        static test::RingPort right("scheduled-right", 32, test::test_pool());
        return name == "left" ? left : right;
    }
    config::Config config_;
    control::SnapshotBuilder builder_;
    control::Publisher publisher_;
    std::optional<control::SchedulerLcore> lcore_;
};

}  // namespace

TEST_CASE("scheduler lcore: two ports on one lcore have each their rate and their order", "[qos]") {
    TwoScheduledRig rig;
    for (unsigned n = 0; n < 10; ++n)
        for (const char* port : {"left", "right"})
            for (const char* traffic_class : {"gold", "low"}) rig.push(port, traffic_class);
    for (unsigned k = 0; k < 5; ++k) rig.turn();
    const unsigned gold = rig.slot("gold"), low = rig.slot("low");
    // The right one sends all at once, low first; the left one two full frames' worth, gold ones, and is done for
    // minutes.
    std::vector<unsigned> all(10, low);
    all.insert(all.end(), 10, gold);
    CHECK(TwoScheduledRig::collect("right") == all);
    const auto left = TwoScheduledRig::collect("left");
    CHECK((left == std::vector<unsigned>(3, gold) || left == std::vector<unsigned>(4, gold)));
    CHECK(rig.scheduled("left").classes[gold].queued.read() == 10 - left.size());
    CHECK(rig.scheduled("left").classes[low].queued.read() == 10);
    CHECK(rig.scheduled("left").counters.tx_packets.read() == left.size());
    CHECK(rig.scheduled("right").counters.tx_packets.read() == 20);
    CHECK(rig.scheduled("right").classes[gold].packets.read() == 10);
    CHECK(rig.scheduled("right").classes[gold].queued.read() == 0);
}

TEST_CASE("scheduler lcore: a device that takes nothing more holds the other port up by nothing", "[qos]") {
    const unsigned before = (test::test_pool(), test::mbufs_in_use());
    {
        TwoScheduledRig rig;
        for (unsigned n = 0; n < 100; ++n) {
            rig.push("right", "gold");
            if (n < 3) rig.push("left", "gold");
            if (n % 10 == 9) rig.turn();
        }
        rig.turn();
        CHECK(TwoScheduledRig::collect("left").size() == 3);
        CHECK(rig.scheduled("right").classes[rig.slot("gold")].queued.read() == 100 - 31);
        CHECK(rig.scheduled("right").counters.tx_dropped.read() == 0);
        std::size_t came = 0;
        for (unsigned k = 0; k < 10; ++k, rig.turn()) came += TwoScheduledRig::collect("right").size();
        CHECK(came + TwoScheduledRig::collect("right").size() == 100);
        // Full queues are a port's own too.
        for (unsigned n = 0; n < qos::Scheduler::kSlots + 100; ++n) {
            rig.push("left", "low");
            if (n % 50 == 49) rig.turn();
        }
        for (unsigned k = 0; k < 10; ++k) rig.turn();
        const auto& low = rig.scheduled("left").classes[rig.slot("low")];
        CHECK(low.packets.read() + low.dropped.read() == 100);  // one or two more were within the rate
        CHECK(low.packets.read() < 50);
        CHECK(rig.scheduled("left").counters.tx_dropped.read() == low.dropped.read());
        CHECK(rig.scheduled("right").counters.tx_dropped.read() == 0);
        rig.push("right", "low");
        rig.turn();
        CHECK(TwoScheduledRig::collect("right").size() == 1);
    }
    CHECK(test::mbufs_in_use() == before);
}

}  // namespace cachewire
