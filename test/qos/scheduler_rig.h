#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A scheduler by a clock that is the test's, fed and drained by class, with a look at each class's order.
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "qos/scheduler.h"
#include "support/catch.h"
#include "support/random.h"

namespace cachewire::qos {

inline constexpr std::uint64_t kSchedulerHz = 2'100'000'123;

using Length = std::function<std::uint32_t()>;

inline SchedulerConfig::Class strict_class(unsigned priority) { return {priority, 0}; }
inline SchedulerConfig::Class weighted_class(unsigned weight) { return {std::nullopt, weight}; }

// Classes that always have packets, unless a test says otherwise. A packet's address is its number in its class.
struct SchedulerRig {
    Scheduler scheduler;
    std::vector<Length> length;
    std::vector<std::uintptr_t> sent, left;  // by class: numbered so far
    std::vector<std::uint64_t> bytes;        // by class, of what left
    std::uint64_t now = kSchedulerHz;        // so the first look finds the bucket full

    explicit SchedulerRig(
        SchedulerConfig config, const Length& each = [] { return 1000u; })
        : scheduler(config, kSchedulerHz),
          length(config.classes.size(), each),
          sent(config.classes.size()),
          left(config.classes.size()),
          bytes(config.classes.size()) {}

    bool put(unsigned n) {
        Scheduled packet{reinterpret_cast<void*>(sent[n] + 1), length[n](), 0, static_cast<std::uint8_t>(n)};
        if (!scheduler.enqueue(scheduler.queue_of(n), packet)) return false;
        ++sent[n];
        return true;
    }
    void fill(unsigned n, unsigned packets = 40) {
        while (scheduler.size(scheduler.queue_of(n)) < packets && put(n)) {
        }
    }
    // Takes what may go by now; checks that no class is reordered. Returns the classes in the order in which they left.
    std::vector<unsigned> go(std::size_t most = 32) {
        std::array<Scheduled, 32> out;
        const unsigned n = scheduler.dequeue(now, {out.data(), most});
        std::vector<unsigned> classes;
        for (const Scheduled& packet : std::span(out).first(n)) {
            const unsigned of = packet.traffic_class;
            if (reinterpret_cast<std::uintptr_t>(packet.packet) != ++left[of]) FAIL("class " << of << " is reordered");
            bytes[of] += packet.bytes;
            classes.push_back(of);
        }
        return classes;
    }
    void wait(double seconds) { now += static_cast<std::uint64_t>(seconds * static_cast<double>(kSchedulerHz)); }
};

inline Length random_length(std::uint32_t least, std::uint32_t most) {
    return [engine = test::random_engine(),
            spread = std::uniform_int_distribution<std::uint32_t>(least, most)]() mutable { return spread(engine); };
}

inline SchedulerConfig scheduler_with(std::vector<SchedulerConfig::Class> classes,
                                      std::uint64_t rate_bps = 100'000'000) {
    return {rate_bps, 0, false, std::move(classes)};
}

}  // namespace cachewire::qos
