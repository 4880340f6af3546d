// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <fmt/format.h>

#include "config/sections.h"

namespace cachewire::config {

void Names::add(Reporter& reporter, const Value& where, const std::string& name, std::size_t index) {
    const auto [entry, fresh] = entries_.try_emplace(name, Entry{index, origin(*where.node), where.node->column});
    if (!fresh) {
        reporter.error(where, fmt::format("a second {} named '{}'; the first stands in {}", kind_, name,
                                          reporter.say(entry->second.origin, where)));
    }
}

std::optional<std::size_t> Names::find(const std::string& name) const {
    const auto entry = entries_.find(name);
    if (entry == entries_.end()) return std::nullopt;
    return entry->second.index;
}

std::vector<std::string_view> Names::all() const {
    std::vector<std::string_view> names;
    for (const auto& entry : entries_) names.push_back(entry.first);
    std::sort(names.begin(), names.end());
    return names;
}

void Names::warn_of_unused(Reporter& reporter) const {
    for (const auto& [name, entry] : entries_)
        if (!entry.used)
            reporter.warning(entry.origin.line, entry.column, "",
                             fmt::format("nothing refers to the {} '{}', so it does nothing", kind_, name),
                             entry.origin.file);
}

std::optional<std::size_t> Names::resolve(Reporter& reporter, const std::optional<Value>& value) {
    const auto name = read_scalar(
        reporter, value, fmt::format("the name of a{} {}", kind_ == "acl" || kind_ == "interface" ? "n" : "", kind_));
    if (!name) return std::nullopt;
    if (const auto entry = entries_.find(std::string(*name)); entry != entries_.end()) {
        entry->second.used = true;
        return entry->second.index;
    }
    const auto names = all();
    const std::string_view near = nearest(*name, names);
    std::string hint =
        near.empty() ? "; known: " + (names.empty() ? "none" : join(names)) : fmt::format("; did you mean '{}'?", near);
    reporter.error(*value, fmt::format("no {} is named {}{}", kind_, quote(*name), hint));
    return std::nullopt;
}

std::optional<std::size_t> Networks::add(const net::Prefix& prefix, std::size_t interface) {
    const auto [entry, fresh] = prefixes_.try_emplace(prefix, interface);
    lengths_.emplace(prefix.family, prefix.length);
    if (fresh) return std::nullopt;
    return entry->second;
}

namespace {

// The network of this length that would hold the address: its host bits cleared.
net::Prefix network_of(const net::ParsedAddress& address, std::uint8_t length) {
    net::Prefix prefix{address.address, length, address.family};
    const unsigned kept = (address.family == net::Family::ip4 ? 96u : 0u) + length;
    for (unsigned bit = kept; bit < 128; ++bit) {
        prefix.address.bytes[bit / 8] &= static_cast<std::uint8_t>(~(0x80u >> (bit % 8)));
    }
    return prefix;
}

}  // namespace

bool Networks::contains(const net::ParsedAddress& address) const {
    return std::any_of(lengths_.begin(), lengths_.end(), [&](const auto& entry) {
        return entry.first == address.family && prefixes_.contains(network_of(address, entry.second));
    });
}

bool Networks::is_broadcast(const net::ParsedAddress& address) const {
    if (address.family != net::Family::ip4) return false;
    return std::any_of(lengths_.begin(), lengths_.end(), [&](const auto& entry) {
        const auto [family, length] = entry;
        if (family != net::Family::ip4 || length > 30) return false;  // RFC 3021: a /31 has two hosts
        const std::uint32_t hosts = ~std::uint32_t{0} >> length;
        const std::uint32_t host = address.address.v4() & hosts;
        return (host == 0 || host == hosts) && prefixes_.contains(network_of(address, length));
    });
}

std::optional<std::size_t> read_tenant_reference(Loading& loading, const MapReader& object) {
    const auto value = object.get("tenant");
    if (value) return loading.tenants.resolve(loading.reporter, value);
    if (!loading.has_tenants) return 0;
    return loading.tenants.resolve(loading.reporter, object.require("tenant"));
}

}  // namespace cachewire::config
