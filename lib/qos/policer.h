#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Policing on rte_meter. A profile is what the configuration says, immutable and shared; a state is one bucket of one
// attachment on one lcore, written by that lcore alone. A zero-filled state is a full bucket.
#include <cstdint>
#include <string>

#include "base/cache_line.h"
#include "base/counter.h"

#include <rte_meter.h>

namespace cachewire::qos {

enum class Colour : std::uint8_t { green, yellow, red };
enum class Accounting : std::uint8_t { l1, l2, l3 };

struct PolicerConfig {
    std::string name;
    std::uint64_t rate_bps = 0;     // bit/s
    std::uint64_t burst_bytes = 0;  // 0: auto = 10 ms at the rate, at least 16 frames of 1518 bytes
    Accounting accounting = Accounting::l2;
};

struct PolicerProfile {
    rte_meter_srtcm_profile meter{};    // RFC 2697 with EBS 0
    std::uint64_t fill_tsc = 0;         // an empty bucket is full after this long
    std::int16_t accounting_delta = 0;  // added to the L2 frame length: +24 for l1, 0 for l2; l3 counts the IP length
    std::uint16_t least_bytes = 0;      // l1: what Ethernet pads a shorter frame to
    bool count_l3 = false;
    std::uint64_t rate_bps = 0;
    std::uint64_t burst_bytes = 0;
};

// Throws base::MachineError naming the policer for a rate or burst that can't be kept within 1 %. Needs EAL's TSC rate.
PolicerProfile make_profile(const PolicerConfig& config);
// The same for a given TSC rate.
PolicerProfile make_profile(const PolicerConfig& config, std::uint64_t tsc_hz);

// One line: the bucket and its own counts. owning worker: rw; telemetry: ro (counters).
struct alignas(base::kCacheLine) PolicerState {
    rte_meter_srtcm meter{};  // time 0: never used
    base::Counter conform_packets, conform_bytes, violate_packets, violate_bytes;
};
static_assert(sizeof(PolicerState) == base::kCacheLine);

// Empties nothing and keeps the counts: the bucket is full again.
inline void reset(PolicerState& state) noexcept { state.meter = {}; }

// Within one period of the last update no token arrives, and a colour-blind srTCM without an excess bucket is one comparison
// (RFC 2697 3). Bursts carry one time stamp, so that is every packet but the first; rte_meter would divide for each, and each
// division waits for the one before: 39 against 13 cycles a packet in `bench flows`.
inline bool conforms(rte_meter_srtcm& meter, const PolicerProfile& profile, std::uint64_t now_tsc,
                     std::uint32_t bytes) noexcept {
    if (now_tsc - meter.time < profile.meter.cir_period) {
        if (meter.tc < bytes) return false;
        meter.tc -= bytes;
        return true;
    }
    // rte_meter only reads the profile, but its parameter isn't const.
    auto* meter_profile = const_cast<rte_meter_srtcm_profile*>(&profile.meter);
    return rte_meter_srtcm_color_blind_check(&meter, meter_profile, now_tsc, bytes) == RTE_COLOR_GREEN;
}

// Colours a packet of `frame_length` L2 bytes carrying `l3_length` IP bytes and counts it. A single-rate policer has no
// excess bucket: green or red.
//
// rte_meter adds (periods since the last update) x (bytes a period) to the bucket before it looks at the burst size.
// That product wraps after a long idle time at a high rate, and a state that was never used has idled since the machine
// started. So a bucket that had time to fill is set full instead; else the product is at most burst + one period's
// bytes.
inline Colour police(PolicerState& state, const PolicerProfile& profile, std::uint64_t now_tsc,
                     std::uint32_t frame_length, std::uint32_t l3_length) noexcept {
    rte_meter_srtcm& meter = state.meter;
    if (meter.time == 0 || now_tsc - meter.time >= profile.fill_tsc) {
        meter.time = now_tsc;
        meter.tc = profile.meter.cbs;
    }
    const std::uint32_t l2_length = frame_length > profile.least_bytes ? frame_length : profile.least_bytes;
    const std::uint32_t bytes = profile.count_l3 ? l3_length : l2_length + profile.accounting_delta;
    if (conforms(meter, profile, now_tsc, bytes)) {
        state.conform_packets.add(1);
        state.conform_bytes.add(bytes);
        return Colour::green;
    }
    state.violate_packets.add(1);
    state.violate_bytes.add(bytes);
    return Colour::red;
}

}  // namespace cachewire::qos
