// SPDX-License-Identifier: BSD-3-Clause
// One rate over 1, 2 and 4 lcores: threads of their own, and a clock that is the test's.
#include "qos/shared_bucket.h"

#include <array>
#include <barrier>
#include <cmath>
#include <random>
#include <thread>
#include <vector>

#include "qos/burst_meter.h"
#include "support/catch.h"
#include "support/random.h"
#include "tsc.h"

namespace cachewire::qos {

namespace {

using test::kHz;

struct Sent {
    std::uint64_t green = 0, yellow = 0, red = 0;  // bytes
};

// `workers` threads, each with its share of the load, in steps of the clock that all of them take together.
struct Load {
    unsigned workers;
    double seconds, steps_per_second;
    unsigned packets_a_step;  // all workers together
    std::uint32_t bytes;
    bool all_on_one;
    unsigned tick_every = 64;  // steps between which the threads wait for each other: their clocks differ by less
};

Sent run(const PolicerProfile& profile, const Load& load) {
    SharedBuckets shared(1);
    std::vector<Policers> policers(load.workers);
    for (Policers& p : policers) {
        p = Policers(1);
        p.shared = &shared;
    }
    const auto steps = static_cast<std::uint64_t>(load.seconds * load.steps_per_second);
    std::barrier tick(static_cast<std::ptrdiff_t>(load.workers));
    const auto work = [&](unsigned w) {
        for (std::uint64_t step = 0; step < steps; ++step) {
            const auto now =
                kHz * 1000 + static_cast<std::uint64_t>(static_cast<double>(step) * kHz / load.steps_per_second);
            {
                BurstMeter meter(policers[w], &profile, now);
                const unsigned mine =
                    load.all_on_one ? (w == 0 ? load.packets_a_step : 0) : load.packets_a_step / load.workers;
                for (unsigned i = 0; i < mine; ++i) meter.police(0, load.bytes, 0);
            }
            if (step % load.tick_every == 0) tick.arrive_and_wait();
        }
    };
    std::vector<std::thread> threads;
    for (unsigned w = 1; w < load.workers; ++w) threads.emplace_back(work, w);
    work(0);
    for (std::thread& thread : threads) thread.join();
    Sent sent;
    for (const Policers& p : policers) {
        sent.green += p.states[0].conform_bytes.read();
        sent.yellow += p.exceeds[0].bytes.read();
        sent.red += p.states[0].violate_bytes.read();
    }
    return sent;
}

}  // namespace

TEST_CASE("qos: one rate over several lcores holds within 2 %, balanced and all on one", "[qos][shared]") {
    const PolicerProfile profile = make_profile({.name = "test", .rate_bps = 100'000'000}, kHz);
    for (const unsigned workers : {1u, 2u, 4u})
        for (const bool all_on_one : {false, true})
            for (const std::uint32_t bytes : {64u, 1514u}) {
                // Ten times the rate.
                const unsigned packets = 16;
                const double steps = 1e9 / 8 / bytes / packets;
                INFO(workers << " workers, all on one " << all_on_one << ", " << bytes << " bytes");
                const double seconds = 2;
                const Sent sent = run(profile, {workers, seconds, steps, packets, bytes, all_on_one});
                const double ideal = 100e6 / 8 * seconds + static_cast<double>(profile.burst_bytes);
                REQUIRE(std::abs(static_cast<double>(sent.green) - ideal) <= 0.02 * ideal);
            }
}

TEST_CASE("qos: one packet a second passes whole on every lcore", "[qos][shared]") {
    const PolicerProfile profile = make_profile({.name = "test", .rate_bps = 100'000'000}, kHz);
    for (const unsigned workers : {1u, 2u, 4u}) {
        const Sent sent = run(profile, {workers, 500, 1, workers, 1514, false, 1});
        CHECK(sent.green == 500ull * workers * 1514);
        CHECK(sent.red == 0);
    }
}

TEST_CASE("qos: what is under the rate passes whole on several lcores", "[qos][shared]") {
    const PolicerProfile profile = make_profile({.name = "test", .rate_bps = 100'000'000}, kHz);
    for (const unsigned workers : {2u, 4u}) {
        const Sent sent = run(profile, {workers, 1, 98e6 / 8 / 500 / 4, 4, 500, false, 1});
        CHECK(sent.red == 0);
    }
}

TEST_CASE("qos: two-rate policers over several lcores hold both rates within 2 %", "[qos][shared]") {
    for (const MeterType type : {MeterType::srtcm_2697, MeterType::trtcm_2698, MeterType::trtcm_4115}) {
        const PolicerProfile profile =
            make_profile({.name = "test", .rate_bps = 100'000'000, .type = type, .excess_rate_bps = 200'000'000}, kHz);
        for (const unsigned workers : {1u, 2u, 4u}) {
            INFO("type " << static_cast<int>(type) << ", " << workers << " workers");
            const double seconds = 2;
            const Sent sent = run(profile, {workers, seconds, 1e9 / 8 / 500 / 16, 16, 500, false});
            const auto cbs = static_cast<double>(profile.burst_bytes);
            const auto ebs = static_cast<double>(profile.excess_burst_bytes);
            const double green = 100e6 / 8 * seconds + cbs;
            double yellow = ebs;
            if (type == MeterType::trtcm_2698) yellow += 200e6 / 8 * seconds - green;
            if (type == MeterType::trtcm_4115) yellow += 200e6 / 8 * seconds;
            CHECK(std::abs(static_cast<double>(sent.green) - green) <= 0.02 * green);
            CHECK(std::abs(static_cast<double>(sent.yellow) - yellow) <= 0.02 * (green + yellow));
        }
    }
}

TEST_CASE("qos: lcores together pass at most the burst and a chunk each at once", "[qos][shared]") {
    const PolicerProfile profile = make_profile({.name = "test", .rate_bps = 8'000'000, .burst_bytes = 64'000}, kHz);
    constexpr unsigned kWorkers = 4;
    SharedBuckets shared(1);
    std::vector<Policers> policers(kWorkers);
    for (Policers& p : policers) {
        p = Policers(1);
        p.shared = &shared;
    }
    std::uint64_t now = kHz * 1000;
    // Each draws a chunk and lets it lie for less than the bucket takes to fill.
    for (Policers& p : policers) police(p, 0, &profile, now, 64, 0);
    now += profile.fill_tsc - 1;
    std::uint64_t passed = 0;
    const auto drain = [&] {
        passed = 0;
        for (Policers& p : policers)
            while (police(p, 0, &profile, now, 64, 0) == Colour::green) passed += 64;
    };
    drain();
    CHECK(passed >= 64'000 - 64 * kWorkers);
    CHECK(passed <= 64'000 + kWorkers * profile.shared[0].chunk_bytes);
    // After that time it is void: the bucket is full without it.
    for (Policers& p : policers) police(p, 0, &profile, now += kHz, 64, 0);
    now += profile.fill_tsc;
    drain();
    CHECK(passed <= 64'000);
    CHECK(passed >= 64'000 - 2 * 64 * kWorkers - profile.shared[0].chunk_bytes);
}

TEST_CASE("qos: credit of a shared rate is exact from 8 kbit/s to 1 Tbit/s", "[qos][shared]") {
    auto engine = test::random_engine();
    for (const std::uint64_t rate : {8'000ull, 123'457ull, 5'000'000'000ull, 40'000'000'000ull, 1'000'000'000'000ull}) {
        const PolicerProfile profile = make_profile({.name = "test", .rate_bps = rate}, kHz);
        SharedBuckets shared(1);
        std::uint64_t now = kHz * 1000, taken = 0;
        const std::uint64_t start = now;
        std::uniform_int_distribution<std::uint64_t> gaps(1, profile.shared[0].burst_tsc / 100);
        std::uniform_int_distribution<std::uint64_t> needs(60, 1514);
        while (shared.take(0, 0, profile, now, 1514) != 0) {
        }
        for (unsigned i = 0; i < 100'000; ++i) {
            now += gaps(engine);
            while (const std::uint64_t n = shared.take(0, 0, profile, now, needs(engine))) taken += n;
        }
        const double ideal = static_cast<double>(now - start) / kHz * static_cast<double>(rate) / 8;
        INFO(rate << " bit/s: " << taken << " of " << ideal);
        CHECK(std::abs(static_cast<double>(taken) - ideal) <= 0.005 * ideal + 1514);
    }
}

// A burst remembers that there was no credit; packets one by one ask each time.
TEST_CASE("qos: packets of a burst get the colours that they get one by one", "[qos][shared]") {
    auto engine = test::random_engine();
    for (const std::uint64_t burst : {2'000ull, 24'288ull, 100'000ull, 10'000'000ull}) {
        const PolicerProfile profile =
            make_profile({.name = "shared", .rate_bps = 100'000'000, .burst_bytes = burst}, kHz);
        SharedBuckets together(1), apart(1);
        Policers bursts(1), single(1);
        bursts.shared = &together;
        single.shared = &apart;
        std::uniform_int_distribution<std::uint32_t> lengths(60, 1514);
        std::exponential_distribution<double> gaps(1 / (32 * 787 * 8 / 300e6));  // three times the rate
        std::uint64_t now = 1000 * kHz;
        std::array<unsigned, 3> colours{};
        for (unsigned n = 0; n < 5'000; ++n) {
            now += static_cast<std::uint64_t>(gaps(engine) * static_cast<double>(kHz));
            BurstMeter meter(bursts, &profile, now);
            for (unsigned i = 0; i < 32; ++i) {
                const std::uint32_t length = lengths(engine);
                const Colour colour = meter.police(0, length, 0);
                ++colours[static_cast<unsigned>(colour)];
                INFO("burst size " << burst << ", burst " << n << ", packet " << i);
                REQUIRE(colour == police(single, 0, &profile, now, length, 0));
            }
        }
        CHECK(colours[0] > 1000);
        CHECK(colours[2] > 1000);
        CHECK(bursts.states[0].violate_bytes.read() == single.states[0].violate_bytes.read());
        CHECK(bursts.states[0].conform_packets.read() == single.states[0].conform_packets.read());
    }
}

TEST_CASE("qos: another rate after a reload leaves no debt and no credit behind", "[qos][shared]") {
    const PolicerProfile fast = make_profile({.name = "test", .rate_bps = 1'000'000'000, .burst_bytes = 100'000}, kHz);
    const PolicerProfile slow = make_profile({.name = "test", .rate_bps = 8'000'000, .burst_bytes = 100'000}, kHz);
    SharedBuckets shared(1);
    std::uint64_t now = kHz * 1000;
    while (shared.take(0, 0, fast, now, 1000) != 0) {
    }
    CHECK(shared.take(0, 0, slow, now, 1000) == 0);
    now += kHz / 100;  // 10 ms: 10 000 bytes
    std::uint64_t taken = 0;
    while (const std::uint64_t n = shared.take(0, 0, slow, now, 100)) taken += n;
    CHECK(taken > 8'000);
    CHECK(taken <= 10'000);
}

}  // namespace cachewire::qos
