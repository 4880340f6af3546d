// SPDX-License-Identifier: BSD-3-Clause
// Does a tenant feel its neighbor? Red and blue share one worker. Red sends packets of sessions that exist at a steady
// rate; blue floods at a 10 Gbit/s wire's rate, each packet a new flow that walks a list of 10 000 rules. Measured is
// what red gets: packets lost, and the time from a packet's arrival to its transmission.
//
// Time is the worker's: its iterations are run one by one, each takes the cycles that it takes, and what has arrived in
// that time lies in the receive rings before the next one begins, those of a NIC: 1024 packets, the rest is lost. What
// the bench does between iterations takes no time. So the queueing is exact, at any load, and nothing but the worker's
// own code is in the latency. Variants take turns in slices of half a millisecond of that time.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <rte_mbuf.h>

#include "base/clock.h"
#include "claims.h"
#include "config/load.h"
#include "control/publisher.h"
#include "control/snapshot_builder.h"
#include "control/workers.h"
#include "pipeline/worker.h"
#include "port/port.h"
#include "support/packet_builder.h"
#include "support/ring_port.h"
#include "traffic.h"

namespace cachewire::bench {

namespace {

constexpr unsigned kQueue = 1024;  // descriptors of a receive queue
constexpr unsigned kRedFlows = 100000;
constexpr std::uint16_t kRedVlan = 10, kBlueVlan = 20;
constexpr double kFloodPps = 14.88e6;  // 64 bytes at 10 Gbit/s
constexpr double kSliceSeconds = 0.0005, kInterruptedSeconds = 0.00006;

struct Plan {
    std::string name;
    double red_pps;
    bool flood;
    bool quota;   // blue's: 2000 sessions, all in use soon
    bool shared;  // one receive queue for both
};

std::string configuration(const Plan& plan) {
    std::string text = "version: 1\nports:\n";
    for (const char* port : {"west", "north", "east"})
        text += fmt::format("  - {{name: {0}, device: \"net_ring_{0}\"}}\n", port);
    text += "tenants:\n";
    const char* blue_port = plan.shared ? "west" : "north";
    const auto tenant = [&](const char* name, unsigned vlan, const char* port, const char* list, const char* more) {
        text += fmt::format(
            "  - {{name: {0}, id: {1}, match: [{{port: {2}, vlan: {1}}}, {{port: east, vlan: {1}}}], acl: {3}, "
            "sessions: track{4}}}\n",
            name, vlan, port, list, more);
    };
    tenant("red", kRedVlan, "west", "few", "");
    tenant("blue", kBlueVlan, blue_port, "many",
           plan.quota ? ", quota: {sessions: 2000, new_sessions_per_second: 20000}" : "");
    text += "interfaces:\n";
    for (const auto& [name, vlan, port] : {std::tuple{"red", kRedVlan, "west"}, {"blue", kBlueVlan, blue_port}})
        text += fmt::format(
            "  - {{name: {0}-lan, port: {2}, vlan: {1}, addresses: [\"10.0.0.1/8\"]}}\n"
            "  - {{name: {0}-wan, port: east, vlan: {1}, addresses: [\"192.0.2.1/24\"]}}\n",
            name, vlan, port);
    text += "neighbors:\n";
    for (const char* name : {"red", "blue"})
        text += fmt::format("  - {{tenant: {}, address: 192.0.2.2, mac: \"02:00:00:00:00:02\"}}\n", name);
    text += "routes:\n";
    for (const char* name : {"red", "blue"})
        text += fmt::format("  - {{tenant: {}, prefix: 198.18.0.0/15, via: 192.0.2.2}}\n", name);
    text += "sessions: {capacity: 400000, timeouts: {established_udp: 6h, new: 30s}}\nacl:\n";
    std::minstd_rand random(1);
    for (const auto& [name, rules] : {std::pair{"few", 10u}, {"many", 10000u}}) {
        text += fmt::format("  - name: {}\n    stateful: true\n    rules:\n", name);
        for (unsigned i = 0; i + 1 < rules; ++i) {
            const unsigned a = random() % 256, b = random() % 256, c = random() % 256, low = 1000 + random() % 60000;
            fmt::format_to(
                std::back_inserter(text),
                "      - {{action: deny, proto: {}, src: 10.{}.{}.0/24, dst: 198.{}.{}.0/24, dst_ports: {}-{}}}\n",
                i % 2 == 0 ? "tcp" : "udp", a, b, 18 + a % 2, c, low, low + random() % 1000);
        }
        text += "      - {action: permit, proto: udp, src: 10.0.0.0/8}\n";
    }
    return text;
}

// Packets that come at a steady rate, each a mbuf of its own pool.
class Source {
  public:
    Source(const std::string& name, double pps, std::uint16_t vlan)
        : interval_(pps == 0 ? 0 : static_cast<double>(base::tsc_hz()) / pps),
          pool_(port::make_mempool("noisy_" + name, 8192, 256, 2176, SOCKET_ID_ANY)),
          frame_(udp_frames(1, vlan)[0]) {}

    [[nodiscard]] rte_mempool* pool() const noexcept { return pool_; }
    // Everything that has come until `now`; `flow()` says whose it is. What the ring doesn't take is lost.
    template <class Flow>
    void arrive(double now, test::RingPort& port, Flow&& flow) {
        if (interval_ == 0) return;
        for (; next_ <= now; next_ += interval_) arrive_one(port, flow());
    }
    // The same of two that share a ring, in the order of time.
    template <class Flow, class OtherFlow>
    static void arrive(double now, test::RingPort& port, Source& a, Flow&& flow, Source& b, OtherFlow&& other) {
        while (true) {
            Source& next = b.interval_ != 0 && b.next_ < a.next_ ? b : a;
            if (next.next_ > now) return;
            next.arrive_one(port, &next == &a ? flow() : other());
            next.next_ += next.interval_;
        }
    }
    void begin(double now) { next_ = now; }

    std::uint64_t sent = 0, lost = 0;

  private:
    void arrive_one(test::RingPort& port, std::uint32_t flow) {
        ++sent;
        set_flow(frame_, flow);
        rte_mbuf* mbuf = rte_pktmbuf_alloc(pool_);
        if (mbuf == nullptr) throw std::runtime_error("noisy: no mbuf");
        char* bytes = rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(frame_.size()));
        std::memcpy(bytes, frame_.data(), frame_.size());
        std::memcpy(bytes + frame_.size() - sizeof next_, &next_, sizeof next_);  // in the payload
        if (port.offer({&mbuf, 1}) == 1) return;
        ++lost;
        rte_pktmbuf_free(mbuf);
    }

    double interval_, next_ = 0;  // TSC cycles of the worker's time
    rte_mempool* pool_;
    std::vector<std::uint8_t> frame_;
};

class Neighbors {
  public:
    explicit Neighbors(const Plan& plan)
        : plan_(plan),
          id_(std::to_string(next_id_++)),
          red_("red" + id_, plan.red_pps, kRedVlan),
          blue_("blue" + id_, plan.flood ? kFloodPps : 0, kBlueVlan),
          west_("noisy_west" + id_, kQueue * 2, red_.pool()),
          north_("noisy_north" + id_, kQueue * 2, blue_.pool()),
          east_("noisy_east" + id_, 8192, red_.pool()),
          builder_({{"west", {west_.id(), 1, test::kRouterMac}},
                    {"north", {north_.id(), 1, test::kRouterMac}},
                    {"east", {east_.id(), 1, test::kRouterMac}}},
                   net::HashSeed{}, SOCKET_ID_ANY) {
        auto loaded = config::load_text(configuration(plan), "noisy.yaml");
        if (!loaded.config) throw std::runtime_error(config::to_string(loaded.diagnostics.at(0)));
        auto pass = builder_.begin(*loaded.config, 1);
        builder_.complete(*pass);
        publisher_.publish(builder_.commit(std::move(pass)));
        builder_.grace_period_over();
        const auto& ports = builder_.registry().ports;
        worker_ = std::make_unique<pipeline::Worker>(
            control::make_worker_state(rte_lcore_id(), loaded.config->sessions.capacity),
            std::vector<pipeline::RxQueue>{{*ports.find("west"), west_.id(), 0},
                                           {*ports.find("north"), north_.id(), 0}},
            publisher_.add_worker());
        worker_->begin();
        make_sessions();
    }
    Neighbors(const Neighbors&) = delete;
    Neighbors& operator=(const Neighbors&) = delete;

    // Half a millisecond of the worker's time. Returns cycles a packet that red got through.
    Slice slice() {
        latencies_.clear();
        const double begin = now_;
        while (now_ < begin + kSliceSeconds * static_cast<double>(base::tsc_hz())) step();
        if (!latencies_.empty()) {
            p50_.push_back(quantile(0.5));
            p99_.push_back(quantile(0.99));
        }
        return {static_cast<std::uint64_t>(now_ - begin), latencies_.size()};
    }
    // Medians over the slices, in microseconds.
    [[nodiscard]] double p50_us() { return micros(p50_); }
    [[nodiscard]] double p99_us() { return micros(p99_); }
    [[nodiscard]] double red_loss() const { return part(red_.lost, red_.sent); }
    [[nodiscard]] double blue_begun_per_second() const {
        return static_cast<double>(begun() - begun_at_start_) / (now_ - start_) * static_cast<double>(base::tsc_hz());
    }
    [[nodiscard]] double blue_served_mpps() const {
        return static_cast<double>(blue_.sent - blue_.lost) / (now_ - start_) * static_cast<double>(base::tsc_hz()) /
               1e6;
    }
    [[nodiscard]] double iteration_us() const {
        return (now_ - start_) / static_cast<double>(iterations_) / ghz() / 1e3;
    }
    [[nodiscard]] const Plan& plan() const noexcept { return plan_; }

  private:
    static double ghz() { return static_cast<double>(base::tsc_hz()) / 1e9; }
    static double part(std::uint64_t n, std::uint64_t of) {
        return of == 0 ? 0 : static_cast<double>(n) / static_cast<double>(of);
    }
    [[nodiscard]] std::uint64_t begun() const { return worker_->state().sessions->stats().created; }
    double quantile(double q) {
        const auto at =
            latencies_.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(latencies_.size() - 1));
        std::nth_element(latencies_.begin(), at, latencies_.end());
        return *at;
    }
    static double micros(std::vector<double>& slices) {
        if (slices.empty()) return 0;
        std::nth_element(slices.begin(), slices.begin() + static_cast<std::ptrdiff_t>(slices.size() / 2), slices.end());
        return slices[slices.size() / 2] / ghz() / 1e3;
    }

    // One iteration, and what arrives before it.
    void step() {
        const auto red = [&] { return static_cast<std::uint32_t>(random_() % kRedFlows); };
        const auto blue = [&] { return kRedFlows + next_blue_++ % 0xe00000; };
        if (plan_.shared) {
            Source::arrive(now_, west_, red_, red, blue_, blue);
        } else {
            red_.arrive(now_, west_, red);
            blue_.arrive(now_, north_, blue);
        }
        const std::uint64_t begin = base::now_tsc();
        worker_->iterate();
        const auto cost = static_cast<double>(base::now_tsc() - begin);
        // No iteration of two bursts takes that long: somebody else had the CPU. The last one's time stands for it.
        if (cost < kInterruptedSeconds * static_cast<double>(base::tsc_hz())) cost_ = cost;
        now_ += cost_;
        ++iterations_;
        collect();
    }

    void collect() {
        std::array<rte_mbuf*, 256> sent;
        for (unsigned n = 1; n != 0;) {
            n = east_.collect(sent);
            for (unsigned i = 0; i < n; ++i) {
                const auto* bytes = rte_pktmbuf_mtod(sent[i], const std::uint8_t*);
                if (bytes[15] == kRedVlan) {
                    double arrived;
                    std::memcpy(&arrived, bytes + sent[i]->data_len - sizeof arrived, sizeof arrived);
                    latencies_.push_back(now_ - arrived);
                }
            }
            rte_pktmbuf_free_bulk(sent.data(), n);
        }
    }

    void make_sessions() {
        unsigned next = 0;
        Source early("early" + id_, 10e6, kRedVlan);
        while (next < kRedFlows) {
            early.arrive(now_, west_, [&] { return next++ % kRedFlows; });
            worker_->iterate();
            now_ += 1000;
            collect();
        }
        for (int i = 0; i < 200; ++i) worker_->iterate();
        collect();
        red_.begin(now_);
        blue_.begin(now_);
        latencies_.clear();
        start_ = now_;
        begun_at_start_ = begun();
        iterations_ = 0;
    }

    static inline unsigned next_id_ = 0;
    Plan plan_;
    std::string id_;
    Source red_, blue_;
    test::RingPort west_, north_, east_;
    control::SnapshotBuilder builder_;
    control::Publisher publisher_{1};
    std::unique_ptr<pipeline::Worker> worker_;
    std::minstd_rand random_{7};
    std::uint32_t next_blue_ = 0;
    double now_ = 0, start_ = 0, cost_ = 0;
    std::uint64_t iterations_ = 0, begun_at_start_ = 0;
    std::vector<double> latencies_, p50_, p99_;  // of red, cycles; of the slice, by slice
};

void print_neighbors(std::vector<std::unique_ptr<Neighbors>>& arms) {
    fmt::print("\n{:<40} {:>9} {:>9} {:>9} {:>9} {:>8} {:>12} {:>12} {:>13}\n", "red's packets", "lost", "p50, us",
               "p99, us", "ratio", "loop, us", "blue, Mpps", "blue begun/s", "");
    double alone = 0;
    for (auto& arm : arms) {
        const double p99 = arm->p99_us();
        if (!arm->plan().flood) alone = p99;
        fmt::print("{:<40} {:>8.2f}% {:>9.2f} {:>9.2f} {:>9.2f} {:>8.2f} {:>12.2f} {:>12.0f}\n", arm->plan().name,
                   100 * arm->red_loss(), arm->p50_us(), p99, p99 / alone, arm->iteration_us(), arm->blue_served_mpps(),
                   arm->blue_begun_per_second());
    }
}

}  // namespace

std::vector<Result> noisy(const Options& options) {
    std::vector<Result> all;
    for (const double mpps : {1.0, 4.0}) {  // each rig has three devices, and DPDK room for 32
        std::vector<std::unique_ptr<Neighbors>> arms;
        std::vector<Variant> variants;
        const auto add = [&](const char* name, bool flood, bool quota, bool shared) {
            arms.push_back(std::make_unique<Neighbors>(
                Plan{fmt::format("{} Mpps, {}", mpps, name), mpps * 1e6, flood, quota, shared}));
            variants.push_back({arms.back()->plan().name, [arm = arms.back().get()] { return arm->slice(); }});
        };
        add("alone", false, false, false);
        add("blue floods, no quota", true, false, false);
        add("blue floods, quota", true, true, false);
        add("the same in one receive queue", true, true, true);
        const auto results = measure(variants, options.quick ? 300 : options.pairs);
        print_neighbors(arms);
        all.insert(all.end(), results.begin(), results.end());
    }
    return all;
}

}  // namespace cachewire::bench
