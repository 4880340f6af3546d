// SPDX-License-Identifier: BSD-3-Clause
// Order, shares and rate of a scheduler, by a clock that is the test's.
#include "qos/scheduler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <map>
#include <stdexcept>

#include "scheduler_rig.h"

namespace cachewire::qos {

TEST_CASE("scheduler: the class of the highest priority goes first, asked anew for every packet", "[qos]") {
    SchedulerRig rig(scheduler_with({strict_class(3), strict_class(0), strict_class(11), weighted_class(1)}));
    for (unsigned n = 0; n < 4; ++n) rig.fill(n, 3);
    CHECK(rig.go() == std::vector<unsigned>{1, 1, 1, 0, 0, 0, 2, 2, 2, 3, 3, 3});
    rig.wait(0.01);
    rig.fill(2, 5);
    CHECK(rig.go(2) == std::vector<unsigned>{2, 2});
    rig.fill(1, 1);
    CHECK(rig.go(2) == std::vector<unsigned>{1, 2});  // in between
}

TEST_CASE("scheduler: twelve strict classes and four weighted ones go in their order", "[qos]") {
    std::vector<SchedulerConfig::Class> classes;
    for (unsigned n = 0; n < kStrictClasses; ++n) classes.push_back(strict_class(n));
    for (unsigned n = 0; n < kWeightedClasses; ++n) classes.push_back(weighted_class(1));
    SchedulerRig rig(scheduler_with(classes, 1'000'000'000'000));
    for (unsigned n = 16; n-- > 0;) rig.fill(n, 2);
    const auto order = rig.go();
    REQUIRE(order.size() == 32);
    for (unsigned n = 0; n < 2 * kStrictClasses; ++n) CHECK(order[n] == n / 2);
    std::map<unsigned, unsigned> behind;
    for (unsigned n = 2 * kStrictClasses; n < 32; ++n) ++behind[order[n]];
    CHECK(behind == std::map<unsigned, unsigned>{{12, 2}, {13, 2}, {14, 2}, {15, 2}});
}

// The lower class never gets more than what the higher one leaves: here a third of the rate.
TEST_CASE("scheduler: a strict class under its rate loses nothing to one that has always packets", "[qos]") {
    SchedulerRig rig(scheduler_with({strict_class(0), strict_class(1)}), random_length(60, 1514));
    rig.length[1] = [] { return 60u; };  // small ones, which would slip in
    constexpr double kSeconds = 4;
    double due = 0;
    std::uint64_t offered = 0;
    const std::uint64_t end = rig.now + static_cast<std::uint64_t>(kSeconds * kSchedulerHz);
    for (const std::uint64_t begin = rig.now; rig.now < end; rig.wait(20e-6)) {
        due = 66e6 / 8 * static_cast<double>(rig.now - begin) / kSchedulerHz;
        while (static_cast<double>(offered) < due) {
            Scheduled packet{reinterpret_cast<void*>(rig.sent[0] + 1), rig.length[0](), 0, 0};
            REQUIRE(rig.scheduler.enqueue(rig.scheduler.queue_of(0), packet));
            ++rig.sent[0];
            offered += packet.bytes;
        }
        rig.fill(1);
        rig.go();
    }
    CHECK(rig.sent[0] - rig.left[0] <= 2);
    CHECK(std::abs(static_cast<double>(rig.bytes[0] + rig.bytes[1]) * 8 / kSeconds / 100e6 - 1) < 0.01);
}

TEST_CASE("scheduler: weights hold within 3 %, whatever the frames' lengths", "[qos]") {
    struct Case {
        const char* what;
        std::vector<unsigned> weights;
        std::array<std::uint32_t, 4> least, most;
    };
    const Case cases[] = {
        {"equal", {1, 1, 1, 1}, {60, 60, 60, 60}, {1514, 1514, 1514, 1514}},
        {"powers", {8, 4, 2, 1}, {1514, 1514, 1514, 1514}, {1514, 1514, 1514, 1514}},
        {"no common factor", {97, 89, 7, 1}, {60, 60, 60, 60}, {9018, 9018, 9018, 9018}},
        {"long ones for the small weight", {1000, 10, 1}, {60, 1000, 9018}, {60, 1514, 9018}},
        {"small ones for the small weight", {70, 20, 10}, {9018, 1514, 60}, {9018, 1514, 60}},
    };
    for (const Case& c : cases) {
        INFO(c.what);
        std::vector<SchedulerConfig::Class> classes;
        double sum = 0;
        for (const unsigned weight : c.weights) {
            classes.push_back(weighted_class(weight));
            sum += weight;
        }
        SchedulerRig rig(scheduler_with(classes, 10'000'000'000));
        for (unsigned n = 0; n < classes.size(); ++n) rig.length[n] = random_length(c.least[n], c.most[n]);
        for (unsigned step = 0; step < 200'000; ++step, rig.wait(20e-6)) {
            for (unsigned n = 0; n < classes.size(); ++n) rig.fill(n);
            rig.go();
        }
        double all = 0;
        for (const std::uint64_t bytes : rig.bytes) all += static_cast<double>(bytes);
        for (unsigned n = 0; n < classes.size(); ++n) {
            INFO("class " << n << ": " << static_cast<double>(rig.bytes[n]) / all);
            CHECK(std::abs(static_cast<double>(rig.bytes[n]) / all / (c.weights[n] / sum) - 1) < 0.03);
        }
    }
}

TEST_CASE("scheduler: a weighted class that was silent gets its share and no more", "[qos]") {
    SchedulerRig rig(scheduler_with({weighted_class(1), weighted_class(1)}));
    for (unsigned step = 0; step < 10'000; ++step, rig.wait(1e-4)) {
        rig.fill(0);
        rig.go();
    }
    const std::uint64_t before = rig.bytes[0];
    for (unsigned step = 0; step < 10'000; ++step, rig.wait(1e-4)) {
        rig.fill(0);
        rig.fill(1);
        rig.go();
    }
    CHECK(std::abs(static_cast<double>(rig.bytes[0] - before) / static_cast<double>(rig.bytes[1]) - 1) < 0.01);
}

TEST_CASE("scheduler: the rate holds, by frames or by the wire, however rarely the lcore comes round", "[qos]") {
    for (const bool whole_wire : {false, true})
        for (const std::uint64_t rate : {8'000ull, 100'000'000ull, 9'999'999'999ull, 1'000'000'000'000ull})
            for (const double frames_a_look : {0.01, 1.7, 25.0}) {
                INFO(rate << " bit/s, " << frames_a_look << " frames a look, whole wire: " << whole_wire);
                SchedulerRig rig({rate, 0, whole_wire, {strict_class(0)}}, [] { return 500u; });
                const double frame_s = (whole_wire ? 524 : 500) * 8.0 / static_cast<double>(rate);
                // A millisecond, or two frames of 1538 bytes, is what it makes up for.
                if (frames_a_look * frame_s * kSchedulerHz < 1) continue;
                if (frames_a_look * frame_s > std::max(0.001, 2 * 1538 * 8.0 / static_cast<double>(rate))) continue;
                rig.fill(0);
                while (!rig.go().empty()) rig.fill(0);  // what it had saved up
                const std::uint64_t begin = rig.now, sent = rig.bytes[0];
                for (unsigned look = 0; look < 200'000; ++look) {
                    rig.wait(frames_a_look * frame_s);
                    rig.fill(0);
                    rig.go();
                }
                const double seconds = static_cast<double>(rig.now - begin) / kSchedulerHz;
                const double packets = static_cast<double>(rig.bytes[0] - sent) / 500;
                CHECK(std::abs(packets * frame_s / seconds - 1) < 0.01);
            }
}

TEST_CASE("scheduler: after a silence a millisecond of the rate leaves at once, and no more", "[qos]") {
    SchedulerRig rig(scheduler_with({strict_class(0)}));
    rig.fill(0, Scheduler::kSlots);
    std::size_t frames = 0;
    for (std::size_t n; (n = rig.go().size()) != 0;) frames += n;
    CHECK(frames == 13);  // 12500 bytes, and the frame that overdraws
    rig.wait(40e-6);      // half of its time
    CHECK(rig.go().empty());
    rig.wait(41e-6);
    CHECK(rig.go().size() == 1);
}

TEST_CASE("scheduler: an lcore that comes late makes up for a burst, however long that is", "[qos]") {
    SchedulerRig rig({100'000'000, 1'250'000, false, {strict_class(0)}}, [] { return 1250u; });
    while (rig.fill(0, 100), !rig.go().empty()) {
    }
    const std::uintptr_t before = rig.left[0];
    for (unsigned look = 0; look < 20; ++look) {
        rig.wait(look % 2 == 0 ? 0.02 : 0.18);  // 0.1 s is the burst
        while (rig.fill(0, 100), !rig.go().empty()) {
        }
    }
    CHECK(std::abs(static_cast<double>(rig.left[0] - before) - 10 * (0.02 + 0.1) * 10'000) <= 20);
}

TEST_CASE("scheduler: a short frame on the wire counts as 60 bytes and the gap", "[qos]") {
    SchedulerRig rig({std::uint64_t{84} * 8 * 1000, 0, true, {strict_class(0)}}, [] { return 42u; });
    rig.fill(0, 1000);
    while (!rig.go().empty()) {
    }
    const std::uintptr_t before = rig.left[0];
    for (unsigned step = 0; step < 1000; ++step) {
        rig.wait(1e-4);
        rig.go();
    }
    CHECK(std::abs(static_cast<double>(rig.left[0] - before) - 100) <= 1);
}

TEST_CASE("scheduler: a full queue refuses and keeps what it has, others go on", "[qos]") {
    SchedulerRig rig(scheduler_with({strict_class(0), weighted_class(1)}, 1'000'000'000'000));
    for (unsigned n = 0; n < Scheduler::kSlots; ++n) REQUIRE(rig.put(1));
    CHECK_FALSE(rig.put(1));
    CHECK(rig.scheduler.size(rig.scheduler.queue_of(1)) == Scheduler::kSlots);
    CHECK(rig.put(0));
    CHECK(rig.go(2) == std::vector<unsigned>{0, 1});
    CHECK(rig.put(1));
    CHECK_FALSE(rig.put(1));
    std::size_t frames = 0;
    for (std::size_t n; rig.wait(1e-3), (n = rig.go().size()) != 0;) frames += n;
    CHECK(frames == Scheduler::kSlots);
    CHECK(rig.scheduler.empty());
}

TEST_CASE("scheduler: what is nobody's class goes before and behind all of them", "[qos]") {
    SchedulerRig rig(scheduler_with({strict_class(0), weighted_class(1)}));
    Scheduled packet{nullptr, 100, 0, 7};
    REQUIRE(rig.scheduler.enqueue(Scheduler::kLastQueue, packet));
    rig.fill(0, 1);
    rig.fill(1, 1);
    packet.traffic_class = 9;
    REQUIRE(rig.scheduler.enqueue(Scheduler::kFirstQueue, packet));
    std::array<Scheduled, 8> out;
    REQUIRE(rig.scheduler.dequeue(rig.now + kSchedulerHz, out) == 4);
    CHECK((out[0].traffic_class == 9 && out[1].traffic_class == 0 && out[2].traffic_class == 1 &&
           out[3].traffic_class == 7));
}

// Against the obvious: a list of packets, the best one looked for each time.
TEST_CASE("scheduler: strict classes and what is left agree with a slow oracle", "[qos]") {
    auto random = test::random_engine();
    SchedulerRig rig(scheduler_with({strict_class(5), strict_class(1), strict_class(8)}, 1'000'000'000'000));
    constexpr std::array<unsigned, 3> kPriority = {5, 1, 8};
    std::array<std::deque<unsigned>, 3> waiting;
    for (unsigned step = 0; step < 50'000; ++step) {
        rig.wait(1e-6);
        for (std::uint64_t k = random() % 8; k > 0; --k) {
            const auto n = static_cast<unsigned>(random() % 3);
            if (rig.put(n)) waiting[n].push_back(step);
        }
        for (const unsigned of : rig.go(random() % 5)) {
            unsigned best = 3;
            for (unsigned n = 0; n < 3; ++n)
                if (!waiting[n].empty() && (best == 3 || kPriority[n] < kPriority[best])) best = n;
            REQUIRE(of == best);
            waiting[best].pop_front();
        }
    }
}

TEST_CASE("scheduler: what no scheduler can do is refused", "[qos]") {
    const auto refused = [](const SchedulerConfig& config) {
        try {
            Scheduler scheduler(config, kSchedulerHz);
            return false;
        } catch (const std::invalid_argument&) {
            return true;
        }
    };
    CHECK_FALSE(refused(scheduler_with({strict_class(11), weighted_class(1000)})));
    CHECK(refused(scheduler_with({strict_class(12)})));
    CHECK(refused(scheduler_with({strict_class(1), strict_class(1)})));
    CHECK(refused(scheduler_with({weighted_class(0)})));
    CHECK(refused(scheduler_with({weighted_class(1001)})));
    CHECK(refused(scheduler_with(
        {weighted_class(1), weighted_class(1), weighted_class(1), weighted_class(1), weighted_class(1)})));
    CHECK(refused(scheduler_with({strict_class(0)}, 0)));
    CHECK(refused({100'000'000, 3'075, false, {strict_class(0)}}));
    CHECK(refused({100'000'000, 125'000'001, false, {strict_class(0)}}));
    CHECK(refused(scheduler_with({strict_class(0)}, 7'999)));
    CHECK(refused(scheduler_with({strict_class(0)}, 1'000'000'000'001)));
}

}  // namespace cachewire::qos
