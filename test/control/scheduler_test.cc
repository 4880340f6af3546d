// SPDX-License-Identifier: BSD-3-Clause
// From two workers' TX buffers over the rings and the scheduler to the device: what leaves, in which order, what is
// dropped and where that is counted, and the ledger at every step. The scheduler's lcore is turned by hand.
#include "control/scheduler_lcore.h"

#include <array>
#include <cstring>
#include <map>

#include <rte_lcore.h>

#include "control/restart.h"
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

using pipeline::DropReason;

std::string scheduled_config(const std::string& rate = "1Tbit", const std::string& more = "") {
    return R"(version: 1
ports:
  - {name: inside, device: "net_null0"}
  - {name: outside, device: "net_null1"}
interfaces:
  - {name: lan, port: inside, addresses: ["10.0.0.1/24"]}
qos:
  classes: [{name: low}, {name: gold, priority: 2}, {name: bulk}, {name: other}]
  schedulers:
    - {port: outside, rate: )" +
           rate + R"(, classes: [{name: low, weight: 1}, {name: bulk, weight: 3}, {name: gold}]}
)" + more;
}

class ScheduledRig {
  public:
    explicit ScheduledRig(const std::string& text = scheduled_config())
        : config_(test::config_of(text)),
          builder_({{"inside", {0, 1, {}}}, {"outside", {device().id(), 1, {}}}}, {}, -1),
          publisher_(1) {
        publish();
        for (auto& worker : workers) {
            worker = control::make_worker_state(rte_lcore_id(), 1024);
            states_.push_back(worker.get());
        }
        lcore_.emplace(config_, builder_.registry(), rte_lcore_id(), publisher_.add_worker(), states_);
        scheduler().begin();
        port = *builder_.registry().ports.find("outside");
    }
    ~ScheduledRig() {
        scheduler().drop_all();
        for (auto& worker : workers)
            for (auto& buffer : worker->tx) buffer.discard();
        collect();
    }

    pipeline::SchedulerWorker& scheduler() { return lcore_->worker(); }
    const pipeline::ScheduledPort& scheduled() { return *scheduler().ports()[0]; }
    std::uint8_t slot(const std::string& name) {
        return name.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(*builder_.registry().classes.find(name));
    }
    void publish(bool sends = true, bool admin_up = true) {
        auto pass = builder_.begin(config_, ++generation_);
        builder_.complete(*pass);
        auto snapshot = builder_.commit(std::move(pass));
        for (auto& each : snapshot->ports) {
            each.sends = sends;
            each.admin_up = admin_up;
        }
        publisher_.publish(std::move(snapshot), [this] { builder_.grace_period_over(); });
        while (lcore_ && publisher_.reap() != 0) scheduler().iterate();
    }
    // As the TX stage leaves it. The frame begins with the class and a number of its own.
    void push(unsigned worker, std::uint8_t traffic_class, std::uint16_t tenant = 1, std::uint32_t bytes = 100) {
        test::Bytes frame(bytes);
        frame[0] = traffic_class;
        frame[1] = static_cast<std::uint8_t>(worker);
        const std::uint32_t number = next_[{worker, traffic_class}]++;
        std::memcpy(&frame[2], &number, 4);
        rte_mbuf* mbuf = test::make_mbuf(frame).release();
        pipeline::put_label(mbuf, {tenant, traffic_class});
        REQUIRE(workers[worker]->tx[port].push(mbuf));
        ++workers[worker]->ledger.rx;
        ++workers[worker]->ledger.held;
    }
    void end_iteration(unsigned worker) {
        pipeline::flush_tx(*workers[worker], *publisher_.current());
        pipeline::publish_iteration(*workers[worker]);
    }
    pipeline::LedgerLine ledger() {
        std::vector<pipeline::LedgerLine> lines = {scheduler().published_ledger()};
        for (const auto& worker : workers) lines.push_back(worker->published_ledger.read());
        const auto sum = control::sum_of(lines);
        CHECK(control::unaccounted(sum) == 0);
        return sum;
    }
    // Classes of what came out; each worker's of a class in their order.
    std::vector<unsigned> collect() {
        std::vector<unsigned> classes;
        std::array<rte_mbuf*, 64> out;
        for (unsigned n; (n = device().collect(out)) != 0;)
            for (unsigned i = 0; i < n; ++i) {
                const test::Bytes frame = test::bytes_of(out[i]);
                std::uint32_t number;
                std::memcpy(&number, &frame[2], 4);
                auto& last = seen_[{frame[1], frame[0]}];
                CHECK(number >= last);
                last = number + 1;
                classes.push_back(frame[0]);
                rte_pktmbuf_free(out[i]);
            }
        return classes;
    }
    std::uint64_t drops(DropReason reason, std::uint16_t tenant = 1) {
        std::uint64_t n = scheduler().tenants()[tenant].drops[static_cast<unsigned>(reason)].read();
        for (const auto& worker : workers) n += worker->tenants[tenant].drops[static_cast<unsigned>(reason)].read();
        return n;
    }

    std::array<std::unique_ptr<pipeline::WorkerState>, 2> workers;
    std::uint16_t port = 0;

  private:
    static test::RingPort& device() {
        test::ensure_eal();
        static test::RingPort port("scheduled", 2048, test::test_pool());
        return port;
    }
    config::Config config_;
    control::SnapshotBuilder builder_;
    control::Publisher publisher_;
    std::vector<pipeline::WorkerState*> states_;
    std::optional<control::SchedulerLcore> lcore_;
    std::uint64_t generation_ = 0;
    std::map<std::pair<unsigned, unsigned>, std::uint32_t> next_, seen_;
};

}  // namespace

TEST_CASE("scheduler lcore: the highest class first, own frames before it, what has no class last", "[qos]") {
    ScheduledRig rig;
    const std::uint8_t low = rig.slot("low"), gold = rig.slot("gold"), other = rig.slot("other");
    for (const std::uint8_t of : {std::uint8_t{0}, other, low, gold, pipeline::kOwnFrame, gold}) rig.push(0, of);
    rig.push(1, gold);
    rig.end_iteration(0);
    rig.end_iteration(1);
    CHECK(rig.ledger().held == 7);
    CHECK(rig.workers[0]->ledger.held == 0);
    rig.scheduler().iterate();
    CHECK(rig.collect() == std::vector<unsigned>{pipeline::kOwnFrame, gold, gold, gold, low, 0, other});
    const auto line = rig.ledger();
    CHECK((line.held == 0 && line.tx == 7 && line.dropped == 0));
    CHECK(rig.scheduled().counters.tx_packets.read() == 7);
    CHECK(rig.scheduled().counters.tx_bytes.read() == 700);
    CHECK(rig.scheduled().classes[gold].packets.read() == 3);
    CHECK(rig.scheduled().classes[gold].bytes.read() == 300);
    CHECK(rig.scheduled().classes[gold].queued.read() == 0);
}

TEST_CASE("scheduler lcore: a port without a scheduler goes to its device, as ever", "[qos]") {
    ScheduledRig rig;
    CHECK(rig.workers[0]->feeds.to[1 - rig.port] == nullptr);
    CHECK(rig.workers[0]->feeds.to[rig.port] != nullptr);
    CHECK(rig.workers[0]->feeds.to[rig.port] != rig.workers[1]->feeds.to[rig.port]);
}

TEST_CASE("scheduler lcore: a full ring drops at the worker, by name, tenant and class", "[qos]") {
    const unsigned before = (test::test_pool(), test::mbufs_in_use());
    {
        ScheduledRig rig;
        const std::uint8_t gold = rig.slot("gold");
        for (unsigned n = 0; n < pipeline::kFeedSlots + 7; ++n) {
            rig.push(0, gold, 5);
            if (rig.workers[0]->tx[rig.port].size() == 100) rig.end_iteration(0);
        }
        rig.end_iteration(0);
        CHECK(rig.drops(DropReason::scheduler_feed_full, 5) == 7);
        CHECK(rig.workers[0]->class_tx_dropped[rig.port][gold].read() == 7);
        CHECK(rig.workers[0]->ports[rig.port].tx_dropped.read() == 7);
        CHECK(rig.ledger().held == pipeline::kFeedSlots);
        CHECK(rig.ledger().dropped == 7);
        for (unsigned n = 0; n < 100; ++n) rig.scheduler().iterate();
        CHECK(rig.collect().size() == pipeline::kFeedSlots);
        CHECK(rig.ledger().held == 0);
    }
    CHECK(test::mbufs_in_use() == before);
}

TEST_CASE("scheduler lcore: a full queue drops of its class alone, by name, tenant and class", "[qos]") {
    const unsigned before = (test::test_pool(), test::mbufs_in_use());
    {
        ScheduledRig rig(scheduled_config("8kbit"));  // two frames of 1538 bytes, then nothing for minutes
        const std::uint8_t low = rig.slot("low"), gold = rig.slot("gold");
        constexpr unsigned kMore = 300;
        for (unsigned n = 0; n < qos::Scheduler::kSlots + kMore; ++n) {
            rig.push(n % 2, low, 5, 200);
            if (n % 100 == 99) {
                rig.end_iteration(0);
                rig.end_iteration(1);
                for (unsigned k = 0; k < 4; ++k) rig.scheduler().iterate();
                rig.ledger();
            }
        }
        for (const unsigned worker : {0, 1}) rig.end_iteration(worker);
        rig.scheduler().iterate();
        const std::size_t out = rig.collect().size();
        CHECK(out >= 15);
        CHECK(rig.drops(DropReason::scheduler_full, 5) == kMore - out);
        CHECK(rig.scheduled().classes[low].dropped.read() == kMore - out);
        CHECK(rig.scheduled().counters.tx_dropped.read() == kMore - out);
        CHECK(rig.scheduled().classes[low].queued.read() == qos::Scheduler::kSlots);
        CHECK(rig.ledger().held == qos::Scheduler::kSlots);
        rig.push(0, gold, 5);
        rig.end_iteration(0);
        rig.scheduler().iterate();
        CHECK(rig.scheduled().classes[gold].dropped.read() == 0);
        CHECK(rig.ledger().held == qos::Scheduler::kSlots + 1);
        rig.scheduler().drop_all();
        CHECK(rig.ledger().held == 0);
        CHECK(rig.drops(DropReason::shutdown, 5) == qos::Scheduler::kSlots + 1);
    }
    CHECK(test::mbufs_in_use() == before);
}

TEST_CASE("scheduler lcore: what the device does not take stays in front", "[qos]") {
    ScheduledRig rig;
    const std::uint8_t low = rig.slot("low"), gold = rig.slot("gold");
    unsigned pushed = 0;
    for (; pushed < 2200; ++pushed) {  // the device has 2047 places
        rig.push(0, low);
        if (pushed % 50 != 49) continue;
        rig.end_iteration(0);
        for (unsigned k = 0; k < 4; ++k) rig.scheduler().iterate();
    }
    CHECK(rig.ledger().held == pushed - 2047);
    rig.push(0, gold);
    rig.end_iteration(0);
    rig.scheduler().iterate();
    CHECK(rig.collect().size() == 2047);
    for (unsigned k = 0; k < 10; ++k) rig.scheduler().iterate();
    const auto rest = rig.collect();
    REQUIRE(rest.size() == pushed - 2047 + 1);
    // Chosen before gold came: at most one round.
    CHECK(std::find(rest.begin(), rest.end(), gold) - rest.begin() <= 32);
    CHECK(rig.ledger().held == 0);
}

TEST_CASE("scheduler lcore: what waits for a port that goes down is dropped by that name", "[qos]") {
    const unsigned before = (test::test_pool(), test::mbufs_in_use());
    {
        ScheduledRig rig(scheduled_config("8kbit"));
        for (unsigned n = 0; n < 200; ++n) rig.push(0, rig.slot("bulk"), 9, 1000);
        rig.end_iteration(0);
        for (unsigned k = 0; k < 4; ++k) rig.scheduler().iterate();
        const std::size_t out = rig.collect().size();
        rig.publish(false, true);
        CHECK(rig.drops(DropReason::link_down, 9) == 200 - out);
        CHECK(rig.scheduled().classes[rig.slot("bulk")].queued.read() == 0);
        CHECK(rig.ledger().held == 0);
        rig.publish(false, false);
        for (unsigned n = 0; n < 3; ++n) rig.push(0, rig.slot("bulk"), 9);
        rig.end_iteration(0);  // the worker sees it first
        CHECK(rig.drops(DropReason::port_down, pipeline::kNoTenant) == 3);
        rig.publish();
        CHECK(rig.ledger().held == 0);
    }
    CHECK(test::mbufs_in_use() == before);
}

TEST_CASE("scheduler lcore: schedulers stay as they were at the start", "[qos]") {
    const config::Config running = test::config_of(scheduled_config());
    const auto obstacles = [&running](const std::string& text) {
        return control::to_string(control::obstacles(running, test::config_of(text)));
    };
    CHECK(obstacles(scheduled_config()).empty());
    const std::string why = "qos.schedulers: their lcore, rings and queues are made at the start";
    CHECK(obstacles(scheduled_config("2Gbit")) == why);
    CHECK(obstacles(scheduled_config("1Tbit",
                                     "    - {port: inside, rate: 1Gbit, classes: [{name: low, weight: 1}]}\n")) == why);
    std::string text = scheduled_config();
    text.replace(text.find("priority: 2"), 11, "priority: 3");
    CHECK(obstacles(text) == why);
    text = scheduled_config();
    text.replace(text.find("weight: 3"), 9, "weight: 4");
    CHECK(obstacles(text) == why);
    text = scheduled_config();
    text.replace(text.find("net_null1"), 9, "net_null2");
    CHECK(obstacles(text) == "ports[1].device: the port has a scheduler, whose rings are made at the start");
    text = scheduled_config();  // the same in another order
    text.replace(text.find("{name: low}, {name: gold, priority: 2}"), 38, "{name: gold, priority: 2}, {name: low}");
    CHECK(obstacles(text).empty());
}

}  // namespace cachewire
