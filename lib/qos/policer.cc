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

#include <fmt/format.h>

namespace cachewire::qos {

namespace {

__extension__ typedef unsigned __int128 Wide;

constexpr std::uint64_t kPeriodCycles = 10'000;  // wanted: error under 1e-4
constexpr std::uint64_t kMinPeriodCycles = 100;  // error up to 0.5 %
constexpr std::uint64_t kBurstParts = 128;       // wanted: a period's bytes at most this part of the burst
constexpr std::uint64_t kMinBurstParts = 2;
constexpr std::uint64_t kMinAutoBurst = 16 * 1518;  // slow rates still pass a burst of full frames

std::uint64_t ceil_div(Wide a, Wide b) { return static_cast<std::uint64_t>((a + b - 1) / b); }

// Bytes that arrive in so many cycles, rounded up.
std::uint64_t bytes_in(std::uint64_t cycles, std::uint64_t rate_bps, std::uint64_t tsc_hz) {
    return ceil_div(Wide{cycles} * rate_bps, Wide{tsc_hz} * 8);
}

std::uint64_t auto_burst(std::uint64_t rate_bps) { return std::max(kMinAutoBurst, ceil_div(rate_bps, 800)); }

[[noreturn]] void refuse(const PolicerConfig& config, const std::string& why) {
    throw base::MachineError(fmt::format("policer {}: {}", config.name, why));
}

}  // namespace

PolicerProfile make_profile(const PolicerConfig& config) { return make_profile(config, base::tsc_hz()); }

PolicerProfile make_profile(const PolicerConfig& config, std::uint64_t tsc_hz) {
    if (config.rate_bps == 0) refuse(config, "a rate of 0 passes nothing; at least 1 bit/s");
    const std::uint64_t burst = config.burst_bytes != 0 ? config.burst_bytes : auto_burst(config.rate_bps);

    const std::uint64_t at_least = bytes_in(kMinPeriodCycles, config.rate_bps, tsc_hz);
    if (burst / kMinBurstParts < at_least) {
        refuse(config, fmt::format("a burst of {} bytes is too short for {} bit/s; at least {}", burst, config.rate_bps,
                                   at_least * kMinBurstParts));
    }
    const std::uint64_t wanted = std::min(bytes_in(kPeriodCycles, config.rate_bps, tsc_hz), burst / kBurstParts);
    const std::uint64_t bytes = std::max(at_least, wanted);
    const Wide bit_cycles = Wide{bytes} * 8 * tsc_hz;
    const auto period = static_cast<std::uint64_t>((bit_cycles + config.rate_bps / 2) / config.rate_bps);
    const Wide fill = (Wide{burst} + bytes - 1) / bytes * period;
    if (fill >> 62 != 0)
        refuse(config, fmt::format("{} bytes at {} bit/s take decades to fill", burst, config.rate_bps));

    PolicerProfile profile;
    // Through rte_meter first, which checks the parameters; the period it finds is replaced.
    rte_meter_srtcm_params params = {std::max<std::uint64_t>(1, config.rate_bps / 8), burst, 0};
    base::check(rte_meter_srtcm_profile_config(&profile.meter, &params), "policer " + config.name);
    profile.meter.cir_period = period;
    profile.meter.cir_bytes_per_period = bytes;
    profile.fill_tsc = static_cast<std::uint64_t>(fill);
    profile.accounting_delta = config.accounting == Accounting::l1 ? 24 : 0;
    profile.least_bytes = config.accounting == Accounting::l1 ? 60 : 0;
    profile.count_l3 = config.accounting == Accounting::l3;
    profile.rate_bps = config.rate_bps;
    profile.burst_bytes = burst;
    return profile;
}

}  // namespace cachewire::qos
