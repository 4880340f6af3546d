#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// /cachewire/acl/list and /cachewire/acl/hits.
#include <cstddef>
#include <string>

#include "acl/rule.h"
#include "config/config.h"
#include "telemetry/endpoints.h"

namespace cachewire::control {

class Runtime;

// Its own, or its place in the list.
std::string rule_name(const config::AclRule& rule, std::size_t index);

const char* action_name(acl::Action action);

void add_acl_endpoints(telemetry::Endpoints& endpoints, Runtime& runtime);

}  // namespace cachewire::control
