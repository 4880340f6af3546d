// SPDX-License-Identifier: BSD-3-Clause
#include "app/stats_table.h"

#include <sstream>

#include "pipeline/drop_reason.h"
#include "support/catch.h"

using namespace cachewire;
using telemetry::Json;

namespace {

// What a running cachewire would answer, with two ports on two pages.
struct FakeEndpoints {
    std::uint64_t rx = 0, tx = 0;
    std::map<std::string, std::uint64_t> drops = {{"no_route", 0}, {"acl_deny", 0}};
    std::int64_t unaccounted = 0;
    std::uint64_t originated = 0;

    Json answer(const std::string& name, std::string_view parameters) const {
        if (name == "/cachewire/port/list" && parameters.empty()) return {{"0", {{"name", "lan"}}}, {"next", 1u}};
        if (name == "/cachewire/port/list") return {{"1", {{"name", "a-very-long-port-name"}}}};
        if (name == "/cachewire/port/stats" && parameters == "lan")
            return {{"rx_packets", rx}, {"tx_packets", tx}, {"rx_missed", 3u},    {"rx_errors", 4u},
                    {"rx_nombuf", 5u},  {"tx_dropped", 6u}, {"driver", "net_tap"}};
        if (name == "/cachewire/port/stats") return {{"rx_packets", 0u}, {"tx_packets", 0u}};
        std::uint64_t total = 0;
        Json reasons = Json::object();
        for (const auto& [reason, n] : drops) {
            reasons[reason] = n;
            total += n;
        }
        reasons["total"] = total;
        if (name == "/cachewire/drops") return reasons;
        return {{"rx", rx},         {"tx", tx},
                {"dropped", total}, {"punted", 0u},
                {"consumed", 0u},   {"originated", originated},
                {"held", 0u},       {"unaccounted", unaccounted}};
    }
};

app::StatsTable table_of(const FakeEndpoints& endpoints) {
    return app::StatsTable([&endpoints](const std::string& name, std::string_view parameters) {
        return endpoints.answer(name, parameters);
    });
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("stats table: totals at once, rates from the second table on", "[app]") {
    FakeEndpoints endpoints;
    endpoints.rx = 1'234'567;
    endpoints.tx = 999;
    auto table = table_of(endpoints);
    CHECK(
        contains(table.next(10), "lan              1,234,567           -           999           -      12       6\n"));
    endpoints.rx += 5'000'000;
    endpoints.tx += 100;
    CHECK(
        contains(table.next(12), "lan              6,234,567  2.500 Mpps         1,099      50 pps      12       6\n"));
    endpoints.tx += 50'000;
    CHECK(
        contains(table.next(13), "lan              6,234,567       0 pps        51,099   50.0 kpps      12       6\n"));
    CHECK(contains(table.next(14), "a-very-long~"));
}

TEST_CASE("stats table: what is dropped now comes first, what was dropped stays", "[app]") {
    FakeEndpoints endpoints;
    auto table = table_of(endpoints);
    CHECK(contains(table.next(1), "nothing dropped\n"));
    endpoints.drops = {{"no_route", 1000}, {"acl_deny", 5}};
    const std::string first = table.next(2);
    CHECK(first.find("no_route") < first.find("acl_deny"));
    endpoints.drops["acl_deny"] += 7;
    const std::string second = table.next(3);
    INFO(second);
    CHECK(contains(second, "acl_deny                        12       7 pps  a deny rule of the tenant's list\n"));
    CHECK(contains(second, "no_route                     1,000       0 pps  "));
    CHECK(second.find("acl_deny") < second.find("no_route"));
}

TEST_CASE("stats table: the ledger stands as an equation", "[app]") {
    FakeEndpoints endpoints;
    endpoints.rx = 1500;
    endpoints.tx = 1000;
    endpoints.drops = {{"no_route", 500}};
    auto table = table_of(endpoints);
    CHECK(contains(table.next(1), "\nledger: rx 1,500 = tx 1,000 + dropped 500 + held 0, unaccounted 0\n"));
    endpoints.originated = 2;
    endpoints.unaccounted = -1;
    CHECK(contains(table.next(2),
                   "ledger: rx 1,500 + originated 2 = tx 1,000 + dropped 500\n"
                   "        + held 0, unaccounted -1\n"));
}

TEST_CASE("stats table: fits 80 columns with every drop reason and large numbers", "[app]") {
    FakeEndpoints endpoints;
    endpoints.rx = endpoints.tx = 99'999'999'999;
    for (const auto& reason : pipeline::kDropReasonTexts) endpoints.drops[std::string(reason.name)] = 999'999'999'999;
    auto table = table_of(endpoints);
    table.next(1);
    std::istringstream lines(table.next(2));
    unsigned count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
        INFO(line);
        CHECK(line.size() <= 80);
    }
    CHECK(count <= 24);
}
