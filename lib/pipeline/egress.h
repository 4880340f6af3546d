#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// By which interface a packet will leave, for lists whose rules name one: asked before they judge, off the hot path.
#include <cstdint>

#include "net/flow_key.h"
#include "pipeline/snapshot.h"

namespace cachewire::pipeline {

// `hash`: of the flow; `known`: the next hop that the session's direction has or has had, else 0: ECMP members are the
// route stage's. kNoInterface where no route leads out.
std::uint16_t egress_interface(const Snapshot& snapshot, std::uint16_t tenant, const net::Address& destination,
                               std::uint32_t hash, std::uint16_t known) noexcept;

// The next hop itself, leaks and groups followed; 0 where there is no route.
std::uint16_t egress_next_hop(const Snapshot& snapshot, std::uint16_t tenant, const net::Address& destination,
                              std::uint32_t hash, std::uint16_t known) noexcept;

}  // namespace cachewire::pipeline
