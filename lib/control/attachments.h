#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Which tenant and interface a port's tag stack belongs to: fills pipeline::Port's tables from interfaces and tenants'
// `match`. The most specific wins: an interface's own tags, then port + both tags, port + outer tag, port alone.
#include "config/config.h"
#include "control/registry.h"
#include "pipeline/snapshot.h"

namespace cachewire::control {

// `port_index` is the port's place in config.ports. Throws nothing: references were checked by config.
void fill_attachments(const config::Config& config, std::size_t port_index, Registry& registry, pipeline::Port& port);

}  // namespace cachewire::control
