#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// RFC 2697, 2698 and 4115 in doubles and continuous time; a single rate is RFC 2697 without an excess bucket.
#include <algorithm>

#include "qos/policer.h"

namespace cachewire::qos {

// The RFCs' text: tokens come continuously, a packet has one colour.
struct RfcOracle {
    MeterType type;
    bool aware;
    double cir, cbs, eir, ebs;  // bytes
    double tc, te, last_s;

    RfcOracle(const PolicerProfile& profile, double now_s)
        : type(profile.type),
          aware(profile.colour_aware),
          cir(static_cast<double>(profile.rate_bps) / 8),
          cbs(static_cast<double>(profile.burst_bytes)),
          eir(static_cast<double>(profile.excess_rate_bps) / 8),
          ebs(static_cast<double>(profile.excess_burst_bytes)),
          tc(cbs),
          te(ebs),
          last_s(now_s) {}

    void refill(double now_s) {
        const double elapsed = now_s - last_s;
        last_s = now_s;
        tc += elapsed * cir;
        if (type == MeterType::srtcm_2697 || type == MeterType::single) {
            te += std::max(0.0, tc - cbs);
        } else {
            te += elapsed * eir;
        }
        tc = std::min(tc, cbs);
        te = std::min(te, ebs);
    }

    Colour colour(double now_s, double bytes, Colour incoming) {
        refill(now_s);
        if (!aware) incoming = Colour::green;
        if (type == MeterType::trtcm_2698) {
            if (incoming == Colour::red || te < bytes) return Colour::red;
            te -= bytes;
            if (incoming == Colour::yellow || tc < bytes) return Colour::yellow;
            tc -= bytes;
            return Colour::green;
        }
        if (incoming == Colour::green && tc >= bytes) {
            tc -= bytes;
            return Colour::green;
        }
        if (incoming != Colour::red && te >= bytes) {
            te -= bytes;
            return Colour::yellow;
        }
        return Colour::red;
    }
};

}  // namespace cachewire::qos
