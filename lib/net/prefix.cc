// SPDX-License-Identifier: BSD-3-Clause
#include "net/prefix.h"

#include <algorithm>
#include <array>

#include <arpa/inet.h>

namespace cachewire::net {

namespace {

// Leading bits of the 128-bit form that the prefix fixes: an IPv4 address stands behind 96 of them.
unsigned fixed_bits(const Prefix& prefix) noexcept {
    return prefix.family == Family::ip4 ? 96u + prefix.length : prefix.length;
}

Address clear_after(Address address, unsigned bits) noexcept {
    for (unsigned i = 0; i < address.bytes.size(); ++i) {
        const unsigned keep = bits > 8 * i ? std::min(bits - 8 * i, 8u) : 0;
        address.bytes[i] &= static_cast<std::uint8_t>(0xff00u >> keep);
    }
    return address;
}

std::string ip6_text(const Address& address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    inet_ntop(AF_INET6, address.bytes.data(), text.data(), text.size());
    return text.data();
}

std::string ip4_text(const Address& address) {
    std::array<char, INET_ADDRSTRLEN> text{};
    inet_ntop(AF_INET, address.bytes.data() + 12, text.data(), text.size());
    return text.data();
}

std::optional<std::uint8_t> parse_length(std::string_view text, unsigned max) noexcept {
    if (text.empty() || text.size() > 3) return std::nullopt;
    if (text.size() > 1 && text[0] == '0') return std::nullopt;
    unsigned value = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') return std::nullopt;
        value = value * 10 + static_cast<unsigned>(c - '0');
    }
    if (value > max) return std::nullopt;
    return static_cast<std::uint8_t>(value);
}

}  // namespace

bool Prefix::contains(const Address& a) const noexcept {
    if (a.is_v4() != (family == Family::ip4)) return false;
    return clear_after(a, fixed_bits(*this)) == address;
}

std::optional<ParsedAddress> parse_address(std::string_view text) {
    // inet_pton reads up to a NUL: a copy that ends in one, and none inside.
    if (text.size() >= INET6_ADDRSTRLEN || text.find('\0') != std::string_view::npos) return std::nullopt;
    const std::string terminated(text);
    in_addr ip4;
    if (inet_pton(AF_INET, terminated.c_str(), &ip4) == 1) {
        return ParsedAddress{Address::from_v4(ntohl(ip4.s_addr)), Family::ip4};
    }
    Address address;
    if (inet_pton(AF_INET6, terminated.c_str(), address.bytes.data()) == 1 && !address.is_v4()) {
        return ParsedAddress{address, Family::ip6};
    }
    return std::nullopt;
}

std::optional<ParsedPrefix> parse_prefix(std::string_view text) {
    const std::size_t slash = text.find('/');
    if (slash == std::string_view::npos) return std::nullopt;
    const auto parsed = parse_address(text.substr(0, slash));
    if (!parsed) return std::nullopt;
    const auto length = parse_length(text.substr(slash + 1), parsed->family == Family::ip4 ? 32 : 128);
    if (!length) return std::nullopt;
    Prefix prefix{parsed->address, *length, parsed->family};
    prefix.address = clear_after(prefix.address, fixed_bits(prefix));
    return ParsedPrefix{prefix, parsed->address, prefix.address != parsed->address};
}

std::string to_string(const Address& address) { return address.is_v4() ? ip4_text(address) : ip6_text(address); }

std::string to_string(const Prefix& prefix) {
    const std::string text = prefix.family == Family::ip4 ? ip4_text(prefix.address) : ip6_text(prefix.address);
    return text + '/' + std::to_string(prefix.length);
}

}  // namespace cachewire::net
