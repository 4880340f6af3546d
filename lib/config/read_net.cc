// SPDX-License-Identifier: BSD-3-Clause
// The read_* functions for addresses: what a text is not, said so that it can be put right.
#include <fmt/format.h>

#include "config/reader.h"

namespace cachewire::config {
namespace {

constexpr std::string_view kAddress = "an IPv4 or IPv6 address";
constexpr std::string_view kPrefix = "ADDRESS/LENGTH such as 10.0.0.0/8 or 2001:db8::/32";
constexpr std::string_view kInterfaceAddress = "ADDRESS/LENGTH such as 192.0.2.1/24 or 2001:db8::1/64";

// ::ffff:192.0.2.1 would be a second spelling of an IPv4 address, and some readers would change the family silently.
bool is_mapped(std::string_view text) {
    const std::string_view address = text.substr(0, text.find('/'));
    return address.starts_with("::ffff:") || address.starts_with("::FFFF:");
}

// Of the address in front of the slash, where that is one.
std::optional<unsigned> longest_length(std::string_view text) {
    const auto slash = text.find('/');
    if (slash == std::string_view::npos) return std::nullopt;
    const auto address = net::parse_address(text.substr(0, slash));
    if (!address) return std::nullopt;
    return address->family == net::Family::ip4 ? 32 : 128;
}

std::optional<net::ParsedPrefix> read_any_prefix(Reporter& reporter, const std::optional<Value>& value,
                                                 std::string_view allowed) {
    const auto text = read_scalar(reporter, value, allowed);
    if (!text) return std::nullopt;
    if (auto parsed = net::parse_prefix(*text)) return parsed;
    if (is_mapped(*text)) {
        reporter.error(*value, fmt::format("{} is an IPv4-mapped IPv6 address; write the IPv4 address", quote(*text)));
    } else if (const auto address = net::parse_address(*text)) {
        reporter.error(*value, fmt::format("{} has no prefix length; allowed: {}/{} for this one address", quote(*text),
                                           *text, address->family == net::Family::ip4 ? 32 : 128));
    } else if (const auto longest = longest_length(*text)) {
        reporter.error(*value, fmt::format("{} has a length that is none; allowed: /0 to /{}", quote(*text), *longest));
    } else {
        reporter.error(*value, fmt::format("{} is not a prefix; allowed: {}", quote(*text), allowed));
    }
    return std::nullopt;
}

}  // namespace

std::optional<net::ParsedAddress> read_address(Reporter& reporter, const std::optional<Value>& value) {
    const auto text = read_scalar(reporter, value, kAddress);
    if (!text) return std::nullopt;
    auto parsed = net::parse_address(*text);
    if (parsed) return parsed;
    if (is_mapped(*text)) {
        reporter.error(*value, fmt::format("{} is an IPv4-mapped IPv6 address; write the IPv4 address", quote(*text)));
    } else if (net::parse_prefix(*text)) {
        reporter.error(*value, fmt::format("{} is a prefix; allowed: an address without a length", quote(*text)));
    } else {
        reporter.error(*value, fmt::format("{} is not an address; allowed: {}", quote(*text), kAddress));
    }
    return std::nullopt;
}

std::optional<net::Prefix> read_prefix(Reporter& reporter, const std::optional<Value>& value) {
    const auto parsed = read_any_prefix(reporter, value, kPrefix);
    if (!parsed) return std::nullopt;
    if (parsed->host_bits_set) {
        reporter.error(*value, fmt::format("{} has host bits set; allowed: the network, {}", quote(value->node->text),
                                           net::to_string(parsed->prefix)));
        return std::nullopt;
    }
    return parsed->prefix;
}

std::optional<net::ParsedPrefix> read_interface_address(Reporter& reporter, const std::optional<Value>& value) {
    return read_any_prefix(reporter, value, kInterfaceAddress);
}

std::optional<net::Mac> read_mac(Reporter& reporter, const std::optional<Value>& value, std::string_view or_else) {
    const std::string allowed = fmt::format("{}a unicast MAC address such as \"02:00:00:00:00:01\"", or_else);
    const auto text = read_scalar(reporter, value, allowed);
    if (!text) return std::nullopt;
    const auto mac = net::parse_mac(*text);
    if (mac && !mac->is_multicast() && !mac->is_zero()) return mac;
    const std::string_view what = !mac ? "not a MAC address" : mac->is_zero() ? "all zeroes" : "a multicast address";
    reporter.error(*value, fmt::format("{} is {}; allowed: {}", quote(*text), what, allowed));
    return std::nullopt;
}

}  // namespace cachewire::config
