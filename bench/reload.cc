// SPDX-License-Identifier: BSD-3-Clause
// What do packets feel of a reload? A worker forwards 100 k sessions on one CPU. On the other the control plane does
// what it does in the program: reads the files (10 000 rules, 900 000 routes), builds the snapshot, publishes it, waits
// for the grace period, brings the routes' second copy up to date. Windows with and without a reload take turns in one
// run, so a busy machine hits all of them. A reload that changes what a session goes by has each session judged again
// with its next packet; one that changes another tenant's list shows what the rest costs.
//
// A gap is the time that an iteration takes: until then no other packet is looked at. What the bench does between two
// iterations, for it plays the wire, is in none. Empty iterations don't count: each finds a full burst.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <pthread.h>
#include <rte_mbuf.h>
#include <sched.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heap.h"
#include "claims.h"
#include "config/load.h"
#include "control/publisher.h"
#include "control/snapshot_builder.h"
#include "control/workers.h"
#include "net/checksum.h"
#include "net/headers.h"
#include "pipeline/worker.h"
#include "port/port.h"
#include "reload_files.h"
#include "support/packet_builder.h"
#include "support/ring_port.h"
#include "traffic.h"

namespace cachewire::bench {

namespace {

constexpr unsigned kFlows = 100'000;
constexpr unsigned kBurst = 32, kInFlight = 2048;
constexpr auto kSettle = std::chrono::milliseconds(200);  // behind the reload: sessions are judged again

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// By 64 cycles, one counter past the end for all that took longer.
class Gaps {
  public:
    void add(std::uint64_t cycles) noexcept {
        ++counts_[std::min<std::uint64_t>(cycles / kWidth, kBuckets)];
        longest_ = std::max(longest_, cycles);
        ++total_;
    }
    // In microseconds.
    [[nodiscard]] double quantile(double q) const {
        const auto rank = static_cast<std::uint64_t>(q * static_cast<double>(total_));
        std::uint64_t seen = 0;
        for (std::size_t i = 0; i < kBuckets; ++i)
            if ((seen += counts_[i]) > rank) return us(static_cast<std::uint64_t>(i) * kWidth + kWidth / 2);
        return longest();
    }
    [[nodiscard]] double longest() const { return us(longest_); }
    [[nodiscard]] std::uint64_t total() const { return total_; }
    void operator+=(const Gaps& other) {
        for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
        longest_ = std::max(longest_, other.longest_);
        total_ += other.total_;
    }

  private:
    static constexpr std::uint64_t kWidth = 64, kBuckets = 1u << 16;  // up to 1.6 ms at 2.6 GHz
    static double us(std::uint64_t cycles) {
        return static_cast<double>(cycles) * 1e6 / static_cast<double>(base::tsc_hz());
    }
    std::vector<std::uint32_t> counts_ = std::vector<std::uint32_t>(kBuckets + 1);
    std::uint64_t longest_ = 0, total_ = 0;
};

struct Flow {
    std::uint32_t source, destination;  // big endian
    std::uint16_t port;
};

// A worker with its wire on a thread of its own. Everything but `gaps` is the thread's while it runs.
class Forwarding {
  public:
    Forwarding(const std::vector<Route>& routes, std::mt19937_64& random)
        : pool_(port::make_mempool("bench_reload", 2 * kInFlight, 0, 2176, SOCKET_ID_ANY)),
          west_("west_reload", 2 * kInFlight, pool_),
          east_("east_reload", 2 * kInFlight, pool_),
          builder({{"west", {west_.id(), 1, test::kRouterMac}}, {"east", {east_.id(), 1, test::kRouterMac}}}, {},
                  SOCKET_ID_ANY),
          frame_(udp_frames(1).front()) {
        for (unsigned i = 0; i < kFlows; ++i) {
            const Route& to = routes[random() % routes.size()];
            flows_.push_back({__builtin_bswap32(0x0a010000 + i),
                              __builtin_bswap32(to.address | static_cast<std::uint32_t>(1 + random() % 250)),
                              static_cast<std::uint16_t>(random())});
        }
    }
    ~Forwarding() { stop(); }
    Forwarding(const Forwarding&) = delete;
    Forwarding& operator=(const Forwarding&) = delete;

    // Once the first snapshot is published.
    void start(std::uint32_t capacity) {
        auto state = control::make_worker_state(rte_lcore_id(), capacity);
        builder.rule_hits().add_worker(state->rules);
        worker_ = std::make_unique<pipeline::Worker>(
            std::move(state), std::vector<pipeline::RxQueue>{{*builder.registry().ports.find("west"), west_.id(), 0}},
            publisher.add_worker());
        std::vector<rte_mbuf*> mbufs(kInFlight);
        if (rte_pktmbuf_alloc_bulk(pool_, mbufs.data(), kInFlight) != 0) throw std::runtime_error("not enough mbufs");
        free_.assign(mbufs.begin(), mbufs.end());
        const int cpu = sched_getcpu();
        thread_ = std::thread([this, cpu] { run(cpu); });
        while (rounds_.load(std::memory_order_relaxed) < 2) usleep(1000);  // each session has begun
    }
    void stop() {
        ending_ = true;
        if (thread_.joinable()) thread_.join();
    }
    // Gaps from now on are counted here; the previous ones are whole when this returns.
    void count_in(Gaps* gaps) {
        gaps_.store(gaps);
        const std::uint64_t before = iterations_.load();
        while (iterations_.load() < before + 2 && !ending_) usleep(100);
    }
    [[nodiscard]] std::uint64_t dropped() const { return worker_->state().published_ledger.read().dropped; }
    // Packets that were judged or routed again.
    [[nodiscard]] std::uint64_t stale() const { return worker_->state().memo.stale.read(); }
    [[nodiscard]] std::uint64_t sessions() const { return worker_->state().sessions->stats().created; }

  private:
    void run(int control_cpu) {
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        for (long i = 0; i < sysconf(_SC_NPROCESSORS_ONLN); ++i)
            if (i != control_cpu) CPU_SET(static_cast<std::size_t>(i), &cpus);
        pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);
        worker_->begin();
        std::minstd_rand random(kSeed);
        std::uint64_t sent = 0;
        while (!ending_.load(std::memory_order_relaxed)) {
            // In turn until each session has been there twice, then at random.
            for (unsigned i = 0; i < kBurst && !free_.empty(); ++i, ++sent) {
                make_frame(free_.front(), flows_[sent < std::uint64_t{2} * kFlows ? sent % kFlows : random() % kFlows]);
                rte_mbuf* const mbuf = free_.front();
                west_.offer({&mbuf, 1});
                free_.pop_front();
            }
            if (sent % kFlows < kBurst) rounds_.store(sent / kFlows, std::memory_order_relaxed);
            Gaps* const gaps = gaps_.load(std::memory_order_relaxed);
            const std::uint64_t begin = base::now_tsc();
            worker_->iterate();
            if (gaps != nullptr) gaps->add(base::now_tsc() - begin);
            iterations_.store(iterations_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
            std::array<rte_mbuf*, kBurst> out;
            const unsigned n = east_.collect(out);
            free_.insert(free_.end(), out.begin(), out.begin() + n);
        }
        worker_->set_phase(pipeline::Worker::Phase::stopped);
        worker_->run();
    }
    void make_frame(rte_mbuf* mbuf, const Flow& flow) {
        rte_pktmbuf_reset(mbuf);
        auto* bytes =
            reinterpret_cast<std::uint8_t*>(rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(frame_.size())));
        std::memcpy(bytes, frame_.data(), frame_.size());
        std::uint8_t* ip = bytes + net::kEthernetBytes;
        std::memcpy(ip + 12, &flow.source, 4);
        std::memcpy(ip + 16, &flow.destination, 4);
        std::memcpy(ip + net::kIp4Bytes, &flow.port, 2);
        std::memset(ip + net::kIp4Bytes + 6, 0, 2);  // no UDP checksum
        std::memset(ip + 10, 0, 2);
        const std::uint16_t sum = net::checksum({ip, net::kIp4Bytes});
        std::memcpy(ip + 10, &sum, 2);
    }

    rte_mempool* pool_;
    test::RingPort west_, east_;

  public:
    control::SnapshotBuilder builder;
    control::Publisher publisher{1};

  private:
    std::vector<std::uint8_t> frame_;
    std::vector<Flow> flows_;
    std::unique_ptr<pipeline::Worker> worker_;
    std::deque<rte_mbuf*> free_;  // in turn, so that frames and mbufs wait in L2
    std::atomic<bool> ending_{false};
    std::atomic<std::uint64_t> rounds_{0}, iterations_{0};
    std::atomic<Gaps*> gaps_{nullptr};
    std::thread thread_;
};

// What each step of a reload takes, in ms. With the grace period the old snapshot is freed.
struct Steps {
    double read = 0, lists = 0, rest = 0, grace_us = 0, second = 0;
    [[nodiscard]] double whole() const { return read + lists + rest + second; }
};

class Reloader {
  public:
    explicit Reloader(Forwarding& to) : to_(to) {}

    Steps reload(const std::string& path) {
        Steps steps;
        auto begin = Clock::now();
        const auto lap = [&begin] {
            const double ms = ms_since(begin);
            begin = Clock::now();
            return ms;
        };
        config::LoadResult loaded = config::load_file(path);
        if (!loaded.config) throw std::runtime_error(config::to_string(loaded.diagnostics.at(0)));
        steps.read = lap();
        auto pass = to_.builder.begin(*loaded.config, ++generation_);
        steps.lists = lap();
        to_.builder.complete(*pass);
        to_.publisher.publish(to_.builder.commit(std::move(pass)), [&] {
            steps.grace_us = lap() * 1000;
            to_.builder.grace_period_over();
            steps.second = lap();
        });
        steps.rest = lap();
        while (to_.publisher.reap() != 0) {
        }
        capacity_ = loaded.config->sessions.capacity;
        config_ = std::move(loaded.config);  // the old one goes here, as in the program
        return steps;
    }
    [[nodiscard]] std::uint32_t capacity() const { return capacity_; }

  private:
    Forwarding& to_;
    std::optional<config::Config> config_;
    std::uint64_t generation_ = 0;
    std::uint32_t capacity_ = 0;
};

double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

struct Arm {
    std::string name;
    Gaps all;
    std::vector<double> p999, ratios;  // by round; against the window without a reload beside it
    std::vector<Steps> steps;
    std::uint64_t stale = 0;
};

void print_arms(const std::vector<Arm>& arms) {
    fmt::print("\n{:<34} {:>10} {:>8} {:>8} {:>8} {:>9} {:>9} {:>7} {:>9}\n", "the worker's gap, us", "iterations",
               "p50", "p99", "p99.9", "p99.99", "longest", "ratio", "stale");
    for (const Arm& arm : arms)
        fmt::print("{:<34} {:>10} {:>8.2f} {:>8.2f} {:>8.2f} {:>9.2f} {:>9.1f} {:>7.3f} {:>9}\n", arm.name,
                   arm.all.total(), arm.all.quantile(0.5), arm.all.quantile(0.99), arm.all.quantile(0.999),
                   arm.all.quantile(0.9999), arm.all.longest(), median(arm.ratios), arm.stale);
    fmt::print("\n{:<34} {:>8} {:>8} {:>12} {:>10} {:>12} {:>8}\n", "a reload, ms", "read", "lists", "and publish",
               "grace, us", "second copy", "all");
    for (const Arm& arm : arms) {
        if (arm.steps.empty()) continue;
        const auto of = [&arm](auto&& field) {
            std::vector<double> values;
            for (const Steps& steps : arm.steps) values.push_back(field(steps));
            return median(values);
        };
        fmt::print("{:<34} {:>8.0f} {:>8.0f} {:>12.0f} {:>10.1f} {:>12.0f} {:>8.0f}\n", arm.name,
                   of([](const Steps& s) { return s.read; }), of([](const Steps& s) { return s.lists; }),
                   of([](const Steps& s) { return s.rest; }), of([](const Steps& s) { return s.grace_us; }),
                   of([](const Steps& s) { return s.second; }), of([](const Steps& s) { return s.whole(); }));
    }
}

}  // namespace

std::vector<Result> reload(const Options& options) {
    base::keep_freed_memory();  // as the program does
    std::mt19937_64 random(kSeed);
    const std::vector<Route> routes = draw_routes(random);
    Files files(routes);
    Forwarding forwarding(routes, random);
    Reloader reloader(forwarding);
    Version version;
    const Steps first = reloader.reload(files.choose(version));
    fmt::print(
        "\n2 lists of {} rules, {} routes drawn with seed {}, {} sessions; the first load: read {:.0f} ms, lists "
        "{:.0f}, the rest {:.0f}, the routes' second copy {:.0f}\n",
        kRules, kRoutes, kSeed, kFlows, first.read, first.lists, first.rest, first.second);
    forwarding.start(reloader.capacity());

    std::vector<Arm> arms(4);
    arms[0].name = "no reload";
    arms[1].name = "the same files again";
    arms[2].name = "a rule more, of another tenant";
    arms[3].name = "a rule more, all routes elsewhere";
    const unsigned rounds = options.quick ? 6 : 20;
    double reload_ms = first.whole();
    for (unsigned round = 0; round < rounds; ++round) {
        double alone = 0;
        for (std::size_t arm = 0; arm < arms.size(); ++arm) {
            version.blue ^= arm == 2;
            version.red ^= arm == 3;
            const std::string path = files.choose(version);
            Gaps gaps;
            const std::uint64_t stale = forwarding.stale();
            forwarding.count_in(&gaps);
            if (arm == 0) {
                std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(reload_ms));
            } else {
                arms[arm].steps.push_back(reloader.reload(path));
                reload_ms = arms[arm].steps.back().whole();
            }
            std::this_thread::sleep_for(kSettle);
            forwarding.count_in(nullptr);
            const double p999 = gaps.quantile(0.999);
            if (arm == 0) alone = p999;
            arms[arm].p999.push_back(p999);
            arms[arm].ratios.push_back(p999 / alone);
            arms[arm].all += gaps;
            arms[arm].stale += forwarding.stale() - stale;
        }
    }
    forwarding.stop();
    print_arms(arms);
    if (forwarding.dropped() != 0 || forwarding.sessions() != kFlows)
        throw std::runtime_error(fmt::format("{} packets were dropped and {} sessions begun, of {}",
                                             forwarding.dropped(), forwarding.sessions(), kFlows));
    std::vector<Result> results;
    for (const Arm& arm : arms) {
        Result result;
        result.name = "gap p99.9, " + arm.name;
        result.cycles_per_packet = median(arm.p999) * static_cast<double>(base::tsc_hz()) / 1e6 / kBurst;
        result.ratio = median(arm.ratios);
        results.push_back(result);
    }
    return results;
}

}  // namespace cachewire::bench
