#pragma once
// SPDX-License-Identifier: BSD-3-Clause
#include <vector>

namespace cachewire::port {

// What this process has open (proc(5), /proc/self/fd), for descriptors that a driver keeps to itself. One that is
// opened or closed meanwhile may be missing or gone. Empty where /proc is not there.
std::vector<int> own_descriptors();

}  // namespace cachewire::port
