#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The MSS option of SYNs that come in or leave by an interface with `mss_clamp`: never raised, and lowered to what the
// two interfaces let through (RFC 9293 3.7.1, RFC 6691). Called by the TX stage where any interface asks for it.
#include "pipeline/snapshot.h"
#include "pipeline/worker_state.h"

namespace cachewire::pipeline {

// Of a packet between two interfaces; 0: not clamped.
std::uint16_t mss_limit(const Interface& in, const Interface& out, bool ip6) noexcept;

// `tcp`: the header with `bytes` of options and all; false: nothing to change. Keeps the checksum right.
bool clamp_mss(std::uint8_t* tcp, unsigned bytes, std::uint16_t limit) noexcept;

void clamp_mss(const Snapshot& snapshot, Burst& burst) noexcept;

}  // namespace cachewire::pipeline
