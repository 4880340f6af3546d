#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Access lists and policers of the configuration in the form that the libraries take: names become snapshot indices.
#include "acl/rule.h"
#include "config/config.h"
#include "control/registry.h"
#include "qos/policer.h"

namespace cachewire::control {

acl::List compile_list(const config::Config& config, const config::Acl& acl, Registry& registry);
// Which bits of FlowKey's first-packet fields (eight bytes from in_interface_be on, as one word) the rules look at.
std::uint64_t fields_looked_at(const acl::List& list) noexcept;
qos::PolicerConfig policer_config(const config::Policer& policer);

}  // namespace cachewire::control
