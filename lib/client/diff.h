#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What differs between two texts, line by line, as `diff -u` says it.
#include <string>
#include <string_view>

namespace cachewire::client {

// Empty: nothing does.
std::string unified_diff(std::string_view before, std::string_view after, std::string_view before_name,
                         std::string_view after_name);

}  // namespace cachewire::client
