#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// One stage's slice: bursts are filled outside the time that counts.
#include "base/clock.h"
#include "pipeline/burst.h"
#include "slices.h"

namespace cachewire::bench {

// `fill(lane, key)` for each packet, then `work(now)` for the burst.
template <class Fill, class Work>
Slice time_bursts(pipeline::Burst& burst, unsigned bursts, unsigned packets, Fill&& fill, Work&& work) {
    Slice slice;
    for (unsigned b = 0; b < bursts; ++b) {
        burst.begin(packets);
        for (const auto i : burst.live()) fill(burst.lane(i), burst.key(i));
        const std::uint64_t begin = base::now_tsc();
        work(begin);
        slice.cycles += base::now_tsc() - begin;
    }
    slice.packets = std::uint64_t{bursts} * packets;
    return slice;
}

}  // namespace cachewire::bench
