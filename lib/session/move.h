#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A session on its way from one worker's table to another's: all of it, its outcome by value (indices are each
// worker's own), its counts credited to its rule up to here.
#include <cstdint>

#include "net/flow_key.h"
#include "session/entry.h"
#include "session/outcome.h"

namespace cachewire::session {

struct MovedSession {
    HotEntry hot;
    ColdEntry cold;  // companion: kNone
    net::FlowKey companion;
    std::uint32_t companion_hash;
    bool has_companion;
    bool has_outcome;
    Verdicts verdicts;
};

}  // namespace cachewire::session
