// SPDX-License-Identifier: BSD-3-Clause
// What does policing cost? The QoS stage over bursts of 32 packets of one tenant against rte_meter's own call for each
// of these packets, all under the rate and all over it; one rate over two lcores against the same on one; and a bucket
// for each session, where each packet's is another one.
#include <array>
#include <atomic>
#include <stdexcept>
#include <thread>

#include <pthread.h>

#include <fmt/format.h>
#include <rte_lcore.h>

#include "base/clock.h"
#include "burst_slice.h"
#include "claims.h"
#include "pipeline/stages/6_qos.h"
#include "qos/shared_bucket.h"

namespace cachewire::bench {

namespace {

constexpr unsigned kBurst = 32, kBursts = 64;

std::uint32_t length_of(unsigned packet) { return 60 + packet * 2654435761u % 1455; }

class Arm {
  public:
    // `sessions`: each has a bucket of its own; 0: the tenant has one.
    Arm(std::uint64_t rate_bps, std::uint64_t burst_bytes, qos::SharedBuckets* shared = nullptr,
        std::uint32_t sessions = 0)
        : worker_(std::make_unique<pipeline::WorkerState>()), sessions_(sessions) {
        worker_->policers = qos::Policers(1);
        worker_->policers.shared = shared;
        snapshot_.policers.push_back(
            qos::make_profile({.name = "bench", .rate_bps = rate_bps, .burst_bytes = burst_bytes}));
        snapshot_.policer_places = 1u << static_cast<unsigned>(pipeline::PolicerPlace::tenant_in);
        if (sessions != 0) {
            constexpr auto kPlace = pipeline::PolicerPlace::tenant_in;
            worker_->sessions = std::make_unique<session::Table>(sessions, -1, base::tsc_hz(), session::Timeouts{});
            worker_->sessions->make_beside(pipeline::beside_of(kPlace));
            snapshot_.policers[0].per_session = true;
            snapshot_.session_policer_places = snapshot_.policer_places;
        }
        snapshot_.tenants.resize(2);
        snapshot_.tenants[1].policer_in = 0;
        meter_ = {base::now_tsc(), burst_bytes, 0};
    }

    // rte_meter's profile has the stage's numbers, so that both have the same packets pass.
    Slice bare() {
        rte_meter_srtcm_profile profile = rte_profile();
        return run([&](pipeline::Burst& burst, std::uint64_t now) {
            unsigned green = 0;
            for (const auto i : burst.live())
                green += rte_meter_srtcm_color_blind_check(&meter_, &profile, now, burst.lane(i).frame_length) ==
                         RTE_COLOR_GREEN;
            green_ += green;
        });
    }
    // The same, and what is red leaves the burst with its reason, as it has to in any path.
    Slice bare_dropping() {
        rte_meter_srtcm_profile profile = rte_profile();
        return run([&](pipeline::Burst& burst, std::uint64_t now) {
            burst.filter([&](auto i) {
                return rte_meter_srtcm_color_blind_check(&meter_, &profile, now, burst.lane(i).frame_length) ==
                           RTE_COLOR_GREEN ||
                       burst.drop(i, pipeline::DropReason::policer);
            });
            green_ += burst.size();
        });
    }
    Slice stage() {
        return run([&](pipeline::Burst& burst, std::uint64_t now) {
            worker_->now_tsc = now;
            pipeline::stages::Qos::process(*worker_, snapshot_, burst);
            green_ += burst.size();
        });
    }
    [[nodiscard]] std::uint64_t green() const { return green_; }

  private:
    [[nodiscard]] rte_meter_srtcm_profile rte_profile() const {
        const rte_meter_trtcm_profile& numbers = snapshot_.policers[0].meter;
        return {numbers.cbs, 0, numbers.cir_period, numbers.cir_bytes_per_period};
    }
    template <class Work>
    Slice run(Work&& work) {
        pipeline::Burst& burst = worker_->burst;
        const auto fill = [&](pipeline::Lane& lane, net::FlowKey&) {
            lane.tenant = 1;
            lane.frame_length = length_of(at_++);
            lane.session = sessions_ == 0 ? pipeline::kNoSession : at_ * 2654435761u % sessions_;
        };
        return time_bursts(burst, kBursts, kBurst, fill, [&](std::uint64_t now) { work(burst, now); });
    }

    std::unique_ptr<pipeline::WorkerState> worker_;
    pipeline::Snapshot snapshot_;
    rte_meter_srtcm meter_{};
    std::uint32_t sessions_;
    unsigned at_ = 0;
    std::uint64_t green_ = 0;
};

// Polices on the last CPU while `on`.
class Companion {
  public:
    explicit Companion(Arm& arm)
        : thread_([this, &arm] {
              cpu_set_t set;
              CPU_ZERO(&set);
              CPU_SET(std::thread::hardware_concurrency() - 1, &set);
              pthread_setaffinity_np(pthread_self(), sizeof set, &set);
              while (!stop_.load(std::memory_order_relaxed))
                  if (on_.load(std::memory_order_relaxed)) arm.stage();
          }) {}
    ~Companion() {
        stop_ = true;
        thread_.join();
    }
    Companion(const Companion&) = delete;
    Companion& operator=(const Companion&) = delete;

    Slice beside(Arm& arm) {
        on_ = true;
        const Slice slice = arm.stage();
        on_ = false;
        return slice;
    }

  private:
    std::atomic<bool> on_{false}, stop_{false};
    std::thread thread_;
};

}  // namespace

std::vector<Result> qos(const Options& options) {
    const unsigned pairs = options.quick ? 1000 : options.pairs;
    constexpr std::uint64_t kWide = 1'000'000'000'000, kNarrow = 1'000'000'000;
    constexpr std::uint64_t kWideBurst = 64u << 20, kNarrowBurst = 1u << 20;
    std::vector<Result> all;
    for (const auto& [what, rate, burst] :
         {std::tuple("under the rate", kWide, kWideBurst), std::tuple("over the rate", kNarrow, kNarrowBurst)}) {
        Arm bare(rate, burst), dropping(rate, burst), stage(rate, burst);
        const auto results =
            measure({{fmt::format("rte_meter, {}", what), [&] { return bare.bare(); }},
                     {fmt::format("rte_meter and drop, {}", what), [&] { return dropping.bare_dropping(); }},
                     {fmt::format("stage, {}", what), [&] { return stage.stage(); }}},
                    pairs);
        print_table(fmt::format("qos: one policer, {}", what), results);
        all.insert(all.end(), results.begin(), results.end());

        qos::SharedBuckets shared(1);
        Arm own(rate, burst, &shared), other(rate, burst, &shared);
        Companion companion(other);
        const auto shares =
            measure({{fmt::format("shared, alone, {}", what), [&] { return own.stage(); }},
                     {fmt::format("shared, two lcores, {}", what), [&] { return companion.beside(own); }}},
                    pairs);
        print_table(fmt::format("qos: one rate over two lcores, {}", what), shares);
        all.insert(all.end(), shares.begin(), shares.end());
    }
    Arm tenant(kWide, kWideBurst), few(kWide, kWideBurst, nullptr, 1000), many(kWide, kWideBurst, nullptr, 1u << 20);
    const auto sessions = measure({{"stage, the tenant's bucket", [&] { return tenant.stage(); }},
                                   {"stage, of 1 k sessions", [&] { return few.stage(); }},
                                   {"stage, of 1 M sessions", [&] { return many.stage(); }}},
                                  pairs);
    print_table("qos: a bucket for each session, under the rate", sessions);
    all.insert(all.end(), sessions.begin(), sessions.end());
    const auto scheduled = scheduling(options);
    all.insert(all.end(), scheduled.begin(), scheduled.end());
    return all;
}

}  // namespace cachewire::bench
