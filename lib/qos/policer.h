#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Policers on rte_meter: one rate, srTCM (RFC 2697), trTCM (RFC 2698, RFC 4115). A profile is what the configuration
// says, immutable and shared; a state is one attachment's bucket and counts on one lcore, written by that lcore alone.
// A zero-filled state is a full bucket. burst_meter.h colours packets; shared_bucket.h holds one rate over several
// lcores.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/cache_line.h"
#include "base/counter.h"

#include <rte_meter.h>

namespace cachewire::qos {

enum class Colour : std::uint8_t { green, yellow, red };
enum class Accounting : std::uint8_t { l1, l2, l3 };
enum class MeterType : std::uint8_t { single, srtcm_2697, trtcm_2698, trtcm_4115 };

inline constexpr std::uint16_t kOwnBucket = 0xffff;  // also: no policer, where an index is expected

struct ColourAction {
    enum class Kind : std::uint8_t { pass, remark, drop };
    Kind kind = Kind::pass;
    std::uint8_t dscp = 0;  // with remark
    friend bool operator==(const ColourAction&, const ColourAction&) = default;
};

struct PolicerConfig {
    std::string name;
    std::uint64_t rate_bps = 0;     // bit/s; the committed rate where there are two
    std::uint64_t burst_bytes = 0;  // 0: auto = 10 ms at the rate, at least 16 frames of 1518 bytes
    Accounting accounting = Accounting::l2;
    MeterType type = MeterType::single;
    std::uint64_t excess_rate_bps = 0;     // trTCM: RFC 2698 peak, RFC 4115 excess
    std::uint64_t excess_burst_bytes = 0;  // PBS or EBS; 0: auto, by that rate; srTCM: by the committed one
    bool colour_aware = false;
    ColourAction yellow, red{ColourAction::Kind::drop};
};

// One bucket of a rate over several lcores, by fixed-point numbers that need no division (shared_bucket.h).
struct SharedRate {
    std::uint64_t bytes_per_cycle = 0;  // times 2^kBytesShift
    std::uint64_t cycles_per_byte = 0;  // times 2^kCyclesShift
    std::uint64_t burst_tsc = 0;        // an empty bucket is full after this long
    std::uint64_t burst_bytes = 0;
    std::uint64_t chunk_bytes = 0;  // what an lcore takes at once
};

// How a burst's common packet is coloured (burst_meter.h).
enum class FastPath : std::uint8_t {
    committed,  // green if the committed bucket has it
    both,       // RFC 2698: green takes from both buckets, so the smaller one decides
    never       // colour-aware
};

// An untouched one lets everything pass: what indices stand for that nothing is attached to any more.
struct alignas(base::kCacheLine) PolicerProfile {
    // One form for all types: srTCM's are its first four numbers, RFC 4115's have the same places.
    rte_meter_trtcm_profile meter{std::uint64_t{1} << 62, 0, ~std::uint64_t{0}, 0, ~std::uint64_t{0}, 0};
    std::uint64_t fill_tsc = 0;         // empty buckets are full after this long
    std::int16_t accounting_delta = 0;  // added to the L2 frame length: +24 for l1, 0 for l2; l3 counts the IP length
    std::uint16_t least_bytes = 0;      // l1: what Ethernet pads a shorter frame to
    std::uint16_t bucket = kOwnBucket;  // the attachment whose bucket this one draws from
    bool count_l3 = false;
    FastPath fast = FastPath::committed;

    // The second line: not for packets that are green by the first comparison.
    MeterType type = MeterType::single;
    bool colour_aware = false;
    bool per_session = false;               // each session has a bucket of its own (session_meter.h)
    std::array<ColourAction, 3> actions{};  // by colour
    std::uint64_t rate_bps = 0;
    std::uint64_t burst_bytes = 0;
    std::uint64_t excess_rate_bps = 0;
    std::uint64_t excess_burst_bytes = 0;
    std::array<SharedRate, 2> shared;  // committed, excess
};

static_assert(offsetof(PolicerProfile, type) == base::kCacheLine);

// How many bytes a packet costs, from what the profile says of it.
struct Billing {
    std::uint32_t least_bytes = 0, delta = 0;
    bool count_l3 = false;

    static Billing of(const PolicerProfile& profile) noexcept {
        return {profile.least_bytes, static_cast<std::uint32_t>(std::int32_t{profile.accounting_delta}),
                profile.count_l3};
    }
    [[nodiscard]] std::uint32_t bytes(std::uint32_t frame_length, std::uint32_t l3_length) const noexcept {
        const std::uint32_t l2_length = frame_length > least_bytes ? frame_length : least_bytes;
        return count_l3 ? l3_length : l2_length + delta;
    }
};

// Throws base::MachineError naming the policer for a rate or burst that can't be kept within 1 %. Needs EAL's TSC rate.
PolicerProfile make_profile(const PolicerConfig& config);
// The same for a given TSC rate.
PolicerProfile make_profile(const PolicerConfig& config, std::uint64_t tsc_hz);

// One line: the buckets, and the counts that most packets move. owning worker: rw; telemetry: ro (counters). Where the
// rate is shared by several lcores, the buckets hold the credit that this one has taken, and time_tc says when.
struct alignas(base::kCacheLine) PolicerState {
    rte_meter_trtcm meter{};  // time_tc 0: never used
    base::Counter conform_packets, conform_bytes, violate_packets, violate_bytes;
};
static_assert(sizeof(PolicerState) == base::kCacheLine);

// Beside the state, because a single-rate policer never counts here.
struct ExceedCounts {
    base::Counter packets, bytes;
};

class SharedBuckets;

// All of one lcore, by attachment.
struct Policers {
    std::vector<PolicerState> states;
    std::vector<ExceedCounts> exceeds;
    SharedBuckets* shared = nullptr;  // null: this lcore is the only one

    Policers() = default;
    explicit Policers(std::size_t attachments) : states(attachments), exceeds(attachments) {}
};

// Empties nothing and keeps the counts: the bucket is full again.
inline void reset(PolicerState& state) noexcept { state.meter = {}; }

// Fills the buckets for `now_tsc`. rte_meter adds (periods since the last update) x (bytes a period) to a bucket before
// it looks at the burst size. That product wraps after a long idle time at a high rate, and a state that was never used
// has idled since the machine started. So buckets that had time to fill are set full instead; else make_profile has
// seen to it that the product fits.
inline void refill(rte_meter_trtcm& meter, const PolicerProfile& profile, std::uint64_t now_tsc) noexcept {
    if (meter.time_tc == 0 || now_tsc - meter.time_tc >= profile.fill_tsc) {
        meter = {now_tsc, now_tsc, profile.meter.cbs, profile.meter.pbs};
        return;
    }
    if (now_tsc - meter.time_tc < profile.meter.cir_period && now_tsc - meter.time_tp < profile.meter.pir_period)
        return;
    // A packet of no bytes only brings the tokens. rte_meter reads the profile, but its parameter isn't const.
    if (profile.meter.pir_bytes_per_period != 0) {  // RFC 2698, and RFC 4115 fills in the same way
        auto* meter_profile = const_cast<rte_meter_trtcm_profile*>(&profile.meter);
        rte_meter_trtcm_color_blind_check(&meter, meter_profile, now_tsc, 0);
        return;
    }
    rte_meter_srtcm_profile srtcm_profile = {profile.meter.cbs, profile.meter.pbs, profile.meter.cir_period,
                                             profile.meter.cir_bytes_per_period};
    rte_meter_srtcm srtcm = {meter.time_tc, meter.tc, meter.tp};
    rte_meter_srtcm_color_blind_check(&srtcm, &srtcm_profile, now_tsc, 0);
    meter = {srtcm.time, now_tsc, srtcm.tc, srtcm.te};
}

}  // namespace cachewire::qos
