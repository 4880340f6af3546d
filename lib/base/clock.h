#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Time on the datapath is the TSC; seconds exist only at the edges. Tests pass their own now_tsc.
#include <cstdint>

#include <rte_cycles.h>

namespace cachewire::base {

inline std::uint64_t now_tsc() noexcept { return rte_rdtsc(); }

// TSC ticks a second as EAL measured it; valid after rte_eal_init.
inline std::uint64_t tsc_hz() noexcept { return rte_get_tsc_hz(); }

}  // namespace cachewire::base
