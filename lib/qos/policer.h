#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Policing on rte_meter. A profile is what the configuration says, immutable and shared; a state is one bucket of one
// attachment on one lcore, written by that lcore alone.
#include <cstdint>
#include <string>

#include <rte_meter.h>

#include "base/cache_line.h"
#include "base/counter.h"

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
    rte_meter_srtcm_profile meter;
    std::int16_t accounting_delta = 0;  // added to the L2 frame length: +24 for l1, 0 for l2; l3 counts the IP length instead
    bool count_l3 = false;
    std::uint64_t rate_bps = 0;
    std::uint64_t burst_bytes = 0;
};

// Throws base::MachineError naming the policer when rte_meter refuses. `rate_bps` / 8 bytes a second.
PolicerProfile make_profile(const PolicerConfig& config);

// One line: the bucket and its own counts. owning worker: rw; telemetry: ro (counters).
struct alignas(base::kCacheLine) PolicerState {
    rte_meter_srtcm meter{};
    base::Counter conform_packets, conform_bytes, violate_packets, violate_bytes;
};

void reset(PolicerState& state, const PolicerProfile& profile) noexcept;

// Colours a packet of `frame_length` L2 bytes carrying `l3_length` IP bytes and counts it. A single-rate policer has no
// excess bucket: green or red.
Colour police(PolicerState& state, const PolicerProfile& profile, std::uint64_t now_tsc, std::uint32_t frame_length,
              std::uint32_t l3_length) noexcept;

}  // namespace cachewire::qos
