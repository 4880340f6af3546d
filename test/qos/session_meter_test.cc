// SPDX-License-Identifier: BSD-3-Clause
// Buckets that are each session's own, against the RFCs in doubles and against a bucket of an attachment.
#include "qos/session_meter.h"

#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "rfc_oracle.h"
#include "support/catch.h"
#include "support/random.h"
#include "tsc.h"

namespace cachewire::qos {

namespace {

using test::kHz;

PolicerConfig session_config(MeterType type, std::uint64_t cir, std::uint64_t cbs, std::uint64_t eir, std::uint64_t ebs,
                             bool aware = false, Accounting accounting = Accounting::l2) {
    return {.name = "each",
            .rate_bps = cir,
            .burst_bytes = cbs,
            .accounting = accounting,
            .type = type,
            .excess_rate_bps = eir,
            .excess_burst_bytes = ebs,
            .colour_aware = aware};
}

struct SessionCase {
    MeterType type;
    std::uint64_t cir, cbs, eir, ebs;
    bool aware;
};
constexpr SessionCase kSessionCases[] = {
    {MeterType::single, 10'000'000, 20'000, 0, 0, false},
    {MeterType::single, 9'999'999'937, 0, 0, 0, false},
    {MeterType::srtcm_2697, 10'000'000, 20'000, 0, 30'000, false},
    {MeterType::trtcm_2698, 10'000'000, 20'000, 25'000'000, 30'000, false},
    {MeterType::trtcm_2698, 10'000'000, 20'000, 25'000'000, 30'000, true},
    {MeterType::trtcm_4115, 10'000'000, 20'000, 15'000'000, 30'000, false},
    {MeterType::trtcm_4115, 10'000'000, 20'000, 15'000'000, 30'000, true},
};

}  // namespace

// Idle, under, at and far over the rate side by side: what one does is nothing to the others.
TEST_CASE("qos session: each session is held at the rate by itself, within 1 % of its traffic", "[qos]") {
    auto engine = test::random_engine();
    constexpr std::array<double, 6> kLoads = {0.1, 0.7, 1.0, 1.5, 4.0, 20.0};
    for (const SessionCase& c : kSessionCases) {
        const PolicerProfile profile = make_profile(session_config(c.type, c.cir, c.cbs, c.eir, c.ebs, c.aware), kHz);
        Policers policers(1);
        std::array<SessionBucket, kLoads.size()> buckets{};
        std::vector<RfcOracle> oracles(kLoads.size(), RfcOracle(profile, 0));
        std::array<std::array<double, 3>, kLoads.size()> got{}, ideal{};
        std::uniform_int_distribution<std::uint32_t> lengths(60, 1514);
        std::discrete_distribution<unsigned> colours({6, 3, 1});
        // One clock, and each packet some session's, as often as it is loaded.
        std::discrete_distribution<std::size_t> whose(kLoads.begin(), kLoads.end());
        double sum = 0;
        for (const double load : kLoads) sum += load;
        std::exponential_distribution<double> gaps(static_cast<double>(c.cir) * sum / (787.0 * 8));
        const std::uint64_t start = 123'456'789'012'345;
        double now_s = 0;
        for (unsigned n = 0; n < 600'000; ++n) {
            now_s += gaps(engine);
            const std::size_t s = whose(engine);
            const std::uint32_t length = lengths(engine);
            const auto incoming = static_cast<Colour>(colours(engine));
            const std::uint64_t now = start + static_cast<std::uint64_t>(now_s * static_cast<double>(kHz));
            const auto colour =
                police_session(buckets[s], policers, 0, profile, now, length, length - 14, [&] { return incoming; });
            got[s][static_cast<unsigned>(colour)] += length;
            ideal[s][static_cast<unsigned>(oracles[s].colour(now_s, length, incoming))] += length;
        }
        std::array<double, 3> all{};
        for (std::size_t s = 0; s < kLoads.size(); ++s) {
            const double whole = ideal[s][0] + ideal[s][1] + ideal[s][2];
            for (unsigned colour = 0; colour < 3; ++colour) {
                INFO("type " << static_cast<int>(c.type) << ", aware " << c.aware << ", load " << kLoads[s]
                             << ", colour " << colour << ": " << got[s][colour] << ", ideal " << ideal[s][colour]);
                CHECK(std::abs(got[s][colour] - ideal[s][colour]) <= 0.01 * whole);
                all[colour] += got[s][colour];
            }
        }
        // Counts are the attachment's, of all sessions together.
        CHECK(static_cast<double>(policers.states[0].conform_bytes.read()) == all[0]);
        CHECK(static_cast<double>(policers.exceeds[0].bytes.read()) == all[1]);
        CHECK(static_cast<double>(policers.states[0].violate_bytes.read()) == all[2]);
    }
}

TEST_CASE("qos session: one session alone is coloured packet by packet as an attachment's bucket", "[qos]") {
    auto engine = test::random_engine();
    for (const Accounting accounting : {Accounting::l1, Accounting::l2, Accounting::l3})
        for (const SessionCase& c : kSessionCases) {
            INFO("type " << static_cast<int>(c.type) << ", aware " << c.aware << ", accounting "
                         << static_cast<int>(accounting));
            const PolicerProfile profile =
                make_profile(session_config(c.type, c.cir, c.cbs, c.eir, c.ebs, c.aware, accounting), kHz);
            Policers alone(1), attachment(1);
            SessionBucket bucket{};
            std::uniform_int_distribution<std::uint32_t> lengths(42, 1514);
            std::discrete_distribution<unsigned> colours({6, 3, 1});
            std::exponential_distribution<double> gaps(static_cast<double>(c.cir) * 2 / (787.0 * 8));
            std::uint64_t now = 123'456'789;
            for (unsigned n = 0; n < 20'000; ++n) {
                now += static_cast<std::uint64_t>(gaps(engine) * static_cast<double>(kHz));
                const std::uint32_t length = lengths(engine);
                const auto incoming = static_cast<Colour>(colours(engine));
                const auto expected = police(attachment, 0, &profile, now, length, length - 14, incoming);
                REQUIRE(police_session(bucket, alone, 0, profile, now, length, length - 14, [&] { return incoming; }) ==
                        expected);
            }
            CHECK(alone.states[0].conform_bytes.read() == attachment.states[0].conform_bytes.read());
            CHECK(alone.exceeds[0].packets.read() == attachment.exceeds[0].packets.read());
            CHECK(alone.states[0].violate_packets.read() == attachment.states[0].violate_packets.read());
        }
}

TEST_CASE("qos session: zero is a full bucket, and a smaller one after a reload takes no more over than it holds",
          "[qos]") {
    const PolicerProfile wide = make_profile(session_config(MeterType::srtcm_2697, 8'000, 9000, 0, 9000), kHz);
    const PolicerProfile narrow = make_profile(session_config(MeterType::srtcm_2697, 8'000, 1000, 0, 2000), kHz);
    Policers policers(1);
    SessionBucket bucket{};
    const auto pass = [&](const PolicerProfile& profile, std::uint32_t bytes) {
        return police_session(bucket, policers, 0, profile, kHz * 1000, bytes, 0);
    };
    CHECK(pass(wide, 9000) == Colour::green);
    CHECK(pass(wide, 1) == Colour::yellow);
    bucket = {};
    CHECK(pass(wide, 1000) == Colour::green);
    CHECK(pass(narrow, 1001) == Colour::yellow);  // 8000 and 9000 bytes were left
    CHECK(pass(narrow, 1000) == Colour::green);
    CHECK(pass(narrow, 1) == Colour::yellow);
    CHECK(pass(narrow, 999) == Colour::red);
    CHECK(pass(wide, 1) == Colour::yellow);  // and nothing comes back
}

}  // namespace cachewire::qos
