#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A file of routes, one a line, beside the configuration that names it. '#' begins a comment.
//
//   prefixes   PREFIX via ADDRESS, or PREFIX drop
//   l3fwd      RPREFIX PORT, as dpdk-l3fwd's LPM and FIB modes read: PORT counts from 0. Its 5-tuple lines are no
//   routes.
//
// What an address or a port number leads to is the caller's business.
#include <functional>
#include <string>
#include <string_view>

#include "config/config.h"

namespace cachewire::config {

enum class RouteFormat { prefixes, l3fwd };

struct RouteLine {
    unsigned line = 0;
    unsigned column = 0;  // of what is wrong, or of the target
    std::string error;    // empty: the rest holds
    net::Prefix prefix;
    bool drop = false;
    std::string_view target;  // the address's text or the port number's
};

// Calls `each` for every line that is neither empty nor a comment, until it returns false.
void for_each_route_line(std::string_view text, RouteFormat format, const std::function<bool(const RouteLine&)>& each);

}  // namespace cachewire::config
