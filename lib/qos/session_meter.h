#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A policer whose bucket is each session's own. The bucket is rte_meter's state and nothing more, 32 bytes that
// somebody else keeps, zero where a session begins: full. Counts are the attachment's. A session has one owner, so no
// bucket of this kind is shared among lcores, and packets of one session in a burst are few, so each is coloured by
// itself.
//
// Lines touched: the bucket's, which the caller fetches; the profile's two, and the attachment's counts.
#include <algorithm>
#include <cstdint>

#include "qos/burst_meter.h"

namespace cachewire::qos {

using SessionBucket = rte_meter_trtcm;
static_assert(sizeof(SessionBucket) == 32);

// `incoming()` as in BurstMeter::police().
template <class Incoming = NoColour>
inline Colour police_session(SessionBucket& bucket, Policers& policers, std::uint16_t index,
                             const PolicerProfile& profile, std::uint64_t now_tsc, std::uint32_t frame_length,
                             std::uint32_t l3_length, Incoming&& incoming = {}) noexcept {
    // Of another profile, before a reload: what it has saved up counts as far as there is room for it now.
    bucket.tc = std::min(bucket.tc, profile.meter.cbs);
    bucket.tp = std::min(bucket.tp, profile.meter.pbs);
    refill(bucket, profile, now_tsc);
    const std::uint32_t bytes = Billing::of(profile).bytes(frame_length, l3_length);
    const Colour colour = color_by(bucket, profile.type, bytes, profile.colour_aware ? incoming() : Colour::green,
                                   [&](unsigned which) { return (which == 0 ? bucket.tc : bucket.tp) >= bytes; });
    count(policers, index, colour, bytes);
    return colour;
}

}  // namespace cachewire::qos
