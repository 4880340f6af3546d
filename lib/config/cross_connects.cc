// SPDX-License-Identifier: BSD-3-Clause
// Transparent pairs. What is on their ports routes nothing, so a tenant of theirs has no interfaces: the same packets
// may cross a pair and then come to the router, one tuple of one tenant, and the session remembers one next hop and one
// interface that replies come from. Two tenants have a session each.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "config/sections.h"

namespace cachewire::config {
namespace {

constexpr Key kPair[] = {{"name"}, {"ports"}, {"non_ip"}, {"link_follow"}};
constexpr Choice<bool> kNonIp[] = {{"forward", true}, {"drop", false}};

using Vlans = std::pair<std::optional<std::uint16_t>, std::optional<std::uint16_t>>;

// Who owns what on a port.
std::map<Vlans, std::size_t> owners_on(const Loading& loading, std::size_t port) {
    std::map<Vlans, std::size_t> owners;
    for (const auto& [key, tenant] : loading.matches)
        if (std::get<0>(key) == port) owners[{std::get<1>(key), std::get<2>(key)}] = tenant;
    return owners;
}

void check_ports(Loading& loading, const Value& where, const CrossConnect& pair) {
    Reporter& reporter = loading.reporter;
    Config& config = loading.config;
    for (const std::size_t port : pair.ports) {
        const std::string& name = config.ports[port].name;
        for (const CrossConnect& other : config.cross_connects)
            if (std::find(other.ports.begin(), other.ports.end(), port) != other.ports.end())
                reporter.error(where, fmt::format("port '{}' is in pair '{}' already", name, other.name));
        for (const Interface& interface : config.interfaces) {
            if (interface.port == port)
                reporter.error(where, fmt::format("port '{}' has interface '{}'; allowed: ports without interfaces",
                                                  name, interface.name));
            else if (interface.name == name)
                reporter.error(where, fmt::format("interface '{}' has this port's name, and rules could mean either; "
                                                  "allowed: another name",
                                                  name));
        }
    }
}

// Devices that Linux or a NIC has. What the others call their link is no cable's.
void check_link(Reporter& reporter, const Value& where, const Config& config, const CrossConnect& pair) {
    const auto has_link = [](std::string_view device) {
        if (!device.starts_with("net_")) return true;
        constexpr std::string_view kLinux[] = {"net_tap", "net_af_packet", "net_af_xdp"};
        return std::any_of(std::begin(kLinux), std::end(kLinux), [&](auto name) { return device.starts_with(name); });
    };
    for (const std::size_t port : pair.ports)
        if (const Port& p = config.ports[port]; !has_link(p.device))
            reporter.error(where,
                           fmt::format("port '{}' ({}) has no link that could be followed or taken down; allowed: "
                                       "\"kernel:\" interfaces, TAPs and NICs by PCI address",
                                       p.name, p.device.substr(0, p.device.find(','))));
}

void check_tenants(Loading& loading, const Value& where, const CrossConnect& pair) {
    Reporter& reporter = loading.reporter;
    const Config& config = loading.config;
    const auto owners = owners_on(loading, pair.ports[0]);
    if (owners != owners_on(loading, pair.ports[1]))
        reporter.error(where,
                       fmt::format("the tenants' `match` differs between ports '{}' and '{}', so replies would be "
                                   "another tenant's; allowed: the same VLANs of the same tenants on both",
                                   config.ports[pair.ports[0]].name, config.ports[pair.ports[1]].name));
    std::vector<bool> seen(config.tenants.size());
    for (const auto& [vlans, tenant] : owners) {
        if (seen[tenant]) continue;
        seen[tenant] = true;
        const std::string& name = config.tenants[tenant].name;
        const auto routed = std::find_if(config.interfaces.begin(), config.interfaces.end(),
                                         [at = tenant](const Interface& interface) { return interface.tenant == at; });
        if (routed != config.interfaces.end())
            reporter.error(
                where,
                fmt::format("tenant '{}' has interface '{}' and these ports, and a session has one way "
                            "out, by a pair or a route; allowed: a tenant that "
                            "routes, or one of pairs{}",
                            name, routed->name, loading.has_tenants ? "" : ", each with its own `match` in `tenants`"));
        if (config.tenants[tenant].rpf != Rpf::none)
            reporter.error(where, fmt::format("tenant '{}' has `rpf`, which needs routes; allowed: none", name));
    }
}

void read_pair(Loading& loading, const Value& item, Names& names) {
    Reporter& reporter = loading.reporter;
    const MapReader map(reporter, item, kPair);
    if (!map.valid()) return;
    CrossConnect pair;
    const auto name = map.require("name");
    pair.name = read_name(reporter, name).value_or("");
    if (!pair.name.empty()) names.add(reporter, *name, pair.name, loading.config.cross_connects.size());
    read_choice(reporter, map.get("non_ip"), pair.forward_non_ip, kNonIp);
    read_bool(reporter, map.get("link_follow"), pair.link_follow);
    const auto ports = map.require("ports");
    const auto items = read_list(reporter, ports);
    if (!ports || ports->node->kind != Node::Kind::sequence) return;
    std::vector<std::size_t> known;
    for (const Value& port : items)
        if (const auto index = loading.ports.resolve(reporter, port)) known.push_back(*index);
    if (items.size() != 2 || (known.size() == 2 && known[0] == known[1])) {
        reporter.error(*ports, "a pair has two ports; allowed: two names, such as [inside, outside]");
        return;
    }
    if (known.size() != 2) return;
    pair.ports = {known[0], known[1]};
    check_ports(loading, *ports, pair);
    if (loading.interfaces_are_right) check_tenants(loading, *ports, pair);
    if (pair.link_follow) check_link(reporter, *map.get("link_follow"), loading.config, pair);
    // Whoever its frames are for.
    for (const std::size_t port : pair.ports) loading.config.ports[port].promiscuous = true;
    loading.config.cross_connects.push_back(std::move(pair));
}

}  // namespace

void read_cross_connects(Loading& loading, const MapReader& top) {
    Names names("pair");
    for (const Value& item : read_list(loading.reporter, top.get("cross_connects"))) read_pair(loading, item, names);
}

}  // namespace cachewire::config
