// SPDX-License-Identifier: BSD-3-Clause
#include "app/sizing.h"

#include "session/table.h"
#include "support/catch.h"

using namespace cachewire;

TEST_CASE("sizing: a rate on the wire is packets by their length with preamble, FCS and gap", "[app]") {
    CHECK(app::packets_at(10e9, 60) == 10e9 / (84 * 8));  // 14.88 Mpps
    CHECK(app::packets_at(100e9, 512) == 100e9 / (536 * 8));
}

TEST_CASE("sizing: cycles lie on the measured points and rise with the sessions", "[app]") {
    CHECK(app::built_in_cycles(1000) == 100);
    CHECK(app::built_in_cycles(100000) == 160);
    CHECK(app::built_in_cycles(1000000) == 169);
    CHECK(app::built_in_cycles(1) == 100);
    CHECK(app::built_in_cycles(10000) == (100 + 160) / 2.0);
    // A tenth of the way more a decade: as from 100 k to 1 M.
    CHECK(app::built_in_cycles(10000000) == 169 + 9);
}

TEST_CASE("sizing: as many workers as the rate needs at 70 % load, one at least", "[app]") {
    app::Job job{.packets_per_second = 10e6,
                 .sessions = 1 << 20,
                 .rules = 100,
                 .routes = 1000,
                 .cycles_per_packet = 200,
                 .clock_hz = 2e9};
    app::Sizing s = app::size_up(job);
    CHECK(s.packets_per_core == 10e6);
    CHECK(s.workers == 2);  // 10 / 7
    CHECK(s.sessions_total == 2 * session::Table::memory_needed(1 << 19));
    CHECK(s.session_bytes == static_cast<double>(s.sessions_total) / (1 << 20));
    CHECK(s.rules_total == 65000);
    CHECK(s.routes_total == 735000);
    job.packets_per_second = 7e6;
    CHECK(app::size_up(job).workers == 1);
    job.packets_per_second = 0.1;
    CHECK(app::size_up(job).workers == 1);
    job.cycles_per_packet = 0;
    CHECK(app::size_up(job).cycles_per_packet == app::built_in_cycles(1 << 20));
    CHECK(app::to_json(job, app::size_up(job))["workers"] == 1);
}

TEST_CASE("sizing: buckets of sessions are memory of the sessions, an array for each place and worker", "[app]") {
    app::Job job{.packets_per_second = 10e6,
                 .sessions = 1 << 20,
                 .session_buckets = 2,
                 .cycles_per_packet = 200,
                 .clock_hz = 2e9};
    const app::Sizing s = app::size_up(job);
    REQUIRE(s.workers == 2);
    CHECK(s.buckets_total == std::size_t{2} * 2 * 32 * (1 << 19));
    CHECK(s.sessions_total == 2 * session::Table::memory_needed(1 << 19) + s.buckets_total);
    CHECK(app::to_json(job, s)["sessions"]["bucket_bytes"] == s.buckets_total);
    const std::string with = app::to_text(job, s);
    INFO(with);
    CHECK(with.find("(64 MiB of it for `per_session`)") != std::string::npos);
    job.session_buckets = 0;
    CHECK(app::size_up(job).buckets_total == 0);
    CHECK(app::to_text(job, app::size_up(job)).find("per_session") == std::string::npos);
}
