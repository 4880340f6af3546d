#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Addresses and prefixes as people write them; what is none throws std::invalid_argument.
#include <stdexcept>
#include <string>
#include <string_view>

#include "net/prefix.h"

namespace cachewire::test {

inline net::Prefix prefix(std::string_view text) {
    const auto parsed = net::parse_prefix(text);
    if (!parsed || parsed->host_bits_set) throw std::invalid_argument("not a prefix: " + std::string(text));
    return parsed->prefix;
}

// The form that the parser has to refuse, ::ffff:a.b.c.d, must still be written down for tests.
inline net::Address address(std::string_view text) {
    if (const auto parsed = net::parse_address(text)) return parsed->address;
    if (text.starts_with("::ffff:")) return address(text.substr(7));
    throw std::invalid_argument("not an address: " + std::string(text));
}

}  // namespace cachewire::test
