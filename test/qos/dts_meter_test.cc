// SPDX-License-Identifier: BSD-3-Clause
// The cases of DPDK's former test plan for qos_meter: 10 Gbit/s of short frames, IP lengths metered, every mode by
// every colour that packets come with, and lengths on both sides of both bursts. What it takes from a generator and a
// second machine is arithmetic here: packets a second of each colour.
#include "qos/burst_meter.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "support/catch.h"
#include "tsc.h"

namespace cachewire::qos {

namespace {

using test::kHz;

constexpr double kLine = 10e9 / 8;           // bytes a second
constexpr std::uint64_t kCir = 46'000'000;   // bytes a second: a million packets of 46 bytes
constexpr std::uint64_t kPeak = 69'000'000;  // one and a half

double line_rate(std::uint32_t frame_bytes) { return kLine / (frame_bytes + 20); }  // frame with FCS; preamble and gap

// Packets a second by the colour that they leave with, at line rate. IP is 18 bytes shorter than its frame with FCS.
std::array<double, 3> at_line_rate(const PolicerConfig& config, std::uint32_t frame_bytes, Colour incoming) {
    constexpr unsigned kPackets = 300'000, kWarm = 30'000;  // the full buckets at the start are gone by then
    const PolicerProfile profile = make_profile(config, kHz);
    Policers policers(1);
    std::array<double, 3> counts{};
    const double gap_s = 1 / line_rate(frame_bytes);
    for (unsigned n = 0; n < kPackets; ++n) {
        const auto now = static_cast<std::uint64_t>((1 + n * gap_s) * static_cast<double>(kHz));
        const Colour colour = police(policers, 0, &profile, now, frame_bytes - 4, frame_bytes - 18, incoming);
        if (n >= kWarm) counts[static_cast<unsigned>(colour)] += 1;
    }
    for (double& count : counts) count /= (kPackets - kWarm) * gap_s;
    return counts;
}

PolicerConfig dts_config(MeterType type, bool aware, std::uint64_t cbs, std::uint64_t ebs) {
    return {.name = "dts",
            .rate_bps = kCir * 8,
            .burst_bytes = cbs,
            .accounting = Accounting::l3,
            .type = type,
            .excess_rate_bps = type == MeterType::trtcm_2698   ? kPeak * 8
                               : type == MeterType::trtcm_4115 ? (kPeak - kCir) * 8
                                                               : 0,
            .excess_burst_bytes = ebs,
            .colour_aware = aware};
}

// The same for RFC 2697 in doubles, colour-blind.
std::array<double, 3> ideal_srtcm(double cbs, double ebs, std::uint32_t frame_bytes) {
    constexpr unsigned kPackets = 300'000;
    const double gap_s = 1 / line_rate(frame_bytes), bytes = frame_bytes - 18;
    double c = 0, e = 0;
    std::array<double, 3> counts{};
    for (unsigned n = 0; n < kPackets; ++n) {
        c += gap_s * kCir;
        e = std::min(ebs, e + std::max(0.0, c - cbs));
        c = std::min(c, cbs);
        double* const bucket = c >= bytes ? &c : e >= bytes ? &e : nullptr;
        if (bucket != nullptr) *bucket -= bytes;
        counts[bucket == &c ? 0 : bucket == &e ? 1 : 2] += 1 / (kPackets * gap_s);
    }
    return counts;
}

bool about(double a, double b, double whole) { return std::abs(a - b) <= 0.01 * std::max(b, 0.01 * whole); }

}  // namespace

TEST_CASE("qos dts: 14.88 million packets a second, every mode by every incoming colour", "[qos]") {
    using Type = MeterType;
    struct Case {
        Type type;
        bool aware;
        Colour incoming;
        double green, yellow;  // million packets a second; the rest is red
    };
    constexpr double kAll = 14.88;
    const Colour green = Colour::green, yellow = Colour::yellow, red = Colour::red;
    const Case cases[] = {
        // RFC 2697: E gets only what a full C can't take, so an overload has no yellow ones once E is empty.
        {Type::srtcm_2697, false, red, 1, 0},      {Type::srtcm_2697, false, yellow, 1, 0},
        {Type::srtcm_2697, false, green, 1, 0},    {Type::srtcm_2697, true, red, 0, 0},
        {Type::srtcm_2697, true, yellow, 0, 1},  // C stays full, and all goes to E
        {Type::srtcm_2697, true, green, 1, 0},     {Type::trtcm_2698, false, red, 1, 0.5},
        {Type::trtcm_2698, false, yellow, 1, 0.5}, {Type::trtcm_2698, false, green, 1, 0.5},
        {Type::trtcm_2698, true, red, 0, 0},       {Type::trtcm_2698, true, yellow, 0, 1.5},  // the peak is the bound
        {Type::trtcm_2698, true, green, 1, 0.5},   {Type::trtcm_4115, false, red, 1, 0.5},
        {Type::trtcm_4115, true, red, 0, 0},       {Type::trtcm_4115, true, yellow, 0, 0.5},
        {Type::trtcm_4115, true, green, 1, 0.5},
    };
    for (const Case& c : cases) {
        const auto rates = at_line_rate(dts_config(c.type, c.aware, 2048, 2048), 64, c.incoming);
        INFO("type " << static_cast<int>(c.type) << ", aware " << c.aware << ", came " << static_cast<int>(c.incoming)
                     << ": " << rates[0] / 1e6 << ", " << rates[1] / 1e6 << ", " << rates[2] / 1e6);
        CHECK(about(rates[0] / 1e6, c.green, kAll));
        CHECK(about(rates[1] / 1e6, c.yellow, kAll));
        CHECK(about(rates[2] / 1e6, kAll - c.green - c.yellow, kAll));
    }
}

TEST_CASE("qos dts: a burst of 64 and one of 512 bytes, lengths at and over both", "[qos]") {
    struct Case {
        std::uint32_t ip_bytes;
        bool green, any;  // may be green; may be green or yellow
    };
    for (const Case& c : {Case{46, true, true}, Case{63, true, true}, Case{64, true, true}, Case{65, false, true},
                          Case{128, false, true}, Case{511, false, true}, Case{512, false, true},
                          Case{513, false, false}, Case{1500, false, false}}) {
        const std::uint32_t frame = c.ip_bytes + 18;
        const auto rates = at_line_rate(dts_config(MeterType::srtcm_2697, false, 64, 512), frame, Colour::red);
        const double all = line_rate(frame), passed = rates[0] + rates[1];
        INFO(c.ip_bytes << " bytes of IP: " << 100 * rates[0] / all << " % green, " << 100 * rates[1] / all
                        << " % yellow");
        CHECK((rates[0] > 0) == c.green);
        CHECK((passed > 0) == c.any);
        // Nearly the committed rate, whatever the length; a bucket that a packet just fits into runs over at times.
        const auto ideal = ideal_srtcm(64, 512, frame);
        CHECK(std::abs(passed - ideal[0] - ideal[1]) <= 0.01 * (ideal[0] + ideal[1]));
        if (c.any) CHECK(std::abs(passed * c.ip_bytes / kCir - 1) < 0.03);
    }
}

}  // namespace cachewire::qos
