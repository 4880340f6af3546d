#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Long lists over a socket that carries 16 KiB an answer: {"0": {...}, "1": {...}, "next": CURSOR}, keys counted from
// the list's start so that pages merge, no "next" on the last page. A page ends where N entries or the socket's limits
// are reached, so a client that follows "next" sees every entry whatever their size.
#include <cstddef>
#include <functional>
#include <limits>
#include <string_view>
#include <vector>

#include "telemetry/wire.h"

namespace cachewire::telemetry {

struct PageRequest {
    std::size_t cursor = 0;
    std::size_t count = std::numeric_limits<std::size_t>::max();
};

// "", "CURSOR" or "CURSOR,N". Throws BadQuery.
PageRequest parse_page(std::string_view parameters);

// `entry(i)` is called for the entries of this page only. A cursor past the end gives an empty page.
Json page(std::size_t size, const std::function<Json(std::size_t)>& entry, const PageRequest& request);
Json page(const std::vector<Json>& entries, const PageRequest& request);

// "a,b,,c" -> a, b, "", c; no text, no fields. Views into `parameters`.
std::vector<std::string_view> split_parameters(std::string_view parameters);

}  // namespace cachewire::telemetry
