#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The oracle: walks the rules in order. Slow and obvious; every classifier is held against it.
#include "acl/rule.h"

namespace cachewire::acl {

bool matches(const Rule& rule, const net::FlowKey& key) noexcept;
Verdict classify_linear(const List& list, const net::FlowKey& key) noexcept;

}  // namespace cachewire::acl
