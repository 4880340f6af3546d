// SPDX-License-Identifier: BSD-3-Clause
// Schedulers: what is read, and what is refused.
#include <fmt/format.h>

#include "config/load.h"
#include "support/catch.h"
#include "wrong_files.h"

namespace cachewire {

namespace {

// Line 5 has the schedulers, the first from column 16 on.
std::string scheduler_file(const std::string& scheduler) {
    std::string classes;
    for (char name = 'a'; name <= 'h'; ++name) classes += fmt::format("{{name: {}}}, ", name);
    return fmt::format("{}qos:\n  classes: [{}{{name: gold, priority: 3}}]\n  schedulers: [{}]\n", test::kPort, classes,
                       scheduler);
}

std::string scheduler_errors(const std::string& scheduler) {
    const auto result = config::load_text(scheduler_file(scheduler), "f.yaml");
    std::string errors = result.config ? "taken\n" : "";
    for (const auto& diagnostic : result.diagnostics)
        errors += config::to_string(diagnostic).substr(std::string("f.yaml:").size()) + "\n";
    return errors;
}

struct WrongScheduler {
    const char* scheduler;
    const char* errors;
};

const WrongScheduler kWrongSchedulers[] = {
    {"{rate: 1Gbit, classes: [{name: a, priority: 0}]}", "5:16: error: qos.schedulers[0].port: this key is missing\n"},
    {"{port: wan, classes: [{name: a, priority: 0}]}", "5:16: error: qos.schedulers[0].rate: this key is missing\n"},
    {"{port: wan, rate: 1Gbit}", "5:16: error: qos.schedulers[0].classes: this key is missing\n"},
    {"{port: lan, rate: 1Gbit, classes: [{name: a, weight: 1}]}",
     "5:23: error: qos.schedulers[0].port: no port is named 'lan'; did you mean 'wan'?\n"},
    {"{port: wan, rate: 1000, classes: [{name: a, weight: 1}]}",
     "5:34: error: qos.schedulers[0].rate: '1000' has no unit; allowed: 8kbit to 1Tbit, in bit, kbit, Mbit, Gbit or "
     "Tbit\n"},
    {"{port: wan, rate: 0bit, classes: [{name: a, weight: 1}]}",
     "5:34: error: qos.schedulers[0].rate: '0bit' is out of range; allowed: 8kbit to 1Tbit, in bit, kbit, Mbit, Gbit "
     "or Tbit\n"},
    {"{port: wan, rate: 1Gbit, burst: 3075B, classes: [{name: a, weight: 1}]}",
     "5:48: error: qos.schedulers[0].burst: '3075B' is out of range; allowed: auto, or 3076B to 256MiB, in B, KiB, "
     "MiB, GiB, kB, MB or GB\n"},
    {"{port: wan, rate: 8kbit, burst: 10001B, classes: [{name: a, weight: 1}]}",
     "5:48: error: qos.schedulers[0].burst: longer than ten seconds at the rate; allowed: auto, or at most 10000B\n"},
    {"{port: wan, rate: 1Gbit, accounting: l3, classes: [{name: a, weight: 1}]}",
     "5:53: error: qos.schedulers[0].accounting: 'l3' is not known; allowed: l1 | l2\n"},
    {"{port: wan, rate: 1Gbit, classes: []}",
     "5:50: error: qos.schedulers[0].classes: no class, so nothing would be before anything else\n"},
    {"{port: wan, rate: 1Gbit, classes: [{name: nobody, weight: 1}]}",
     "5:58: error: qos.schedulers[0].classes[0].name: no class is named 'nobody'; known: a, b, c, d, e, f, g, "
     "gold, h\n"},
    {"{port: wan, rate: 1Gbit, classes: [{name: a}]}",
     "5:51: error: qos.schedulers[0].classes[0]: neither strict nor weighted; allowed: `priority` here or in the "
     "class, or `weight`\n"},
    {"{port: wan, rate: 1Gbit, classes: [{name: a, priority: 0, weight: 1}]}",
     "5:82: error: qos.schedulers[0].classes[0].weight: a class is strict or weighted; allowed: `priority` or "
     "`weight`\n"},
    {"{port: wan, rate: 1Gbit, classes: [{name: a, priority: 12}]}",
     "5:71: error: qos.schedulers[0].classes[0].priority: '12' is out of range; allowed: 0 to 11\n"},
    {"{port: wan, rate: 1Gbit, classes: [{name: a, weight: 0}]}",
     "5:69: error: qos.schedulers[0].classes[0].weight: '0' is out of range; allowed: 1 to 1000\n"},
    {"{port: wan, rate: 1Gbit, classes: [{name: a, priority: 1}, {name: b, priority: 1}]}",
     "5:95: error: qos.schedulers[0].classes[1].priority: priority 1 is class 'a' already; allowed: each of 0 to 11 "
     "once\n"},
    {"{port: wan, rate: 1Gbit, classes: [{name: a, priority: 3}, {name: gold}]}",
     "5:75: error: qos.schedulers[0].classes[1]: priority 3 is class 'a' already; allowed: each of 0 to 11 once\n"},
    {"{port: wan, rate: 1Gbit, classes: [{name: a, priority: 1}, {name: a, priority: 2}]}",
     "5:82: error: qos.schedulers[0].classes[1].name: stands in this scheduler already\n"},
    {"{port: wan, rate: 1Gbit, classes: [{name: a, weight: 1}, {name: b, weight: 1}, {name: c, weight: 1}, {name: d, "
     "weight: 1}, {name: e, weight: 1}, {name: f, weight: 1}]}",
     "5:157: error: qos.schedulers[0].classes[4].weight: more than 4 weighted classes; allowed: 12 strict ones and 4 "
     "weighted ones\n"},
    {"{port: wan, rate: 1Gbit, classes: [{name: a, weight: 1}]}, {port: wan, rate: 1Gbit, classes: [{name: b, weight: "
     "1}]}",
     "5:82: error: qos.schedulers[1].port: has a scheduler already; allowed: one a port\n"},
    {"{port: wan, rate: 1Gbit, classes: [{name: a, weight: 1}], queue: 5}",
     "5:74: error: qos.schedulers[0].queue: unknown key; allowed: port, rate, burst, accounting, classes, "
     "description\n"},
};

}  // namespace

TEST_CASE("config: schedulers that can't be are refused", "[config]") {
    for (const WrongScheduler& wrong : kWrongSchedulers) {
        CAPTURE(wrong.scheduler);
        CHECK(scheduler_errors(wrong.scheduler) == wrong.errors);
    }
}

TEST_CASE("config: a scheduler has its port, rate and order", "[config]") {
    const auto result =
        config::load_text(scheduler_file("{port: wan, rate: 2.5Gbit, burst: 2MiB, accounting: l1, description: uplink, "
                                         "classes: [{name: b, priority: "
                                         "0}, {name: gold}, {name: a, weight: 70}, {name: c, weight: 30}]}"),
                          "f.yaml");
    REQUIRE(result.config.has_value());
    REQUIRE(result.config->schedulers.size() == 1);
    const config::Scheduler& scheduler = result.config->schedulers[0];
    CHECK(scheduler.port == 0);
    CHECK(scheduler.rate_bps == 2'500'000'000);
    CHECK(scheduler.burst_bytes == 2u << 20);
    CHECK(scheduler.accounting == config::Accounting::l1);
    REQUIRE(scheduler.classes.size() == 4);
    CHECK(scheduler.classes[0].traffic_class == 1);
    CHECK(scheduler.classes[0].priority == 0);
    CHECK(scheduler.classes[1].priority == 3);
    CHECK_FALSE(scheduler.classes[2].priority);
    CHECK(scheduler.classes[2].weight == 70);
    CHECK(scheduler.classes[3].weight == 30);
}

TEST_CASE("config: twelve strict classes and four weighted ones are taken", "[config]") {
    std::string names, order;
    for (unsigned n = 0; n < 16; ++n) {
        names += fmt::format("{}{{name: c{}}}", n == 0 ? "" : ", ", n);
        order += fmt::format("{}{{name: c{}, {}: {}}}", n == 0 ? "" : ", ", n, n < 12 ? "priority" : "weight",
                             n < 12 ? n : 1);
    }
    const auto text = fmt::format("{}qos: {{classes: [{}], schedulers: [{{port: wan, rate: 1Gbit, classes: [{}]}}]}}\n",
                                  test::kPort, names, order);
    const auto result = config::load_text(text, "f.yaml");
    REQUIRE(result.config.has_value());
    CHECK(result.config->schedulers[0].classes.size() == 16);
}

}  // namespace cachewire
