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

// Fills the bucket for `now_tsc`. rte_meter adds (periods since the last update) x (bytes a period) to the bucket
// before it looks at the burst size. That product wraps after a long idle time at a high rate, and a state that was
// never used has idled since the machine started. So a bucket that had time to fill is set full instead; else the
// product is at most burst + one period's bytes.
inline void refill(rte_meter_srtcm& meter, const PolicerProfile& profile, std::uint64_t now_tsc) noexcept {
    if (meter.time == 0 || now_tsc - meter.time >= profile.fill_tsc) {
        meter.time = now_tsc;
        meter.tc = profile.meter.cbs;
        return;
    }
    if (now_tsc - meter.time < profile.meter.cir_period) return;
    // A packet of no bytes only brings the tokens. rte_meter reads the profile, but its parameter isn't const.
    auto* meter_profile = const_cast<rte_meter_srtcm_profile*>(&profile.meter);
    rte_meter_srtcm_color_blind_check(&meter, meter_profile, now_tsc, 0);
}

// The packets of one burst through their buckets. They carry one time stamp, so a bucket is filled once, and then a
// colour-blind srTCM without an excess bucket is one comparison (RFC 2697 3); rte_meter would divide for each packet,
// and each division waits for the one before: 39 against 13 cycles a packet in `bench flows`. Tokens and counts stay in
// registers while packets go to the same bucket: 20 instructions less a packet again. One meter sees one packet after
// the other; two at work on the same bucket would each spend its tokens, so `release` it there first.
class BurstMeter {
  public:
    static constexpr std::uint16_t kNone = 0xffff;

    [[gnu::always_inline]] BurstMeter(PolicerState* states, const PolicerProfile* profiles,
                                      std::uint64_t now_tsc) noexcept
        : states_(states), profiles_(profiles), now_tsc_(now_tsc) {}
    [[gnu::always_inline]] ~BurstMeter() { close(); }
    BurstMeter(const BurstMeter&) = delete;
    BurstMeter& operator=(const BurstMeter&) = delete;

    // Colours a packet of `frame_length` L2 bytes carrying `l3_length` IP bytes and counts it. A single-rate policer
    // has no excess bucket: green or red.
    [[gnu::always_inline]] Colour police(std::uint16_t index, std::uint32_t frame_length,
                                         std::uint32_t l3_length) noexcept {
        if (index != index_) [[unlikely]] {
            close();
            open(index);
        }
        const std::uint32_t l2_length = frame_length > least_bytes_ ? frame_length : least_bytes_;
        const std::uint32_t bytes = count_l3_ ? l3_length : l2_length + delta_;
        if (tokens_ < bytes) {
            PolicerState& state = states_[index];
            state.violate_packets.add(1);
            state.violate_bytes.add(bytes);
            return Colour::red;
        }
        tokens_ -= bytes;
        ++packets_;
        bytes_ += bytes;
        return Colour::green;
    }

    // Writes the bucket back if it is the one at work.
    [[gnu::always_inline]] void release(std::uint16_t index) noexcept {
        if (index != index_) [[likely]]
            return;
        close();
        index_ = kNone;
    }

  private:
    [[gnu::always_inline]] void open(std::uint16_t index) noexcept {
        const PolicerProfile& profile = profiles_[index];
        PolicerState& state = states_[index];
        refill(state.meter, profile, now_tsc_);
        index_ = index;
        tokens_ = state.meter.tc;
        packets_ = bytes_ = 0;
        least_bytes_ = profile.least_bytes;
        delta_ = static_cast<std::uint32_t>(std::int32_t{profile.accounting_delta});
        count_l3_ = profile.count_l3;
    }
    [[gnu::always_inline]] void close() noexcept {
        if (index_ == kNone) return;
        PolicerState& state = states_[index_];
        state.meter.tc = tokens_;
        state.conform_packets.add(packets_);
        state.conform_bytes.add(bytes_);
    }

    PolicerState* states_;
    const PolicerProfile* profiles_;
    std::uint64_t now_tsc_;
    std::uint16_t index_ = kNone;
    std::uint64_t tokens_ = 0, packets_ = 0, bytes_ = 0;
    std::uint32_t least_bytes_ = 0, delta_ = 0;
    bool count_l3_ = false;
};

// One packet alone.
inline Colour police(PolicerState& state, const PolicerProfile& profile, std::uint64_t now_tsc,
                     std::uint32_t frame_length, std::uint32_t l3_length) noexcept {
    return BurstMeter(&state, &profile, now_tsc).police(0, frame_length, l3_length);
}

}  // namespace cachewire::qos
