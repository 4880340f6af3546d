#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The packets of one burst through their buckets. They carry one time stamp, so a bucket is filled once, and then the
// common packet is one comparison; rte_meter would divide for each packet, and each division waits for the one before:
// 39 against 13 cycles a packet in `bench flows`. Tokens and counts stay in registers while packets go to the same
// bucket: 20 instructions less a packet again. One meter at work at a time: two would each spend the other's tokens.
//
// What the comparison leaves over is coloured by color_rest(), by the RFCs: packets that are not green, all of a
// colour-aware policer, and those for which credit has to be taken from a bucket that lcores share. But for one rate:
// on one lcore that has nothing to try, and over several nothing once a try has failed in this burst. Its red packets
// are counted at once (21 -> 11 cycles each, bench qos).
//
// Lines touched: one a bucket (PolicerState) and a profile, once a burst where its packets stand together; a packet
// that exceeds touches the line of its ExceedCounts.
#include <algorithm>
#include <cstdint>

#include "qos/policer.h"
#include "qos/shared_bucket.h"

namespace cachewire::qos {

struct NoColour {
    constexpr Colour operator()() const noexcept { return Colour::green; }
};

// What the RFCs say of a packet whose buckets are filled; takes its tokens. `in(bucket)` is whether a bucket, 0
// (committed) or 1 (excess), has them.
template <class Has>
[[gnu::always_inline]] inline Colour color_by(rte_meter_trtcm& meter, MeterType type, std::uint32_t bytes,
                                              Colour incoming, Has&& in) noexcept {
    Colour colour = Colour::red;
    if (type == MeterType::trtcm_2698) {  // RFC 2698 3
        if (incoming != Colour::red && in(1)) {
            colour = incoming == Colour::green && in(0) ? Colour::green : Colour::yellow;
            meter.tp -= bytes;
        }
        if (colour == Colour::green) meter.tc -= bytes;
    } else if (incoming == Colour::green && in(0)) {  // RFC 2697 3, RFC 4115 2.1
        colour = Colour::green;
        meter.tc -= bytes;
    } else if (type != MeterType::single && incoming != Colour::red && in(1)) {
        colour = Colour::yellow;
        meter.tp -= bytes;
    }
    return colour;
}

inline void count(Policers& policers, std::uint16_t index, Colour colour, std::uint32_t bytes) noexcept {
    PolicerState& state = policers.states[index];
    ExceedCounts& exceeds = policers.exceeds[index];
    const bool green = colour == Colour::green;
    (green ? state.conform_packets : colour == Colour::yellow ? exceeds.packets : state.violate_packets).add(1);
    (green ? state.conform_bytes : colour == Colour::yellow ? exceeds.bytes : state.violate_bytes).add(bytes);
}

class BurstMeter {
  public:
    static constexpr std::uint16_t kNone = kOwnBucket;

    [[gnu::always_inline]] BurstMeter(Policers& policers, const PolicerProfile* profiles,
                                      std::uint64_t now_tsc) noexcept
        : policers_(policers), profiles_(profiles), now_tsc_(now_tsc) {}
    [[gnu::always_inline]] ~BurstMeter() { close(); }
    BurstMeter(const BurstMeter&) = delete;
    BurstMeter& operator=(const BurstMeter&) = delete;

    // Colours a packet of `frame_length` L2 bytes carrying `l3_length` IP bytes and counts it. `incoming()` is the
    // colour that it comes with; only colour-aware policers ask.
    template <class Incoming = NoColour>
    [[gnu::always_inline]] Colour police(std::uint16_t index, std::uint32_t frame_length, std::uint32_t l3_length,
                                         Incoming&& incoming = {}) noexcept {
        if (index != index_) [[unlikely]] {
            close();
            open(index);
        }
        const std::uint32_t bytes = billing_.bytes(frame_length, l3_length);
        if (tokens_ < bytes) {
            const auto lacking = static_cast<std::uint32_t>(bytes - tokens_);
            if (lacking >= red_from_) {
                PolicerState& state = policers_.states[index];
                state.violate_packets.add(1);
                state.violate_bytes.add(bytes);
                return Colour::red;
            }
            const Rest rest = color_rest(policers_, profiles_[index], index, opened_ - tokens_, now_tsc_, bytes,
                                         profiles_[index].colour_aware ? incoming() : Colour::green);
            opened_ = tokens_ = rest.tokens;
            if (rest.colour == Colour::red) red_from_ = red_from(profiles_[index], lacking);
            return rest.colour;
        }
        tokens_ -= bytes;
        ++packets_;
        bytes_ += bytes;
        return Colour::green;
    }

    // What becomes of a packet of that colour.
    [[nodiscard]] const ColourAction& action(std::uint16_t index, Colour colour) const noexcept {
        return profiles_[index].actions[static_cast<unsigned>(colour)];
    }

  private:
    static constexpr std::uint32_t kNeverRed = ~std::uint32_t{0};
    struct Rest {
        std::uint64_t tokens;
        Colour colour;
    };

    static PolicerState& bucket_of(Policers& policers, const PolicerProfile& profile, std::uint16_t index) noexcept {
        return policers.states[profile.bucket == kOwnBucket ? index : profile.bucket];
    }

    // Up to here a packet is green by one comparison.
    static std::uint64_t tokens_of(const rte_meter_trtcm& meter, FastPath fast) noexcept {
        if (fast == FastPath::committed) return meter.tc;
        return fast == FastPath::both ? std::min(meter.tc, meter.tp) : 0;
    }

    static void spend(rte_meter_trtcm& meter, FastPath fast, std::uint64_t bytes) noexcept {
        meter.tc -= bytes;
        if (fast == FastPath::both) meter.tp -= bytes;
    }

    [[gnu::always_inline]] void open(std::uint16_t index) noexcept {
        const PolicerProfile& profile = profiles_[index];
        rte_meter_trtcm& meter = bucket_of(policers_, profile, index).meter;
        if (policers_.shared == nullptr) {
            refill(meter, profile, now_tsc_);
        } else {
            void_old_credit(meter, profile, now_tsc_);
        }
        index_ = index;
        opened_ = tokens_ = tokens_of(meter, profile.fast);
        packets_ = bytes_ = 0;
        billing_ = Billing::of(profile);
        red_from_ = profile.type == MeterType::single && policers_.shared == nullptr ? 0 : kNeverRed;
    }

    [[gnu::always_inline]] void close() noexcept {
        if (index_ == kNone) return;
        const PolicerProfile& profile = profiles_[index_];
        spend(bucket_of(policers_, profile, index_).meter, profile.fast, opened_ - tokens_);
        PolicerState& state = policers_.states[index_];
        state.conform_packets.add(packets_);
        state.conform_bytes.add(bytes_);
    }

    // Of a single rate, that could not get so much: others only take from a shared bucket, and it is filled by the time
    // stamp that a burst has once. Where it has less than half a chunk nobody gets anything (SharedBuckets::take).
    static std::uint32_t red_from(const PolicerProfile& profile, std::uint32_t lacking) noexcept {
        if (profile.type != MeterType::single) return kNeverRed;
        return lacking <= profile.shared[0].chunk_bytes / 2 ? 0 : lacking;
    }

    [[gnu::noinline]] static void void_old_credit(rte_meter_trtcm& meter, const PolicerProfile& profile,
                                                  std::uint64_t now_tsc) noexcept {
        if (profile.rate_bps == 0) {
            meter.tc = profile.meter.cbs;
        } else if (now_tsc - meter.time_tc >= profile.fill_tsc) {
            meter.tc = meter.tp = 0;
        }
    }

    // Whether the bucket has `bytes`, if need be with credit from the shared one.
    static bool has(Policers& policers, const PolicerProfile& profile, std::size_t bucket, unsigned which,
                    rte_meter_trtcm& meter, std::uint64_t now_tsc, std::uint64_t bytes) noexcept {
        std::uint64_t& tokens = which == 0 ? meter.tc : meter.tp;
        if (tokens >= bytes) return true;
        if (policers.shared == nullptr) return false;
        const std::uint64_t more = policers.shared->take(bucket, which, profile, now_tsc, bytes - tokens);
        if (more == 0) return false;
        tokens += more;
        meter.time_tc = now_tsc;
        return true;
    }

    // Not a member, so that the meter can stay in registers. `spent`: since the meter was filled.
    [[gnu::noinline]] static Rest color_rest(Policers& policers, const PolicerProfile& profile, std::uint16_t index,
                                             std::uint64_t spent, std::uint64_t now_tsc, std::uint32_t bytes,
                                             Colour incoming) noexcept {
        const std::size_t bucket = profile.bucket == kOwnBucket ? index : profile.bucket;
        rte_meter_trtcm& meter = policers.states[bucket].meter;
        spend(meter, profile.fast, spent);
        const auto in = [&](unsigned which) { return has(policers, profile, bucket, which, meter, now_tsc, bytes); };
        const Colour colour = color_by(meter, profile.type, bytes, incoming, in);
        count(policers, index, colour, bytes);
        return {tokens_of(meter, profile.fast), colour};
    }

    Policers& policers_;
    const PolicerProfile* profiles_;
    std::uint64_t now_tsc_;
    std::uint16_t index_ = kNone;
    std::uint64_t tokens_ = 0, opened_ = 0, packets_ = 0, bytes_ = 0;
    Billing billing_;
    std::uint32_t red_from_ = kNeverRed;  // what lacks this many bytes is red, and there is nothing to be tried
};

// One packet alone.
inline Colour police(Policers& policers, std::uint16_t index, const PolicerProfile* profiles, std::uint64_t now_tsc,
                     std::uint32_t frame_length, std::uint32_t l3_length, Colour incoming = Colour::green) noexcept {
    return BurstMeter(policers, profiles, now_tsc).police(index, frame_length, l3_length, [=] { return incoming; });
}

}  // namespace cachewire::qos
