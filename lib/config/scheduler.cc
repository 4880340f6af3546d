// SPDX-License-Identifier: BSD-3-Clause
// One scheduler: a port, its rate, and in which order its classes go.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "config/sections.h"
#include "config/units.h"

namespace cachewire::config {
namespace {

constexpr Key kScheduler[] = {{"port"}, {"rate"}, {"burst"}, {"accounting"}, {"classes"}};
constexpr Key kScheduledClass[] = {{"name"}, {"priority"}, {"weight"}};
constexpr Choice<Accounting> kSchedulerAccounting[] = {{"l1", Accounting::l1}, {"l2", Accounting::l2}};
constexpr std::uint64_t kMaxSchedulerWeight = 1000;

constexpr std::uint64_t kLeastSchedulerBurst = 3076,
                        kMostSchedulerBurst = 256u << 20;  // two full frames and their gaps, or nothing moves

void read_burst_of(Reporter& reporter, const std::optional<Value>& value, Scheduler& scheduler) {
    constexpr std::string_view kBurstAllowed = "auto, or 3076B to 256MiB, in B, KiB, MiB, GiB, kB, MB or GB";
    if (is_auto(value)) return;
    const auto burst = read_parsed(reporter, value, kBurstAllowed, parse_size, [](std::uint64_t bytes) {
        return bytes < kLeastSchedulerBurst || bytes > kMostSchedulerBurst ? kOutOfRange : "";
    });
    if (!burst) return;
    const std::uint64_t most = std::max(scheduler.rate_bps * 10 / 8, kLeastSchedulerBurst);
    if (scheduler.rate_bps != 0 && *burst > most)
        reporter.error(*value, fmt::format("longer than ten seconds at the rate; allowed: auto, or at most {}B", most));
    scheduler.burst_bytes = *burst;
}

// What a scheduler's classes have taken.
struct Order {
    std::array<std::string, kStrictClasses> strict;  // the name of who has the priority
    unsigned weighted = 0;
    std::vector<std::size_t> classes;
};

void take_priority(Reporter& reporter, const Value& where, const std::string& name, std::uint8_t priority,
                   Order& order) {
    std::string& holder = order.strict[priority];
    if (!holder.empty())
        reporter.error(where, fmt::format("priority {} is class '{}' already; allowed: each of 0 to {} once", priority,
                                          holder, kStrictClasses - 1));
    else
        holder = name;
}

void read_order(Reporter& reporter, const MapReader& map, const TrafficClass& of, ScheduledClass& to, Order& order) {
    const auto priority = map.get("priority"), weight = map.get("weight");
    if (priority && weight)
        return reporter.error(*weight, "a class is strict or weighted; allowed: `priority` or `weight`");
    if (weight) {
        if (const auto number = read_integer(reporter, weight, 1, kMaxSchedulerWeight))
            to.weight = static_cast<std::uint32_t>(*number);
        if (++order.weighted == kWeightedClasses + 1)
            reporter.error(*weight, fmt::format("more than {} weighted classes; allowed: {} strict ones and {} "
                                                "weighted ones",
                                                kWeightedClasses, kStrictClasses, kWeightedClasses));
        return;
    }
    if (priority) {
        const auto number = read_integer(reporter, priority, 0, kStrictClasses - 1);
        if (!number) return;
        to.priority = static_cast<std::uint8_t>(*number);
    } else {
        to.priority = of.priority;
    }
    if (!to.priority) {
        if (!map.has_later_keys())
            reporter.error(map.self(),
                           "neither strict nor weighted; allowed: `priority` here or in the class, or "
                           "`weight`");
        return;
    }
    take_priority(reporter, priority ? *priority : map.self(), of.name, *to.priority, order);
}

void read_scheduled_class(Loading& loading, const Value& item, Scheduler& scheduler, Order& order) {
    Reporter& reporter = loading.reporter;
    const MapReader map(reporter, item, kScheduledClass);
    const auto name = map.require("name");
    const auto index = loading.classes.resolve(reporter, name);
    if (!index) return;
    if (std::find(order.classes.begin(), order.classes.end(), *index) != order.classes.end())
        return reporter.error(*name, "stands in this scheduler already");
    order.classes.push_back(*index);
    ScheduledClass to{*index, std::nullopt, 0};
    read_order(reporter, map, loading.config.classes[*index], to, order);
    scheduler.classes.push_back(to);
}

}  // namespace

void read_scheduler(Loading& loading, const Value& item) {
    Reporter& reporter = loading.reporter;
    const MapReader map(reporter, item, kScheduler);
    Scheduler scheduler;
    const auto name = map.require("port");
    const auto port = loading.ports.resolve(reporter, name);
    read_bit_rate(reporter, map.require("rate"), scheduler.rate_bps);
    read_burst_of(reporter, map.get("burst"), scheduler);
    read_choice(reporter, map.get("accounting"), scheduler.accounting, kSchedulerAccounting);
    Order order;
    const auto classes = map.require("classes");
    const auto items = read_list(reporter, classes);
    if (classes && items.empty()) reporter.error(*classes, "no class, so nothing would be before anything else");
    for (const Value& each : items) read_scheduled_class(loading, each, scheduler, order);
    if (!port) return;
    scheduler.port = *port;
    for (const Scheduler& other : loading.config.schedulers)
        if (other.port == *port) return reporter.error(*name, "has a scheduler already; allowed: one a port");
    loading.config.schedulers.push_back(std::move(scheduler));
}

}  // namespace cachewire::config
