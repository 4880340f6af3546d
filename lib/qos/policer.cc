// SPDX-License-Identifier: BSD-3-Clause
// From bit/s to rte_meter's "bytes a period of TSC cycles".
//
// rte_meter's own conversion takes whole bytes a second and rounds the period down to whole cycles, with periods of 100
// cycles and more: up to 1 % too fast, and a rate under 8 bit/s becomes zero. The profile's fields are public, so the
// period is computed here, from bits, rounded to the nearest, over periods of about 10 000 cycles: within 0.01 % where
// the burst allows periods that long. A bucket never holds more than the burst, so a period's bytes have to be a small
// part of it, or what comes on top is lost.
#include "qos/policer.h"

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "qos/shared_bucket.h"

#include <fmt/format.h>

namespace cachewire::qos {

namespace {

constexpr std::uint64_t kPeriodCycles = 10'000;  // wanted: error under 1e-4
constexpr std::uint64_t kMinPeriodCycles = 100;  // error up to 0.5 %
constexpr std::uint64_t kBurstParts = 128;       // wanted: a period's bytes at most this part of the burst
constexpr std::uint64_t kMinBurstParts = 2;
constexpr std::uint64_t kMinAutoBurst = std::uint64_t{16} * 1518;  // slow rates still pass a burst of full frames
constexpr std::uint64_t kChunkParts = 32;           // of the burst, a chunk of shared credit
constexpr std::uint64_t kChunksPerSecond = 1000;    // at least

std::uint64_t ceil_div(Wide a, Wide b) { return static_cast<std::uint64_t>((a + b - 1) / b); }

// Bytes that arrive in so many cycles, rounded up.
std::uint64_t bytes_in(std::uint64_t cycles, std::uint64_t rate_bps, std::uint64_t tsc_hz) {
    return ceil_div(Wide{cycles} * rate_bps, Wide{tsc_hz} * 8);
}

std::uint64_t auto_burst(std::uint64_t rate_bps) { return std::max(kMinAutoBurst, ceil_div(rate_bps, 800)); }

[[noreturn]] void refuse(const PolicerConfig& config, const std::string& why) {
    throw base::MachineError(fmt::format("policer {}: {}", config.name, why));
}

// One bucket's numbers.
struct Bucket {
    std::uint64_t rate_bps, burst, period, bytes, fill;
};

Bucket make_bucket(const PolicerConfig& config, std::uint64_t rate_bps, std::uint64_t burst_bytes,
                   std::uint64_t tsc_hz) {
    if (rate_bps == 0) refuse(config, "a rate of 0 passes nothing; at least 1 bit/s");
    const std::uint64_t burst = burst_bytes != 0 ? burst_bytes : auto_burst(rate_bps);
    const std::uint64_t at_least = bytes_in(kMinPeriodCycles, rate_bps, tsc_hz);
    if (burst / kMinBurstParts < at_least) {
        refuse(config, fmt::format("a burst of {} bytes is too short for {} bit/s; at least {}", burst, rate_bps,
                                   at_least * kMinBurstParts));
    }
    const std::uint64_t wanted = std::min(bytes_in(kPeriodCycles, rate_bps, tsc_hz), burst / kBurstParts);
    const std::uint64_t bytes = std::max(at_least, wanted);
    const Wide bit_cycles = Wide{bytes} * 8 * tsc_hz;
    const auto period = static_cast<std::uint64_t>((bit_cycles + rate_bps / 2) / rate_bps);
    const Wide fill = (Wide{burst} + bytes - 1) / bytes * period;
    if (fill >> 62 != 0) refuse(config, fmt::format("{} bytes at {} bit/s take decades to fill", burst, rate_bps));
    return {rate_bps, burst, period, bytes, static_cast<std::uint64_t>(fill)};
}

// For how long rte_meter may be left alone: its product of periods and bytes must fit beside the burst.
void check_idle_time(const PolicerConfig& config, const Bucket& bucket, std::uint64_t fill) {
    if (((Wide{fill} / bucket.period + 1) * bucket.bytes + bucket.burst) >> 63 != 0)
        refuse(config, "one of its buckets fills so much faster than the other that they can't be metered together");
}

SharedRate share(const Bucket& bucket, std::uint64_t tsc_hz) {
    SharedRate shared;
    const Wide bytes_per_cycle = (Wide{bucket.rate_bps} << kBytesShift) / (Wide{tsc_hz} * 8);
    shared.bytes_per_cycle =
        bytes_per_cycle >> 64 != 0 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(bytes_per_cycle);
    shared.cycles_per_byte = static_cast<std::uint64_t>((Wide{tsc_hz} * 8 << kCyclesShift) / bucket.rate_bps);
    shared.burst_tsc = ceil_div(Wide{bucket.burst} * 8 * tsc_hz, bucket.rate_bps);
    shared.burst_bytes = bucket.burst;
    shared.chunk_bytes = std::min(bucket.burst / kChunkParts, bucket.rate_bps / 8 / kChunksPerSecond);
    return shared;
}

// Through rte_meter first, which checks the parameters; the periods that it finds are replaced.
void check_parameters(const PolicerConfig& config, const Bucket& committed, const Bucket& excess) {
    const auto bytes_per_second = [](const Bucket& bucket) { return std::max<std::uint64_t>(1, bucket.rate_bps / 8); };
    const std::string name = "policer " + config.name;
    if (config.type == MeterType::trtcm_2698) {
        rte_meter_trtcm_params params = {bytes_per_second(committed), bytes_per_second(excess), committed.burst,
                                         excess.burst};
        rte_meter_trtcm_profile profile;
        base::check(rte_meter_trtcm_profile_config(&profile, &params), name);
    } else if (config.type == MeterType::trtcm_4115) {
        rte_meter_trtcm_rfc4115_params params = {bytes_per_second(committed), bytes_per_second(excess), committed.burst,
                                                 excess.burst};
        rte_meter_trtcm_rfc4115_profile profile;
        base::check(rte_meter_trtcm_rfc4115_profile_config(&profile, &params), name);
    } else {
        rte_meter_srtcm_params params = {bytes_per_second(committed), committed.burst, excess.burst};
        rte_meter_srtcm_profile profile;
        base::check(rte_meter_srtcm_profile_config(&profile, &params), name);
    }
}

// None for a single rate; srTCM's is fed by the committed rate.
Bucket excess_bucket(const PolicerConfig& config, std::uint64_t tsc_hz) {
    switch (config.type) {
        case MeterType::single:
            return {0, 0, ~std::uint64_t{0}, 0, 0};
        case MeterType::srtcm_2697:
            return make_bucket(config, config.rate_bps, config.excess_burst_bytes, tsc_hz);
        case MeterType::trtcm_2698:
            if (config.excess_rate_bps < config.rate_bps)
                refuse(config, fmt::format("a peak rate of {} bit/s under the committed one of {}",
                                           config.excess_rate_bps, config.rate_bps));
            break;
        case MeterType::trtcm_4115:
            break;
    }
    return make_bucket(config, config.excess_rate_bps, config.excess_burst_bytes, tsc_hz);
}

}  // namespace

PolicerProfile make_profile(const PolicerConfig& config) { return make_profile(config, base::tsc_hz()); }

PolicerProfile make_profile(const PolicerConfig& config, std::uint64_t tsc_hz) {
    const Bucket committed = make_bucket(config, config.rate_bps, config.burst_bytes, tsc_hz);
    const Bucket excess = excess_bucket(config, tsc_hz);
    check_parameters(config, committed, excess);
    const bool two_rates = config.type >= MeterType::trtcm_2698;

    PolicerProfile profile;
    profile.meter = {committed.burst,
                     excess.burst,
                     committed.period,
                     committed.bytes,
                     two_rates ? excess.period : ~std::uint64_t{0},
                     two_rates ? excess.bytes : 0};
    profile.fill_tsc = two_rates ? std::max(committed.fill, excess.fill) : committed.fill + excess.fill;
    check_idle_time(config, committed, profile.fill_tsc);
    check_idle_time(config, excess, profile.fill_tsc);
    profile.accounting_delta = config.accounting == Accounting::l1 ? 24 : 0;
    profile.least_bytes = config.accounting == Accounting::l1 ? 60 : 0;
    profile.count_l3 = config.accounting == Accounting::l3;
    profile.type = config.type;
    profile.colour_aware = config.colour_aware;
    profile.fast = config.colour_aware                    ? FastPath::never
                   : config.type == MeterType::trtcm_2698 ? FastPath::both
                                                          : FastPath::committed;
    profile.actions = {ColourAction{}, config.yellow, config.red};
    profile.rate_bps = config.rate_bps;
    profile.burst_bytes = committed.burst;
    profile.excess_rate_bps = two_rates ? config.excess_rate_bps : 0;
    profile.excess_burst_bytes = excess.burst;
    profile.shared[0] = share(committed, tsc_hz);
    if (config.type != MeterType::single) profile.shared[1] = share(excess, tsc_hz);
    return profile;
}

}  // namespace cachewire::qos
