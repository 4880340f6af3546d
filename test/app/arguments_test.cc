// SPDX-License-Identifier: BSD-3-Clause
#include "app/arguments.h"

#include "base/error.h"
#include "support/catch.h"

using namespace cachewire;
using Words = std::vector<std::string>;

TEST_CASE("arguments: EAL's stand before --, cachewire's after it", "[app]") {
    const auto arguments = app::parse_arguments({"-l", "0-1", "--no-huge", "--", "--config", "a.yaml", "--stats-period",
                                                 "2", "--duration=30", "--exit-on-idle", "5", "-i"});
    REQUIRE(arguments.run.has_value());
    CHECK_FALSE(arguments.check.has_value());
    CHECK_FALSE(arguments.print.has_value());
    CHECK(arguments.run->eal == Words{"-l", "0-1", "--no-huge"});
    CHECK(arguments.run->config == "a.yaml");
    CHECK(arguments.run->stats_period_s == 2);
    CHECK(arguments.run->duration_s == 30u);
    CHECK(arguments.run->idle_s == 5u);
    CHECK(arguments.run->interactive);
}

TEST_CASE("arguments: only the configuration is required", "[app]") {
    const auto arguments = app::parse_arguments({"--", "--config", "a.yaml"});
    REQUIRE(arguments.run.has_value());
    CHECK(arguments.run->eal.empty());
    CHECK(arguments.run->stats_period_s == 0);
    CHECK_FALSE(arguments.run->duration_s.has_value());
    CHECK_FALSE(arguments.run->idle_s.has_value());
    CHECK_FALSE(arguments.run->interactive);
}

TEST_CASE("arguments: import takes a format and files", "[app]") {
    const auto arguments = app::parse_arguments({"import", "l3fwd-acl", "a", "b"});
    REQUIRE(arguments.import_files.has_value());
    CHECK(arguments.import_files->format == "l3fwd-acl");
    CHECK(arguments.import_files->files == std::vector<std::string>{"a", "b"});
}

TEST_CASE("arguments: check is a command of its own", "[app]") {
    const auto text = app::parse_arguments({"check", "a.yaml"});
    REQUIRE(text.check.has_value());
    CHECK(text.check->file == "a.yaml");
    CHECK_FALSE(text.check->json);
    CHECK(app::parse_arguments({"check", "--json", "a.yaml"}).check->json);
    CHECK_FALSE(text.run.has_value());
}

TEST_CASE("arguments: help and version are printed wherever they stand", "[app]") {
    for (const Words& words : {Words{"--help"}, Words{"-h"}, Words{"--", "--help"}, Words{"-l", "0", "--", "-h"}}) {
        const auto arguments = app::parse_arguments(words);
        REQUIRE(arguments.print.has_value());
        CHECK(arguments.print->find("Usage: cachewire [EAL options] -- --config FILE") == 0);
        CHECK(arguments.print->find("--stats-period") != std::string::npos);
        CHECK_FALSE(arguments.run.has_value());
    }
    const auto version = app::parse_arguments({"--version"});
    REQUIRE(version.print.has_value());
    CHECK(version.print->find("cachewire ") == 0);
    CHECK(version.print->find("DPDK") != std::string::npos);
}

TEST_CASE("arguments: what is wrong ends with status 2 and says what", "[app]") {
    struct Case {
        Words words;
        const char* text;
    };
    const Case cases[] = {
        {{}, "no configuration"},
        {{"--config", "a.yaml"}, "stand after \"--\""},
        {{"-l", "0"}, "stand after \"--\""},
        {{"--"}, "--config is required"},
        {{"--", "--config"}, "--config"},
        {{"--", "--config", "a", "--config", "b"}, "--config"},
        {{"--", "--config", "a", "--duration", "0"}, "--duration"},
        {{"--", "--config", "a", "--duration", "-1"}, "--duration"},
        {{"--", "--config", "a", "--duration", "ten"}, "--duration"},
        {{"--", "--config", "a", "--duration", "010"}, "\"010\" is no whole number"},  // not 8
        {{"--", "--config", "a", "--stats-period", "0x10"}, "\"0x10\" is no whole number"},
        {{"--", "--config", "a", "--stats-period", "1.5"}, "--stats-period"},
        {{"--", "--config", "a", "--exit-on-idle", "99999999999"}, "--exit-on-idle"},
        {{"--", "--config", "a", "--statistics"}, "--statistics"},
        {{"--", "--config", "a", "more"}, "more"},
        {{"check"}, "FILE is required"},
        {{"check", "a", "b"}, "b"},
        {{"doctor"}, "`doctor` is not supported yet"},
        {{"explain"}, "`explain` is not supported yet"},
        {{"import", "l3fwd-acl"}, "FILE is required"},
        {{"chekc", "a.yaml"}, "\"chekc\" is no command"},
        {{"", "--"}, "\"\" is no command"},
    };
    for (const Case& c : cases) {
        INFO(c.text);
        try {
            app::parse_arguments(c.words);
            FAIL("no error");
        } catch (const base::Error& error) {
            INFO(error.what());
            CHECK(error.status() == base::ExitStatus::usage);
            CHECK(std::string(error.what()).find(c.text) != std::string::npos);
        }
    }
}
