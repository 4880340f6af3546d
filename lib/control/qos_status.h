#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What telemetry says about policers and classes.
#include <string_view>

#include "config/config.h"
#include "control/runtime.h"
#include "telemetry/page.h"

namespace cachewire::control {

// One entry an attachment.
telemetry::Json qos_stats(const Runtime::View& v, std::string_view parameters);
// One entry a port and class.
telemetry::Json qos_classes(const Runtime::View& v, std::string_view parameters);
// Adds what the tenant's policers have said to its dictionary: in and out together, and those of its interfaces.
void add_policed(const Runtime::View& v, const config::Tenant& tenant, telemetry::Json& dict);

}  // namespace cachewire::control
