#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Wire JSON -> rte_tel_data: mechanical, the limits are to_wire()'s. Top level: an object or an array of scalars.
#include <rte_telemetry.h>

#include "telemetry/wire.h"

namespace cachewire::telemetry {

// Throws base::MachineError when DPDK refuses something or has no memory; `data` is then a valid empty dictionary.
void fill(rte_tel_data* data, const Json& wire_value);

}  // namespace cachewire::telemetry
