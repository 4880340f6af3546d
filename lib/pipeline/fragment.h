#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// IPv4 fragmentation on the way out (RFC 791 3.2), for packets that are longer than their next hop's MTU and may be
// cut. On the worker, because it is forwarding: no rate limits it and no other thread sees it. Rare, and apart from the
// TX stage's straight line. The parent is consumed, the pieces are originated; all of them or none: a parent whose
// pieces don't all fit into the TX buffer, or for which the pool has too few buffers, is dropped by name.
#include <optional>

#include "pipeline/drop_reason.h"
#include "pipeline/snapshot.h"
#include "pipeline/worker_state.h"

namespace cachewire::pipeline {

// RFC 791: the don't-fragment bit of a header.
inline bool may_fragment_ip4(const std::uint8_t* header) noexcept { return (header[6] & 0x40) == 0; }

// nullopt: the pieces are in the TX buffer and the parent is freed. Else the parent is still the caller's.
std::optional<DropReason> send_in_pieces(WorkerState& worker, const Snapshot& snapshot, const Lane& lane) noexcept;

}  // namespace cachewire::pipeline
