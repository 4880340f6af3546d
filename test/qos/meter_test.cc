// SPDX-License-Identifier: BSD-3-Clause
// Colours of the two-bucket policers against RFC 2697, 2698 and 4115 in doubles and continuous time.
#include "qos/burst_meter.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "rfc_oracle.h"
#include "support/catch.h"
#include "support/random.h"
#include "tsc.h"

namespace cachewire::qos {

namespace {

using test::kHz;

struct Totals {
    std::array<double, 3> bytes{};
    std::uint64_t packets = 0;
};

Totals totals_of(const Policers& policers) {
    const PolicerState& state = policers.states[0];
    return {{static_cast<double>(state.conform_bytes.read()), static_cast<double>(policers.exceeds[0].bytes.read()),
             static_cast<double>(state.violate_bytes.read())},
            state.conform_packets.read() + policers.exceeds[0].packets.read() + state.violate_packets.read()};
}

PolicerConfig config(MeterType type, std::uint64_t cir, std::uint64_t cbs, std::uint64_t eir, std::uint64_t ebs,
                     bool aware = false) {
    return {.name = "test",
            .rate_bps = cir,
            .burst_bytes = cbs,
            .type = type,
            .excess_rate_bps = eir,
            .excess_burst_bytes = ebs,
            .colour_aware = aware};
}

}  // namespace

TEST_CASE("qos: two-bucket policers colour as the RFCs do, within 1 % of the traffic", "[qos]") {
    struct Case {
        MeterType type;
        std::uint64_t cir, cbs, eir, ebs;
        double load;  // offered rate against the committed one
    };
    auto engine = test::random_engine();
    for (const bool aware : {false, true})
        for (const auto& c : {Case{MeterType::srtcm_2697, 10'000'000, 64'000, 0, 64'000, 0.8},
                              Case{MeterType::srtcm_2697, 100'000'000, 20'000, 0, 400'000, 1.1},
                              Case{MeterType::srtcm_2697, 64'000, 3'000, 0, 6'000, 3.0},
                              Case{MeterType::srtcm_2697, 40'000'000'000, 4'000'000, 0, 4'000'000, 1.5},
                              Case{MeterType::trtcm_2698, 100'000'000, 64'000, 200'000'000, 128'000, 1.5},
                              Case{MeterType::trtcm_2698, 100'000'000, 64'000, 200'000'000, 128'000, 4.0},
                              Case{MeterType::trtcm_2698, 999'999'937, 0, 5'000'000'029, 0, 3.0},
                              Case{MeterType::trtcm_2698, 64'000, 3'000, 128'000, 3'000, 1.9},
                              Case{MeterType::trtcm_2698, 10'000'000'000, 0, 10'000'000'000, 0, 1.3},
                              Case{MeterType::trtcm_4115, 100'000'000, 64'000, 200'000'000, 128'000, 2.5},
                              Case{MeterType::trtcm_4115, 100'000'000, 64'000, 10'000'000, 30'000, 5.0},
                              Case{MeterType::trtcm_4115, 40'000'000'000, 0, 60'000'000'000, 0, 1.5}}) {
            INFO("type " << static_cast<int>(c.type) << ", cir " << c.cir << ", eir " << c.eir << ", load " << c.load
                         << ", aware " << aware);
            const PolicerProfile profile = make_profile(config(c.type, c.cir, c.cbs, c.eir, c.ebs, aware), kHz);
            Policers policers(1);
            const std::uint64_t start = 123'456'789'012'345;
            std::uint64_t now = start;
            RfcOracle oracle(profile, 0);
            std::uniform_int_distribution<std::uint32_t> lengths(60, 1514);
            std::exponential_distribution<double> gaps(1.0);
            std::discrete_distribution<unsigned> colours({6, 3, 1});
            Totals expected;
            const double gap_s = 787.0 * 8 / (static_cast<double>(c.cir) * c.load);
            const double burst = static_cast<double>(profile.burst_bytes + profile.excess_burst_bytes);
            const auto packets = std::max<std::uint64_t>(50'000, static_cast<std::uint64_t>(burst / 787 * c.load * 20));
            for (std::uint64_t i = 0; i < packets; ++i) {
                now += static_cast<std::uint64_t>(gaps(engine) * gap_s * kHz);
                const std::uint32_t length = lengths(engine);
                const auto incoming = static_cast<Colour>(colours(engine));
                const Colour colour = oracle.colour(static_cast<double>(now - start) / kHz, length, incoming);
                expected.bytes[static_cast<unsigned>(colour)] += length;
                ++expected.packets;
                police(policers, 0, &profile, now, length, length - 14, incoming);
            }
            const Totals got = totals_of(policers);
            const double all = expected.bytes[0] + expected.bytes[1] + expected.bytes[2];
            for (unsigned colour = 0; colour < 3; ++colour) {
                INFO("colour " << colour << ": " << got.bytes[colour] << ", ideal " << expected.bytes[colour]);
                REQUIRE(std::abs(got.bytes[colour] - expected.bytes[colour]) <= 0.01 * all);
            }
            REQUIRE(got.packets == packets);
        }
}

TEST_CASE("qos: packets as long as a bucket has tokens take it, one byte more does not", "[qos]") {
    struct Case {
        MeterType type;
        std::uint64_t cir, cbs, eir, ebs;
        std::vector<std::pair<std::uint32_t, Colour>> packets;  // all at once, on full buckets
    };
    const auto green = Colour::green, yellow = Colour::yellow, red = Colour::red;
    const Case cases[] = {
        // RFC 2697 3: C first, then E; a packet never takes from both.
        {MeterType::srtcm_2697, 1'000'000, 2000, 0, 3000, {{2000, green}, {1, yellow}, {2999, yellow}, {1, red}}},
        {MeterType::srtcm_2697,
         1'000'000,
         2000,
         0,
         3000,
         {{2001, yellow}, {1000, green}, {1001, red}, {1000, green}, {999, yellow}, {1, red}}},
        {MeterType::srtcm_2697, 1'000'000, 2000, 0, 3000, {{3001, red}, {3000, yellow}, {2000, green}}},
        // RFC 2698 3: P bounds all; green takes from both.
        {MeterType::trtcm_2698, 1'000'000, 2000, 2'000'000, 3000, {{2000, green}, {1000, yellow}, {1, red}}},
        {MeterType::trtcm_2698,
         1'000'000,
         2000,
         2'000'000,
         3000,
         {{3001, red}, {2001, yellow}, {999, green}, {1, red}}},
        {MeterType::trtcm_2698, 1'000'000, 3000, 2'000'000, 2000, {{2001, red}, {2000, green}, {1, red}}},
        // RFC 4115 2.1: the buckets know nothing of each other.
        {MeterType::trtcm_4115, 1'000'000, 2000, 2'000'000, 3000, {{2000, green}, {3000, yellow}, {1, red}}},
        {MeterType::trtcm_4115,
         1'000'000,
         2000,
         2'000'000,
         3000,
         {{2001, yellow}, {2000, green}, {1000, red}, {999, yellow}}},
    };
    for (const Case& c : cases) {
        const PolicerProfile profile = make_profile(config(c.type, c.cir, c.cbs, c.eir, c.ebs), kHz);
        for (const bool one_burst : {false, true}) {
            Policers policers(1);
            BurstMeter meter(policers, &profile, kHz * 1000);
            for (const auto& [bytes, colour] : c.packets) {
                INFO("type " << static_cast<int>(c.type) << ", " << bytes << " bytes, one burst " << one_burst);
                if (one_burst) {
                    CHECK(meter.police(0, bytes, 0) == colour);
                } else {
                    CHECK(police(policers, 0, &profile, kHz * 1000, bytes, 0) == colour);
                }
            }
        }
    }
}

TEST_CASE("qos: a colour-aware policer never makes a packet better than it came", "[qos]") {
    const auto green = Colour::green, yellow = Colour::yellow, red = Colour::red;
    struct Case {
        MeterType type;
        std::vector<std::tuple<std::uint32_t, Colour, Colour>> packets;  // bytes, as it comes, as it goes
    };
    const Case cases[] = {
        {MeterType::srtcm_2697,
         {{1000, yellow, yellow}, {1000, red, red}, {2000, green, green}, {2000, yellow, yellow}, {1, green, red}}},
        {MeterType::trtcm_2698,
         {{1000, yellow, yellow}, {1000, red, red}, {1500, green, green}, {500, green, green}, {1, yellow, red}}},
        {MeterType::trtcm_4115,
         {{1000, yellow, yellow}, {1000, red, red}, {2000, green, green}, {2000, green, yellow}, {1, green, red}}},
    };
    for (const Case& c : cases) {
        const PolicerProfile profile = make_profile(config(c.type, 1'000'000, 2000, 1'000'000, 3000, true), kHz);
        Policers policers(1);
        BurstMeter meter(policers, &profile, kHz * 1000);
        for (const auto& [bytes, incoming, colour] : c.packets) {
            INFO("type " << static_cast<int>(c.type) << ", " << bytes << " bytes, came " << static_cast<int>(incoming));
            CHECK(meter.police(0, bytes, 0, [in = incoming] { return in; }) == colour);
        }
    }
}

TEST_CASE("qos: attachments of a shared policer draw from one bucket and count apart", "[qos]") {
    std::array<PolicerProfile, 3> profiles;
    profiles[0] = profiles[1] = profiles[2] = make_profile(config(MeterType::single, 8'000, 3000, 0, 0), kHz);
    profiles[0].bucket = profiles[1].bucket = 2;
    Policers policers(3);
    BurstMeter meter(policers, profiles.data(), kHz * 1000);
    CHECK(meter.police(0, 1000, 0) == Colour::green);
    CHECK(meter.police(1, 1000, 0) == Colour::green);
    CHECK(meter.police(0, 1000, 0) == Colour::green);
    CHECK(meter.police(1, 1, 0) == Colour::red);
    CHECK(meter.police(0, 1, 0) == Colour::red);
    CHECK(policers.states[1].conform_bytes.read() == 1000);
    CHECK(policers.states[1].violate_packets.read() == 1);
    CHECK(policers.states[2].conform_packets.read() == 0);
}

TEST_CASE("qos: what nothing is attached to lets everything pass", "[qos]") {
    const PolicerProfile profile;
    Policers policers(1);
    SharedBuckets shared(1);
    for (SharedBuckets* buckets : {static_cast<SharedBuckets*>(nullptr), &shared}) {
        policers.shared = buckets;
        for (std::uint64_t now = kHz; now < kHz + 100; ++now)
            REQUIRE(police(policers, 0, &profile, now, 1'000'000'000, 0) == Colour::green);
    }
}

TEST_CASE("qos: two-bucket parameters that can't be kept are refused by name", "[qos]") {
    struct Case {
        PolicerConfig config;
        const char* text;
    };
    for (const auto& c :
         {Case{config(MeterType::trtcm_2698, 2'000'000, 0, 1'000'000, 0),
               "policer test: a peak rate of 1000000 bit/s under the committed one of 2000000"},
          Case{config(MeterType::trtcm_2698, 0, 0, 1'000'000, 0),
               "policer test: a rate of 0 passes nothing; at least 1 bit/s"},
          Case{config(MeterType::trtcm_4115, 1'000'000, 0, 0, 0),
               "policer test: a rate of 0 passes nothing; at least 1 bit/s"},
          Case{config(MeterType::trtcm_4115, 1'000'000, 0, 100'000'000'000, 1000),
               "policer test: a burst of 1000 bytes is too short for 100000000000 bit/s; at least 1192"}}) {
        INFO(c.text);
        try {
            make_profile(c.config, kHz);
            FAIL("accepted");
        } catch (const base::MachineError& e) {
            CHECK(std::string(e.what()) == c.text);
        }
    }
}

}  // namespace cachewire::qos
