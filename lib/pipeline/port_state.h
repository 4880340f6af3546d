#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What is dropped in front of a port that doesn't send counts as.
#include "pipeline/drop_reason.h"
#include "pipeline/snapshot.h"

namespace cachewire::pipeline {

// Of a port whose `sends` is false.
inline DropReason why_not_sent(const Port& port) noexcept {
    return port.admin_up ? DropReason::link_down : DropReason::port_down;
}

}  // namespace cachewire::pipeline
