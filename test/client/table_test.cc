// SPDX-License-Identifier: BSD-3-Clause
#include "client/table.h"

#include <string>
#include <utility>
#include <vector>

#include "client/views.h"
#include "support/catch.h"

using namespace cachewire::client;

TEST_CASE("table: numbers are grouped in thousands", "[client]") {
    const std::vector<std::pair<Json, std::string>> cases = {
        {0u, "0"},
        {999u, "999"},
        {1000u, "1,000"},
        {1234567u, "1,234,567"},
        {-1234, "-1,234"},
        {-123, "-123"},
        {"1234.5", "1,234.5"},
        {18446744073709551615u, "18,446,744,073,709,551,615"},
        {"wan1", "wan1"},
        {"10.0.0.1", "10.0.0.1"},
        {nullptr, "-"},
        {Json::array({1, 2000}), "1, 2,000"},
        {"", ""},
        {"-", "-"},
        {Json::array(), "-"},
        {1234.56, "1,234.6"},
    };
    for (const auto& [value, text] : cases) CHECK(cell(value) == text);
    CHECK(duration(59) == "00:00:59");
    CHECK(duration(93784) == "1d 02:03:04");
}

TEST_CASE("table: text columns left, number columns right, short rows filled", "[client]") {
    Table table({"port", "rx", "note"});
    table.add({"wan", 1234567u, "a"});
    table.add({"lan10", "-", ""});
    table.add({"x"});
    CHECK(table.text() ==
          "port          rx  note\n"
          "wan    1,234,567  a\n"
          "lan10          -\n"
          "x\n");
}

TEST_CASE("table: any answer can be shown", "[client]") {
    CHECK(generic_text({{"name", "x"}, {"count", 1000u}}) == "name   x\ncount  1,000\n");
    CHECK(generic_text({{"mbufs", {{"size", 10u}, {"free", 9u}}}, {"fib", {{"bytes", 5u}}}}) ==
          "       size  free  bytes\n"
          "mbufs    10     9\n"
          "fib                    5\n");
    CHECK(generic_text({{"0", {{"name", "red"}, {"id", 10u}}}, {"1", {{"name", "blue"}, {"id", 7u}}}}) ==
          "name  id\nred   10\nblue   7\n");
    CHECK(generic_text(Json::object()) == "(none)\n");
    CHECK(generic_text({{"a", 1u}, {"b", {{"c", 2u}}}}) == "a  1\n\nb:\nc  2\n");
}

TEST_CASE("views: drops are shown by frequency, with their meaning, zero ones left out", "[client]") {
    const View& view = *find_view("drops");
    CHECK(view.text({{"acl_deny", 5u}, {"no_route", 70000u}, {"policer", 0u}, {"total", 70005u}}, false) ==
          "reason    packets  meaning\n"
          "no_route   70,000  no route to the destination in the tenant's VRF\n"
          "acl_deny        5  a deny rule of the tenant's list\n"
          "total      70,005\n");
    CHECK(view.text({{"acl_deny", 0u}, {"total", 0u}}, false) == "no packet dropped\n");
}

TEST_CASE("views: the ledger says whether it closes", "[client]") {
    const View& view = *find_view("ledger");
    CHECK(view.text({{"rx", 10u}, {"unaccounted", 0u}}, false).find("the ledger closes") != std::string::npos);
    CHECK(view.text({{"rx", 10u}, {"unaccounted", -3}}, false).find("NOT CLOSED") != std::string::npos);
}

TEST_CASE("views: twins are shown with whether they are there; counts of a namespace that went are left open",
          "[client]") {
    const View& view = *find_view("twins");
    const Json twins = Json::parse(
        R"({"0":{"interface":"lan","tenant":"edge","ifname":"cw-lan","netns":"edge","state":"there","to_kernel":5,"from_kernel":7,"refused":0,"netns_routes":3,"netns_neighbors":1},
            "1":{"interface":"wan","tenant":"far","ifname":"cw-wan","netns":"away","state":"lost","to_kernel":0,"from_kernel":0,"refused":2}})");
    CHECK(view.text(twins, false) ==
          "interface  tenant  ifname  netns  state  to kernel  from kernel  refused  netns routes  neighbors\n"
          "lan        edge    cw-lan  edge   there          5            7        0             3          1\n"
          "wan        far     cw-wan  away   lost           0            0        2             -          -\n");
    CHECK(view.text(Json::object(), false) == "no twins\n");
    const Json rate = rates(twins, twins, 2)["0"];
    CHECK(rate["to_kernel"] == 0);
    CHECK(rate["netns_routes"] == 3);
}

TEST_CASE("views: --rate of qos makes rates of counters and leaves what waits as it is", "[client]") {
    const Json before = Json::parse(
        R"({"policers":{},"classes":{"0":{"port":"wan","scheduler":1,"packets":1000,"bytes":64000,"tx_dropped":10,"queued":100,"rate_bps":1000000,"order":"last"}}})");
    Json after = before;
    after["classes"]["0"].update(Json{{"packets", 3000u}, {"bytes", 192000u}, {"tx_dropped", 30u}, {"queued", 40u}});
    const Json rate = rates(before, after, 2)["classes"]["0"];
    CHECK(rate["packets"] == 1000);
    CHECK(rate["bytes"] == 64000);
    CHECK(rate["tx_dropped"] == 10);
    CHECK(rate["queued"] == 40);
    CHECK(rate["rate_bps"] == 1000000);
    CHECK(rate["scheduler"] == 1);
}

TEST_CASE("views: rates are differences a second, ratios are the interval's", "[client]") {
    const Json before = {{"rx", {{"packets", 100u}, {"cycles", 100000u}, {"cycles_per_packet", 1000u}}},
                         {"held", 5u},
                         {"link", "up"},
                         {"gone", 1u},
                         {"busy_percent", 1u},
                         {"busy_cycles", 10u},
                         {"total_cycles", 1000u}};
    const Json after = {{"rx", {{"packets", 300u}, {"cycles", 110000u}, {"cycles_per_packet", 366u}}},
                        {"held", 7u},
                        {"link", "down"},
                        {"new", 9u},
                        {"busy_percent", 4u},
                        {"busy_cycles", 60u},
                        {"total_cycles", 1100u}};
    CHECK(rates(before, after, 2.0) == Json{{"rx", {{"packets", 100u}, {"cycles", 5000u}, {"cycles_per_packet", 50u}}},
                                            {"held", 7u},
                                            {"link", "down"},
                                            {"busy_percent", 50u},
                                            {"busy_cycles", 25u},
                                            {"total_cycles", 50u}});
}
