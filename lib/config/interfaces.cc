// SPDX-License-Identifier: BSD-3-Clause
// Interfaces, wherever they stand, and whose they are: the tenant whose most specific match covers port and tags.
#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "config/gateways.h"
#include "config/sections.h"

namespace cachewire::config {
namespace {

constexpr Key kInterface[] = {{"name"},      {"port"},      {"vlan"},   {"inner_vlan"}, {"tenant"}, {"mtu"},
                              {"addresses"}, {"mss_clamp"}, {"kernel"}, {"loopback"},   {"policer"}};

// What a link is needed for.
constexpr const char* kLinkKeys[] = {"port", "vlan", "inner_vlan", "mtu", "mss_clamp", "policer"};

struct Entry {
    MapReader map;
    Value value;
    std::optional<std::size_t> inside;  // the tenant that it stands in
    std::size_t index = 0;              // in Config::interfaces
};

using Attachments = std::map<std::tuple<std::size_t, std::uint16_t, std::uint16_t>, std::string>;

std::string attachment(const Config& config, const Interface& interface) {
    if (interface.is_loopback()) return interface.name;
    std::string text = config.ports[interface.port].name;
    if (interface.vlan != 0) text += fmt::format(".{}", interface.vlan);
    if (interface.inner_vlan != 0) text += fmt::format(".{}", interface.inner_vlan);
    return text;
}

// The tenant of the most specific match that covers the interface.
std::optional<std::size_t> owner(const Loading& loading, const Interface& interface) {
    const std::size_t port = interface.port;
    for (const MatchKey& key : {MatchKey{port, interface.vlan, interface.inner_vlan},
                                MatchKey{port, interface.vlan, {}}, MatchKey{port, {}, {}}}) {
        if (const auto found = loading.matches.find(key); found != loading.matches.end()) return found->second;
    }
    return std::nullopt;
}

// Why an address can't be an interface's; empty when it can.
std::string_view address_problem(const net::ParsedPrefix& parsed) {
    const auto& bytes = parsed.address.bytes;
    if (parsed.prefix.family == net::Family::ip4) {
        const std::uint32_t address = parsed.address.v4();
        const std::uint32_t host_mask = parsed.prefix.length == 0 ? ~0u : (1ull << (32 - parsed.prefix.length)) - 1;
        if (address >> 24 == 0) return "is in 0.0.0.0/8";
        if (address >> 24 == 127) return "is a loopback address";
        if (address >> 28 >= 14) return "is a multicast or reserved address";
        // RFC 3021: a /31 has two hosts and no broadcast address.
        if (parsed.prefix.length < 31 && (address & host_mask) == 0) return "is the network's own address";
        if (parsed.prefix.length < 31 && (address & host_mask) == host_mask)
            return "is the network's broadcast address";
        return "";
    }
    if (bytes[0] == 0xff) return "is a multicast address";
    if (parsed.address == net::Address{}) return "is the unspecified address";
    if (parsed.address == net::Address{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}})
        return "is the loopback address";
    if (bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80) return "is a link-local address, which is not supported yet";
    // RFC 4291 2.6.1: all host bits zero is the subnet-router anycast address.
    if (parsed.prefix.length < 127 && !parsed.host_bits_set) return "is the network's anycast address";
    return "";
}

bool is_loopback(Reporter& reporter, const MapReader& map) {
    bool loopback = false;
    read_bool(reporter, map.get("loopback"), loopback);
    return loopback;
}

Interface read_loopback(Loading& loading, const MapReader& map) {
    Reporter& reporter = loading.reporter;
    Interface interface {};
    interface.port = kNoPort;
    for (const char* key : kLinkKeys)
        if (const auto value = map.get(key))
            reporter.error(*value, "a loopback is on no link; allowed beside it: name, tenant, addresses, kernel");
    std::ignore = map.require("name");  // no port to be called by
    std::ignore = map.require("addresses");
    if (const auto kernel = map.get("kernel")) interface.kernel = read_kernel_twin(reporter, *kernel);
    return interface;
}

// All but name, tenant and addresses. `attached`: its port is known, or it needs none.
Interface read_interface(Loading& loading, const MapReader& map, bool& attached) {
    Reporter& reporter = loading.reporter;
    attached = is_loopback(reporter, map);
    if (attached) return read_loopback(loading, map);
    Interface interface {};
    const auto port = loading.ports.resolve(reporter, map.require("port"));
    attached = port.has_value();
    interface.port = port.value_or(0);
    read_number(reporter, map.get("vlan"), interface.vlan, 1, 4094);
    const auto inner = map.get("inner_vlan");
    read_number(reporter, inner, interface.inner_vlan, 1, 4094);
    if (inner && !map.get("vlan")) reporter.error(*inner, "an inner tag without an outer one; allowed: beside `vlan`");
    const auto mtu = map.get("mtu");
    interface.mtu = attached ? loading.config.ports[interface.port].mtu : std::uint16_t{1500};
    const std::uint16_t port_mtu = interface.mtu;
    read_number(reporter, mtu, interface.mtu, 68, 65535);
    if (attached && interface.mtu > port_mtu) {
        reporter.error(
            *mtu, fmt::format("{} is more than its port's {}; allowed: 68 to {}", interface.mtu, port_mtu, port_mtu));
    }
    if (const auto clamp = map.get("mss_clamp"); is_auto(clamp)) {
        interface.mss_clamp = kMssClampAuto;
    } else {
        // RFC 9293 3.7.1: 536 is what every host takes over IPv4.
        read_number(reporter, clamp, interface.mss_clamp, 536, 65495);
    }
    if (const auto kernel = map.get("kernel")) interface.kernel = read_kernel_twin(reporter, *kernel);
    read_policers_of(loading, map.get("policer"), interface.policer_in, interface.policer_out,
                     "a session's packets come and leave by several interfaces");
    return interface;
}

void read_addresses(Loading& loading, Entry& entry) {
    Reporter& reporter = loading.reporter;
    Interface& interface = loading.config.interfaces[entry.index];
    for (const Value& item : read_list(reporter, entry.map.get("addresses"))) {
        const auto parsed = read_interface_address(reporter, item);
        if (!parsed) continue;
        const std::string text = quote(item.node->text);
        if (const auto problem = address_problem(*parsed); !problem.empty()) {
            reporter.error(item, fmt::format("{} {}; allowed: a host's address", text, problem));
            continue;
        }
        // The rest of a network would be nowhere.
        if (interface.is_loopback() && parsed->prefix.length != (parsed->address.is_v4() ? 32 : 128)) {
            reporter.error(item, fmt::format("{} is a network's, and a loopback is on no link; allowed: /{}", text,
                                             parsed->address.is_v4() ? 32 : 128));
            continue;
        }
        const auto [own, fresh] = loading.own[interface.tenant].try_emplace(parsed->address, origin(*item.node));
        if (!fresh) {
            reporter.error(item, fmt::format("{} is in use already, in {}", net::to_string(parsed->address),
                                             reporter.say(own->second, item)));
            continue;
        }
        const auto other = loading.networks[interface.tenant].add(parsed->prefix, entry.index);
        if (other && *other != entry.index) {
            reporter.error(item, fmt::format("network {} is on interface '{}' already", net::to_string(parsed->prefix),
                                             loading.config.interfaces[*other].name));
        }
        interface.addresses.push_back({parsed->address, parsed->prefix});
    }
}

// What stands in a tenant is matched to it; where another tenant has the very same match, find_tenant() says so.
void imply_match(Loading& loading, const Interface& interface, std::size_t tenant) {
    Match match{interface.port, interface.vlan, {}};
    if (interface.inner_vlan != 0) match.inner_vlan = interface.inner_vlan;
    const bool fresh = loading.matches.try_emplace({match.port, match.vlan, match.inner_vlan}, tenant).second;
    if (fresh) loading.config.tenants[tenant].match.push_back(match);
}

// Reads one, enters its name, and gives a tenant that it stands in the match that it implies.
std::optional<Entry> enter(Loading& loading, const Value& value, std::optional<std::size_t> inside,
                           Attachments& attachments) {
    Reporter& reporter = loading.reporter;
    Config& config = loading.config;
    Entry entry{MapReader(reporter, value, kInterface), value, inside, config.interfaces.size()};
    if (!entry.map.valid()) return std::nullopt;
    bool attached = false;
    Interface interface = read_interface(loading, entry.map, attached);
    const auto name = entry.map.get("name");
    interface.name = name ? read_name(reporter, name).value_or("") : attached ? attachment(config, interface) : "";
    if (!interface.name.empty()) loading.interfaces.add(reporter, name.value_or(value), interface.name, entry.index);
    if (attached && !interface.is_loopback()) {
        const auto [other, fresh] =
            attachments.try_emplace({interface.port, interface.vlan, interface.inner_vlan}, interface.name);
        if (!fresh)
            reporter.error(value,
                           fmt::format("{} is interface '{}' already", attachment(config, interface), other->second));
    }
    if (attached && !interface.is_loopback() && inside && owner(loading, interface) != inside)
        imply_match(loading, interface, *inside);
    config.interfaces.push_back(std::move(interface));
    if (!attached) return std::nullopt;
    return entry;
}

// Sets the interface's tenant; false, and reported, when it has none.
bool find_tenant(Loading& loading, const Entry& entry) {
    Reporter& reporter = loading.reporter;
    Interface& interface = loading.config.interfaces[entry.index];
    if (interface.is_loopback()) {
        const auto tenant = read_owner(loading, entry.map, entry.inside);
        interface.tenant = tenant.value_or(0);
        return tenant.has_value();
    }
    const auto found = owner(loading, interface);
    const auto written = entry.map.get("tenant");
    const auto named = loading.tenants.resolve(reporter, written);
    if (written && !named) return false;
    if (!found) {
        reporter.error(entry.value, fmt::format("no tenant's match covers {}", attachment(loading.config, interface)));
        return false;
    }
    const auto wanted = entry.inside ? entry.inside : named;
    if (entry.inside && named && named != entry.inside) {
        reporter.error(*written, fmt::format("stands in tenant '{}'; allowed: that name, or none",
                                             loading.config.tenants[*entry.inside].name));
        return false;
    }
    if (wanted && wanted != found) {
        reporter.error(written.value_or(entry.value),
                       fmt::format("{} belongs to tenant '{}' by its match", attachment(loading.config, interface),
                                   loading.config.tenants[*found].name));
        return false;
    }
    interface.tenant = *found;
    return true;
}

}  // namespace

void read_interfaces(Loading& loading, const MapReader& top) {
    const std::size_t errors_before = loading.reporter.errors();
    std::vector<Entry> entries;
    Attachments attachments;
    const auto add = [&](const Value& value, std::optional<std::size_t> inside) {
        if (auto entry = enter(loading, value, inside, attachments)) entries.push_back(*entry);
    };
    for (const Nested& nested : loading.nested) {
        for (const Value& value : nested.interfaces) add(value, nested.tenant);
    }
    for (const Value& value : read_list(loading.reporter, top.get("interfaces"))) add(value, std::nullopt);
    // Only now every match is known.
    for (Entry& entry : entries) {
        if (find_tenant(loading, entry)) read_addresses(loading, entry);
    }
    loading.interfaces_are_right = loading.reporter.errors() == errors_before;
}

void resolve_rule_ports(Loading& loading) {
    for (const Value& value : loading.rule_ports) {
        const std::string name(value.node->text);
        if (const auto index = loading.interfaces.find(name);
            index && loading.config.interfaces[*index].is_loopback()) {
            loading.reporter.error(value, fmt::format("'{}' is a loopback: no packet comes in or leaves there", name));
            continue;
        }
        if (loading.interfaces.find(name) || loading.ports.find(name)) continue;
        auto names = loading.interfaces.all();
        const auto ports = loading.ports.all();
        names.insert(names.end(), ports.begin(), ports.end());
        std::sort(names.begin(), names.end());
        names.erase(std::unique(names.begin(), names.end()), names.end());
        const std::string_view near = nearest(name, names);
        loading.reporter.error(
            value, fmt::format("no interface or port is named {}{}", quote(name),
                               near.empty() ? "; known: " + join(names) : fmt::format("; did you mean '{}'?", near)));
    }
}

}  // namespace cachewire::config
