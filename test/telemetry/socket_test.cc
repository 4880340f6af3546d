// SPDX-License-Identifier: BSD-3-Clause
// The real library, the real socket: EAL with telemetry under a file prefix of its own.
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <rte_eal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/sockets.h"
#include "support/catch.h"
#include "support/skip.h"
#include "telemetry/endpoints.h"
#include "telemetry/page.h"

using cachewire::client::TelemetryClient;
using cachewire::telemetry::BadQuery;
using cachewire::telemetry::Endpoints;
using cachewire::telemetry::Json;

namespace {

const std::string& file_prefix() {
    static const std::string prefix = "cwtest" + std::to_string(::getpid());
    return prefix;
}

void ensure_eal_with_telemetry() {
    static const int rc = [] {
        static std::string option = "--file-prefix=" + file_prefix();
        static const char* argv[] = {"test",     option.c_str(), "--no-huge", "-m", "64",
                                     "--no-pci", "--log-level",  "*:4",       "-l", "0"};
        return rte_eal_init(static_cast<int>(std::size(argv)), const_cast<char**>(argv));
    }();
    REQUIRE(rc >= 0);
}

TelemetryClient connect() { return TelemetryClient(cachewire::client::telemetry_path(file_prefix())); }

// What dpdk-telemetry.py prints for a query, or "" where it isn't installed.
std::string ask_dpdk_telemetry(const std::string& query) {
    if (::access("/usr/bin/dpdk-telemetry.py", X_OK) != 0) return "";
    const std::string command = "echo '" + query + "' | /usr/bin/dpdk-telemetry.py -f " + file_prefix() + " 2>&1";
    std::FILE* pipe = ::popen(command.c_str(), "r");
    std::string out;
    char buffer[4096];
    for (std::size_t n; (n = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;) out.append(buffer, n);
    ::pclose(pipe);
    return out;
}

}  // namespace

TEST_CASE("telemetry: what a handler answers arrives as it should", "[telemetry]") {
    ensure_eal_with_telemetry();
    struct Case {
        const char* what;
        Json answer;
        Json arrives;
    };
    const std::vector<Case> cases = {
        {"nothing", Json::object(), Json::object()},
        {"nothing below", {{"l", Json::object()}, {"a", Json::array()}}, {{"l", Json::object()}, {"a", Json::array()}}},
        {"the largest counter", {{"rx", 18446744073709551615u}}, {{"rx", 18446744073709551615u}}},
        {"a signed value of 32 bits", {{"socket", -1}}, {{"socket", -1}}},
        {"a larger signed one", {{"x", -3000000000}}, {{"x", "-3000000000"}}},
        {"a fraction, a truth, a null",
         {{"a", 1.5}, {"b", true}, {"c", nullptr}},
         {{"a", "1.5"}, {"b", 1}, {"c", "none"}}},
        {"quotes, backslash, tab, newline", {{"n", "a\"b\\c\td\ne"}}, {{"n", "a\"b\\c\td\ne"}}},
        {"other control characters", {{"n", "a\x01z"}}, {{"n", "a\\u0001z"}}},
        {"UTF-8", {{"n", "Zürich \U0001F600"}}, {{"n", "Z\\u00fcrich \\U0001f600"}}},
        {"bytes that are no UTF-8", {{"n", "a\xff\xc3"}}, {{"n", "a\\ufffd\\ufffd"}}},
        {"255 characters", {{"n", std::string(255, 'x')}}, {{"n", std::string(124, 'x') + "..."}}},
        {"a key that does not fit", {{"tx-full", 1}}, {{"tx_full", 1}}},
        {"dictionaries below",
         {{"0", {{"name", "wan"}, {"more", {{"x", 1}}}}}},
         {{"0", {{"name", "wan"}, {"more", {{"x", 1}}}}}}},
        {"arrays",
         {{"u", {1, 2}}, {"i", {-1, 2}}, {"s", {"a", "b"}}},
         {{"u", {1, 2}}, {"i", {-1, 2}}, {"s", {"a", "b"}}}},
        {"an array of dictionaries",
         {{"l", Json::array({{{"a", 1}}, {{"a", 2}}})}},
         {{"l", {{"0", {{"a", 1}}}, {"1", {{"a", 2}}}}}}},
        {"an array at the top", {1, 2, 3}, {1, 2, 3}},
    };
    Endpoints endpoints;
    Json answer;
    endpoints.add("/cachewire/test/echo", "Answers what the test says.",
                  [&answer](std::string_view) { return answer; });
    TelemetryClient client = connect();
    for (const Case& c : cases) {
        INFO(c.what);
        answer = c.answer;
        CHECK(client.query("/cachewire/test/echo") == c.arrives);
    }
}

TEST_CASE("telemetry: an answer over the socket's limits is an error and never a part of it", "[telemetry]") {
    ensure_eal_with_telemetry();
    Endpoints endpoints;
    Json answer;
    endpoints.add("/cachewire/test/echo", "Answers what the test says.",
                  [&answer](std::string_view) { return answer; });
    TelemetryClient client = connect();
    const auto add = [&answer](int n, const Json& value) {
        answer = Json::object();
        for (int i = 0; i < n; ++i) answer["key" + std::to_string(i)] = value;
    };
    add(256, 1);
    CHECK(client.query("/cachewire/test/echo") == answer);
    add(257, 1);
    CHECK_THROWS_AS(client.query("/cachewire/test/echo"), cachewire::client::Refused);
    add(115, std::string(127, 'x'));  // just under 16 KiB
    CHECK(client.query("/cachewire/test/echo") == answer);
    add(200, std::string(127, 'x'));
    CHECK_THROWS_AS(client.query("/cachewire/test/echo"), cachewire::client::Refused);
    add(200, std::string(100, '"'));  // doubled on the wire
    CHECK_THROWS_AS(client.query("/cachewire/test/echo"), cachewire::client::Refused);
}

TEST_CASE("telemetry: errors and parameters", "[telemetry]") {
    ensure_eal_with_telemetry();
    Endpoints endpoints;
    endpoints.add("/cachewire/test/echo", std::string(200, 'h'), [](std::string_view parameters) -> Json {
        if (parameters == "bad") throw BadQuery("no such \"thing\"");
        return {{"parameters", std::string(parameters)}};
    });
    TelemetryClient client = connect();
    CHECK(client.query("/cachewire/test/echo", "a,b,,c") == Json{{"parameters", "a,b,,c"}});
    CHECK(client.query("/cachewire/test/echo") == Json{{"parameters", ""}});
    CHECK_THROWS_WITH(client.query("/cachewire/test/echo", "bad"), "/cachewire/test/echo: no such \"thing\"");
    CHECK_THROWS_AS(client.query("/cachewire/test/nothing"), cachewire::client::NotSupported);
    CHECK(Endpoints::query("/cachewire/test/echo", "x") == Json{{"parameters", "x"}});
    CHECK_THROWS_AS(Endpoints::query("/cachewire/test/echo", "bad"), BadQuery);
    CHECK_THROWS(endpoints.add("/other/name", "help", [](std::string_view) { return Json(); }));
}

TEST_CASE("telemetry: a long list arrives whole, page by page", "[telemetry]") {
    ensure_eal_with_telemetry();
    std::vector<Json> entries;
    for (int i = 0; i < 1000; ++i)
        entries.push_back({{"name", "port" + std::to_string(i)}, {"text", std::string(i % 128, '\\')}});
    Endpoints endpoints;
    endpoints.add("/cachewire/test/list", "A list.", [&entries](std::string_view parameters) {
        return cachewire::telemetry::page(entries, cachewire::telemetry::parse_page(parameters));
    });
    TelemetryClient client = connect();
    const Json all = client.query_list("/cachewire/test/list");
    REQUIRE(all.size() == entries.size());
    for (int i = 0; i < 1000; ++i) {
        INFO(i);
        REQUIRE(all[std::to_string(i)]["name"] == entries[static_cast<std::size_t>(i)]["name"]);
    }
}

TEST_CASE("telemetry: not ready before and after, and no crash in between", "[telemetry]") {
    ensure_eal_with_telemetry();
    std::atomic<bool> stop = false;
    std::atomic<unsigned> answers = 0, refusals = 0, others = 0;
    {
        Endpoints().add("/cachewire/test/life", "Comes and goes.", [](std::string_view) { return Json{{"x", 1}}; });
    }
    std::vector<std::thread> clients;
    for (int i = 0; i < 4; ++i) {
        clients.emplace_back([&] {
            TelemetryClient client = connect();
            while (!stop) {
                try {
                    client.query("/cachewire/test/life").at("x") == 1 ? ++answers : ++others;
                } catch (const cachewire::client::Refused& e) {
                    e.what() == std::string("/cachewire/test/life: not ready") ? ++refusals : ++others;
                }
            }
        });
    }
    // What the handler reads dies right after its Endpoints.
    while (answers < 100 || refusals < 100) {
        auto state = std::make_unique<int>(1);
        auto endpoints = std::make_unique<Endpoints>();
        endpoints->add("/cachewire/test/life", "Comes and goes.", [&s = *state](std::string_view) {
            return Json{{"x", s}};
        });
        std::this_thread::yield();
        endpoints.reset();
        state.reset();
        std::this_thread::yield();
    }
    stop = true;
    for (std::thread& client : clients) client.join();
    CHECK(others == 0);
    CHECK_THROWS_WITH(connect().query("/cachewire/test/life"), "/cachewire/test/life: not ready");
}

TEST_CASE("telemetry: a client that hangs up before its answer ends nothing", "[telemetry]") {
    ensure_eal_with_telemetry();
    Endpoints endpoints;
    endpoints.add("/cachewire/test/slow", "Answers late.", [](std::string_view) {
        ::usleep(2000);
        return Json{{"x", std::string(100, 'x')}};
    });
    for (int i = 0; i < 20; ++i) {
        const cachewire::client::Connection client(cachewire::client::telemetry_path(file_prefix()), SOCK_SEQPACKET,
                                                   -1);
        client.send("/cachewire/test/slow");
    }
    // The handlers of the dead clients end in their own time, and until then all ten places may be taken.
    for (int attempt = 0;; ++attempt) {
        try {
            const Json answer =
                connect().query("/cachewire/test/slow");  // outside CHECK, which would keep the exception
            CHECK(answer.contains("x"));
            break;
        } catch (const cachewire::client::Refused&) {
            REQUIRE(attempt < 1000);
            ::usleep(10000);
        }
    }
}

TEST_CASE("telemetry: dpdk-telemetry.py reads it", "[telemetry]") {
    ensure_eal_with_telemetry();
    Endpoints endpoints;
    endpoints.add("/cachewire/test/echo", "Names.", [](std::string_view parameters) -> Json {
        return {{"name", "Zürich \"1\""}, {"of", std::string(parameters)}, {"list", {{"0", {{"n", 1}}}}}};
    });
    const std::string out = ask_dpdk_telemetry("/cachewire/test/echo,a");
    if (out.empty()) {
        cachewire::test::say_skipped("dpdk-telemetry.py is not installed");
        return;
    }
    const Json json = Json::parse(
        out.substr(out.find("{\"/cachewire") == std::string::npos ? 0 : out.find("{\"/cachewire")), nullptr, false);
    INFO(out);
    REQUIRE(json.is_object());
    CHECK(json["/cachewire/test/echo"] ==
          Json{{"name", "Z\\u00fcrich \"1\""}, {"of", "a"}, {"list", {{"0", {{"n", 1}}}}}});
}
