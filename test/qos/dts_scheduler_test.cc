// SPDX-License-Identifier: BSD-3-Clause
// The cases of DPDK's former test plan for qos_sched, as far as a port has one level of classes (test/CASES.md).
#include "qos/scheduler.h"

#include <algorithm>
#include <cmath>

#include "scheduler_rig.h"

namespace cachewire::qos {

namespace {

// Offers each class so many bytes a second, evenly, for `seconds`. What a full queue refuses is `refused`.
std::vector<unsigned> offer_all(SchedulerRig& rig, const std::vector<double>& bytes_a_second, double seconds,
                                double look_s) {
    std::vector<double> due(bytes_a_second.size());
    std::vector<unsigned> refused(bytes_a_second.size());
    const std::uint64_t end = rig.now + static_cast<std::uint64_t>(seconds * kSchedulerHz);
    for (; rig.now < end; rig.wait(look_s)) {
        for (unsigned n = 0; n < due.size(); ++n)
            for (due[n] += bytes_a_second[n] * look_s; due[n] >= 70; due[n] -= 70)
                if (!rig.put(n)) ++refused[n];
        while (!rig.go().empty()) {
        }
    }
    return refused;
}

}  // namespace

TEST_CASE("scheduler dts: eight strict classes, all over the rate: the first has it, others what it leaves", "[qos]") {
    constexpr double kLineBytes = 10e9 / 8;
    struct Case {
        const char* what;
        double offered;             // of each class, bytes a second
        double rate;                // the port's
        std::vector<double> share;  // of what was offered
    };
    const Case cases[] = {
        {"the whole line against a 4096th of it", kLineBytes / 8, kLineBytes / 4096, {8.0 / 4096, 0, 0, 0, 0, 0, 0, 0}},
        {"a hundredth of the line", kLineBytes / 800, kLineBytes / 409.6, {1, 0.953125, 0, 0, 0, 0, 0, 0}},
        {"room for five and a half", kLineBytes / 800, kLineBytes * 5.5 / 800, {1, 1, 1, 1, 1, 0.5, 0, 0}},
    };
    for (const Case& c : cases) {
        INFO(c.what);
        std::vector<SchedulerConfig::Class> classes;
        for (unsigned n = 0; n < 8; ++n) classes.push_back(strict_class(n));
        SchedulerRig rig(scheduler_with(classes, static_cast<std::uint64_t>(c.rate * 8)), [] { return 70u; });
        offer_all(rig, std::vector(8, c.offered), 0.3, 10e-6);  // queues are full by now
        const auto before = rig.bytes;
        const auto refused = offer_all(rig, std::vector(8, c.offered), 1, 10e-6);
        for (unsigned n = 0; n < 8; ++n) {
            const double share = static_cast<double>(rig.bytes[n] - before[n]) / c.offered;
            INFO("class " << n << ": " << share);
            CHECK(std::abs(share - c.share[n]) <= 0.01 * std::max(c.share[0], 0.01));
            CHECK((refused[n] == 0) == (c.share[n] == 1));
        }
    }
}

TEST_CASE("scheduler dts: sixteen classes under the rate lose nothing", "[qos]") {
    std::vector<SchedulerConfig::Class> classes;
    for (unsigned n = 0; n < kStrictClasses; ++n) classes.push_back(strict_class(n));
    for (unsigned n = 0; n < kWeightedClasses; ++n) classes.push_back(weighted_class(1 + 9 * n));
    constexpr double kEach = 10e9 / 8 / 1600;  // a hundredth of the line in all, and the port has 2.44 of them
    SchedulerRig rig(scheduler_with(classes, 244'140'625), [] { return 70u; });
    for (const unsigned refused : offer_all(rig, std::vector(16, kEach), 1, 10e-6)) CHECK(refused == 0);
    for (unsigned n = 0; n < 16; ++n) CHECK(rig.sent[n] - rig.left[n] <= 1);
}

TEST_CASE("scheduler dts: three of four classes of one weight send the same, the silent one costs nothing", "[qos]") {
    SchedulerRig rig(scheduler_with({weighted_class(1), weighted_class(1), weighted_class(1), weighted_class(1)},
                                    10'000'000'000 / 4096),
                     [] { return 70u; });
    offer_all(rig, {1e8, 1e8, 1e8, 0}, 2, 1e-4);
    const std::uint64_t all = rig.bytes[0] + rig.bytes[1] + rig.bytes[2];
    CHECK(std::abs(static_cast<double>(all) * 8 / 2 / (10e9 / 4096) - 1) < 0.02);  // the first burst on top
    for (unsigned n = 0; n < 3; ++n)
        CHECK(std::abs(static_cast<double>(rig.left[n] * 3) - static_cast<double>(all) / 70) <= 3);
    CHECK(rig.bytes[3] == 0);
}

// There, strict classes lose some (1-5 %) in this case.
TEST_CASE("scheduler dts: sixteen classes over the rate: twelve strict ones lose nothing, four share the rest",
          "[qos]") {
    std::vector<SchedulerConfig::Class> classes;
    for (unsigned n = 0; n < kStrictClasses; ++n) classes.push_back(strict_class(n));
    for (unsigned n = 0; n < kWeightedClasses; ++n) classes.push_back(weighted_class(1));
    constexpr double kRate = 1e9 / 8, kEach = kRate * 13.89 / 11.67 / 16;
    SchedulerRig rig(scheduler_with(classes, 1'000'000'000), [] { return 70u; });
    offer_all(rig, std::vector(16, kEach), 0.5, 10e-6);
    const auto before = rig.bytes;
    const auto refused = offer_all(rig, std::vector(16, kEach), 1, 10e-6);
    for (unsigned n = 0; n < kStrictClasses; ++n) {
        CHECK(refused[n] == 0);
        CHECK(rig.scheduler.size(rig.scheduler.queue_of(n)) <= 1);
    }
    const double rest = (kRate - 12 * kEach) / 4;
    for (unsigned n = kStrictClasses; n < 16; ++n) {
        CHECK(refused[n] > 0);
        CHECK(std::abs(static_cast<double>(rig.bytes[n] - before[n]) / rest - 1) < 0.03);
    }
}

}  // namespace cachewire::qos
