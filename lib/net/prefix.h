#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Addresses and prefixes as text and as bytes. Family is kept, never guessed from the value (::/0 is IPv6).
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/flow_key.h"

namespace cachewire::net {

enum class Family : std::uint8_t { ip4, ip6 };

// A network: `length` counts bits of the family (0-32 or 0-128), host bits of `address` are zero.
struct Prefix {
    Address address;
    std::uint8_t length = 0;
    Family family = Family::ip4;

    [[nodiscard]] bool contains(const Address& a) const noexcept;
    friend bool operator==(const Prefix&, const Prefix&) = default;
    friend auto operator<=>(const Prefix&, const Prefix&) = default;
};

// nullopt for anything that is not exactly one address ("10.1" and "010.0.0.1" are none). ::ffff:1.2.3.4 is refused:
// that form is reserved for IPv4 inside cachewire.
struct ParsedAddress {
    Address address;
    Family family;
};
std::optional<ParsedAddress> parse_address(std::string_view text);

// "10.0.0.0/8", "2001:db8::/32". `host_bits_set` tells the caller that the text had host bits, which are cleared.
struct ParsedPrefix {
    Prefix prefix;
    Address address;  // as written, with its host bits
    bool host_bits_set;
};
std::optional<ParsedPrefix> parse_prefix(std::string_view text);

std::string to_string(const Address& address);
std::string to_string(const Prefix& prefix);

}  // namespace cachewire::net
