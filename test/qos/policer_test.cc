// SPDX-License-Identifier: BSD-3-Clause
#include "qos/policer.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "qos/burst_meter.h"
#include "support/catch.h"
#include "support/random.h"
#include "tsc.h"

namespace cachewire::qos {

namespace {

using test::kHz;

// RFC 2697 with EBS 0, in doubles and continuous time.
struct OracleBucket {
    double rate, burst, tokens;
    double last_s;

    OracleBucket(const PolicerProfile& profile, double now_s)
        : rate(static_cast<double>(profile.rate_bps) / 8),
          burst(static_cast<double>(profile.burst_bytes)),
          tokens(burst),
          last_s(now_s) {}
    bool conforms(double now_s, double bytes) {
        tokens = std::min(burst, tokens + (now_s - last_s) * rate);
        last_s = now_s;
        if (tokens < bytes) return false;
        tokens -= bytes;
        return true;
    }
};

// One packet of one policer.
Colour police(Policers& policers, const PolicerProfile& profile, std::uint64_t now_tsc, std::uint32_t frame_length,
              std::uint32_t l3_length) {
    return qos::police(policers, 0, &profile, now_tsc, frame_length, l3_length);
}

PolicerConfig config(std::uint64_t rate_bps, std::uint64_t burst_bytes, Accounting accounting = Accounting::l2) {
    return {.name = "test", .rate_bps = rate_bps, .burst_bytes = burst_bytes, .accounting = accounting};
}

}  // namespace

TEST_CASE("qos: what a policer passes is within 1 % of an ideal token bucket", "[qos]") {
    struct Case {
        std::uint64_t rate_bps, burst_bytes;
        double load;  // offered rate against the policer's
    };
    auto engine = test::random_engine();
    for (const auto& c :
         {Case{1'000'000, 0, 2.0}, Case{100'000'000, 0, 0.5}, Case{100'000'000, 0, 1.0}, Case{100'000'000, 0, 1.5},
          Case{100'000'000, 0, 50.0}, Case{999'999'937, 65536, 3.0}, Case{10'000'000'000, 0, 2.0},
          Case{40'000'000'000, 1 << 20, 1.3}, Case{100'000'000'000, 0, 1.1}, Case{400'000'000'000, 0, 2.0},
          Case{64'000, 3000, 4.0}, Case{9'600, 0, 10.0}, Case{123'457, 10'000, 1.01}}) {
        INFO(c.rate_bps << " bit/s, burst " << c.burst_bytes << ", load " << c.load);
        const PolicerProfile profile = make_profile(config(c.rate_bps, c.burst_bytes), kHz);
        Policers state{1};
        std::uint64_t now = 123'456'789'012'345;
        OracleBucket oracle(profile, static_cast<double>(now) / kHz);
        std::uniform_int_distribution<std::uint32_t> lengths(60, 1514);
        std::exponential_distribution<double> gaps(1.0);
        const std::uint64_t start = now;
        double expected = 0;
        const double gap_s = 787.0 * 8 / (static_cast<double>(c.rate_bps) * c.load);
        // Several hundred bursts long, so that the rate decides and not the first burst.
        const auto packets = std::max<std::uint64_t>(
            50'000, static_cast<std::uint64_t>(static_cast<double>(profile.burst_bytes) / 787 * c.load * 20));
        for (std::uint64_t i = 0; i < packets; ++i) {
            now += static_cast<std::uint64_t>(gaps(engine) * gap_s * kHz);
            const std::uint32_t length = lengths(engine);
            if (oracle.conforms(static_cast<double>(now - start) / kHz + static_cast<double>(start) / kHz, length))
                expected += length;
            police(state, profile, now, length, length - 14);
        }
        const auto passed = static_cast<double>(state.states[0].conform_bytes.read());
        INFO("passed " << passed << ", ideal " << expected);
        REQUIRE(std::abs(passed - expected) <= 0.01 * expected);
        REQUIRE(state.states[0].conform_packets.read() + state.states[0].violate_packets.read() == packets);
    }
}

TEST_CASE("qos: the smallest frames at the highest rate are policed as exactly as one packet a second", "[qos]") {
    const PolicerProfile profile = make_profile(config(100'000'000, 0), kHz);
    Policers fast{1};
    std::uint64_t now = kHz * 1000;
    for (const std::uint64_t end = now + 2 * kHz; now < end; now += 60) police(fast, profile, now, 64, 50);  // 35 Mpps
    const double expected = 2 * 100e6 / 8 + static_cast<double>(profile.burst_bytes);
    CHECK(std::abs(static_cast<double>(fast.states[0].conform_bytes.read()) - expected) <= 0.01 * expected);

    Policers slow{1};
    for (unsigned i = 0; i < 1000; ++i) police(slow, profile, now += kHz, 1514, 1500);
    CHECK(slow.states[0].conform_packets.read() == 1000);
    CHECK(slow.states[0].violate_packets.read() == 0);
}

TEST_CASE("qos: a zero-filled state is a full bucket, whatever the clock says", "[qos]") {
    for (const std::uint64_t rate_bps : {8ull, 1'000ull, 100'000'000ull, 400'000'000'000ull}) {
        const PolicerProfile profile = make_profile(config(rate_bps, 1'500'000'000), kHz);
        for (const std::uint64_t now : {std::uint64_t{1}, kHz, std::uint64_t{1} << 40, ~std::uint64_t{0} - 1}) {
            INFO(rate_bps << " bit/s at " << now);
            Policers state{1};
            REQUIRE(police(state, profile, now, 1'500'000'000, 0) == Colour::green);
            REQUIRE(police(state, profile, now, 1, 0) == Colour::red);
        }
    }
}

TEST_CASE("qos: a long idle time fills the bucket once and never overflows it", "[qos]") {
    const PolicerProfile profile = make_profile(config(400'000'000'000, 1'000'000), kHz);
    Policers state{1};
    std::uint64_t now = 1;
    for (const std::uint64_t idle : {kHz, kHz << 20, std::uint64_t{1} << 62, std::uint64_t{1} << 63}) {
        now += idle;
        INFO("at " << now);
        REQUIRE(police(state, profile, now, 1'000'000, 0) == Colour::green);
        REQUIRE(police(state, profile, now, 64, 0) == Colour::red);
    }
}

TEST_CASE("qos: reset fills the bucket and keeps the counts", "[qos]") {
    const PolicerProfile profile = make_profile(config(8'000, 2000), kHz);
    Policers state{1};
    REQUIRE(police(state, profile, kHz, 2000, 0) == Colour::green);
    REQUIRE(police(state, profile, kHz, 2000, 0) == Colour::red);
    reset(state.states[0]);
    REQUIRE(police(state, profile, kHz, 2000, 0) == Colour::green);
    CHECK(state.states[0].conform_packets.read() == 2);
    CHECK(state.states[0].conform_bytes.read() == 4000);
    CHECK(state.states[0].violate_packets.read() == 1);
    CHECK(state.states[0].violate_bytes.read() == 2000);
}

TEST_CASE("qos: a packet longer than the burst never conforms, one as long does after a full wait", "[qos]") {
    const PolicerProfile profile = make_profile(config(1'000'000, 1500), kHz);
    Policers state{1};
    std::uint64_t now = kHz;
    for (unsigned i = 0; i < 10; ++i) {
        CHECK(police(state, profile, now, 1501, 0) == Colour::red);
        CHECK(police(state, profile, now, 1500, 0) == Colour::green);
        CHECK(police(state, profile, now, 1, 0) == Colour::red);
        now += kHz * 12 / 1000 + kHz / 10'000;  // 12 ms at 1 Mbit/s
    }
}

TEST_CASE("qos: accounting counts the wire, the frame or the datagram", "[qos]") {
    struct Case {
        Accounting accounting;
        std::uint32_t frame_length;
        std::uint64_t bytes;
    };
    // A frame of 54 bytes goes over the wire as 60, its padding is no one's traffic.
    for (const auto& [accounting, frame_length, bytes] :
         {Case{Accounting::l1, 64, 88}, Case{Accounting::l1, 54, 84}, Case{Accounting::l2, 64, 64},
          Case{Accounting::l2, 54, 54}, Case{Accounting::l3, 64, 46}}) {
        const PolicerProfile profile = make_profile(config(1'000'000, bytes, accounting), kHz);
        Policers state{1};
        CHECK(police(state, profile, kHz, frame_length, 46) == Colour::green);
        CHECK(state.states[0].conform_bytes.read() == bytes);
        CHECK(police(state, profile, kHz, frame_length, 46) == Colour::red);
        CHECK(state.states[0].violate_bytes.read() == bytes);
    }
}

TEST_CASE("qos: the automatic burst is 10 ms of the rate and at least 16 full frames", "[qos]") {
    CHECK(make_profile(config(500'000'000, 0), kHz).burst_bytes == 625'000);
    CHECK(make_profile(config(1'000'000'001, 0), kHz).burst_bytes == 1'250'001);
    CHECK(make_profile(config(1'000'000, 0), kHz).burst_bytes == 24'288);
    CHECK(make_profile(config(1'000'000, 5'000), kHz).burst_bytes == 5'000);
}

TEST_CASE("qos: rates and bursts are kept as given, or refused by name", "[qos]") {
    for (const std::uint64_t rate_bps : {1ull, 7ull, 8ull, 9ull, 12'345'678'901ull, 1'600'000'000'000ull}) {
        const PolicerProfile profile = make_profile(config(rate_bps, 0), kHz);
        INFO(rate_bps << " bit/s");
        CHECK(profile.rate_bps == rate_bps);
        const double kept = static_cast<double>(profile.meter.cir_bytes_per_period) * 8 * kHz /
                            static_cast<double>(profile.meter.cir_period);
        CHECK(std::abs(kept - static_cast<double>(rate_bps)) <= 0.0002 * static_cast<double>(rate_bps));
    }
    struct Case {
        std::uint64_t rate_bps, burst_bytes;
        const char* text;
    };
    for (const auto& c :
         {Case{0, 0, "policer test: a rate of 0 passes nothing; at least 1 bit/s"},
          Case{100'000'000'000, 1000,
               "policer test: a burst of 1000 bytes is too short for 100000000000 bit/s; at least 1192"},
          Case{1, ~std::uint64_t{0}, "policer test: 18446744073709551615 bytes at 1 bit/s take decades to fill"},
          Case{~std::uint64_t{0}, 1000,
               "policer test: a burst of 1000 bytes is too short for 18446744073709551615 bit/s; at least "
               "219604083254"}}) {
        INFO(c.text);
        try {
            make_profile(config(c.rate_bps, c.burst_bytes), kHz);
            FAIL("accepted");
        } catch (const base::MachineError& e) {
            CHECK(std::string(e.what()) == c.text);
        }
    }
}

}  // namespace cachewire::qos
