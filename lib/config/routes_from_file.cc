// SPDX-License-Identifier: BSD-3-Clause
// `file` in a list of routes: what its addresses and port numbers lead to, checked once for each, and its routes
// sorted.
#include <algorithm>
#include <charconv>
#include <unordered_map>

#include <fmt/format.h>

#include "config/gateways.h"
#include "config/route_file.h"
#include "config/text_file.h"

namespace cachewire::config {
namespace {

constexpr std::size_t kMaxRouteFileBytes = std::size_t{256} << 20;
constexpr std::size_t kMaxFileVias = 32766;  // next hops that a FIB can number

constexpr Choice<RouteFormat> kFormats[] = {{"l3fwd", RouteFormat::l3fwd}, {"prefixes", RouteFormat::prefixes}};

// What stands for a next hop in a line -> the next hop, or why it is none.
struct Target {
    std::uint16_t via = 0;
    net::Family family{};
    std::string problem;
};

class FileReader {
  public:
    FileReader(Loading& loading, std::size_t tenant, RouteFormat format, RouteFile& out)
        : loading_(loading), tenant_(tenant), format_(format), out_(out), reporter_(out.path) {}

    // Gateways by port number, for l3fwd's format.
    void set_gateways(std::vector<net::ParsedAddress> gateways) { gateways_ = std::move(gateways); }

    void read(std::string_view text) {
        auto routes = std::make_shared<std::vector<FileRoute>>();
        for_each_route_line(text, format_, [&](const RouteLine& line) {
            add(line, *routes);
            return !reporter_.is_full();
        });
        std::stable_sort(routes->begin(), routes->end(),
                         [](const FileRoute& a, const FileRoute& b) { return a.prefix < b.prefix; });
        for (std::size_t i = 1; i < routes->size(); ++i) {
            if ((*routes)[i].prefix != (*routes)[i - 1].prefix) continue;
            reporter_.error((*routes)[i].line, 1, "",
                            fmt::format("a second route to {}; the first stands in line {}",
                                        net::to_string((*routes)[i].prefix), (*routes)[i - 1].line));
        }
        out_.routes = std::move(routes);
    }

    Reporter& reporter() { return reporter_; }

  private:
    void add(const RouteLine& line, std::vector<FileRoute>& routes) {
        if (!line.error.empty()) return reporter_.error(line.line, line.column, "", line.error);
        if (line.drop) {
            routes.push_back({line.prefix, kFileDrop, line.line});
            return;
        }
        std::string name(line.target);
        if (format_ == RouteFormat::l3fwd) name += line.prefix.family == net::Family::ip4 ? " 4" : " 6";
        auto [at, fresh] = targets_.try_emplace(std::move(name));
        Target& target = at->second;
        if (fresh) {
            target = format_ == RouteFormat::l3fwd ? port_target(line.target, line.prefix.family)
                                                   : address_target(line.target);
            // Once for each: a file has a million lines and few next hops.
            if (!target.problem.empty()) reporter_.error(line.line, line.column, "", target.problem);
        }
        if (!target.problem.empty()) return;
        if (target.family != line.prefix.family)
            return reporter_.error(
                line.line, line.column, "",
                fmt::format("{} and {} are of different families", net::to_string(line.prefix), quote(line.target)));
        routes.push_back({line.prefix, target.via, line.line});
    }

    Target via_target(const RouteVia& via, net::Family family) {
        if (out_.vias.size() == kMaxFileVias)
            return {0, family,
                    fmt::format("the {}th next hop; allowed: at most {} in a file", kMaxFileVias + 1, kMaxFileVias)};
        out_.vias.push_back(via);
        return {static_cast<std::uint16_t>(out_.vias.size() - 1), family, ""};
    }

    Target address_target(std::string_view text) {
        const auto address = net::parse_address(text);
        if (!address)
            return {0, {}, fmt::format("{} is not an address; allowed: an IPv4 or IPv6 address", quote(text))};
        std::string problem = gateway_problem(loading_, tenant_, *address, {});
        if (!problem.empty()) return {0, address->family, std::move(problem)};
        RouteVia via;
        via.address = address->address;
        return via_target(via, address->family);
    }

    Target port_target(std::string_view text, net::Family family) {
        std::size_t port = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
        if (error != std::errc{} || end != text.data() + text.size())
            return {0, family, fmt::format("{} is not a port number; allowed: a number from 0", quote(text))};
        if (!gateways_.empty()) return listed_gateway(port);
        return only_neighbor(port, family);
    }

    Target listed_gateway(std::size_t port) {
        if (port >= gateways_.size())
            return {0, {}, fmt::format("port {}, and `via` has gateways for {} ports", port, gateways_.size())};
        RouteVia via;
        via.address = gateways_[port].address;
        return via_target(via, gateways_[port].family);
    }

    // Without `via` the station behind a port has to be told by the configuration: the one neighbour that is there.
    Target only_neighbor(std::size_t port, net::Family family) {
        const auto& ports = loading_.config.ports;
        if (port >= ports.size())
            return {0, family, fmt::format("port {}, and the configuration has {}", port, ports.size())};
        std::optional<RouteVia> found;
        std::size_t count = 0;
        for (const Neighbor& neighbor : loading_.config.neighbors) {
            if (neighbor.tenant != tenant_ || neighbor.address.is_v4() != (family == net::Family::ip4)) continue;
            const auto interface = interface_of(neighbor);
            if (!interface || loading_.config.interfaces[*interface].port != port) continue;
            RouteVia via;
            via.address = neighbor.address;
            if (is_link_local(neighbor.address)) via.interface = interface;
            found = via;
            ++count;
        }
        if (count == 1) return via_target(*found, family);
        return {0, family,
                fmt::format("port {} is '{}', behind which tenant '{}' has {} neighbours of this family; allowed: "
                            "one, or `via` with a gateway for each port number",
                            port, ports[port].name, loading_.config.tenants[tenant_].name, count)};
    }

    std::optional<std::size_t> interface_of(const Neighbor& neighbor) const {
        if (neighbor.interface) return neighbor.interface;
        for (std::size_t i = 0; i < loading_.config.interfaces.size(); ++i) {
            const Interface& interface = loading_.config.interfaces[i];
            if (interface.tenant != neighbor.tenant) continue;
            for (const auto& own : interface.addresses)
                if (own.prefix.contains(neighbor.address)) return i;
        }
        return std::nullopt;
    }

    Loading& loading_;
    std::size_t tenant_;
    RouteFormat format_;
    RouteFile& out_;
    Reporter reporter_;
    std::vector<net::ParsedAddress> gateways_;
    std::unordered_map<std::string, Target> targets_;
};

// `via` beside l3fwd's format: a list of addresses, the n-th for port n.
std::optional<std::vector<net::ParsedAddress>> read_gateways(Loading& loading, const std::optional<Value>& value,
                                                             std::size_t tenant) {
    std::vector<net::ParsedAddress> gateways;
    const std::size_t errors_before = loading.reporter.errors();
    for (const Value& item : read_list(loading.reporter, value)) {
        const auto address = read_address(loading.reporter, item);
        if (!address) continue;
        const std::string problem = gateway_problem(loading, tenant, *address, {});
        if (!problem.empty()) loading.reporter.error(item, problem);
        gateways.push_back(*address);
    }
    if (loading.reporter.errors() != errors_before) return std::nullopt;
    return gateways;
}

}  // namespace

void read_route_file(Loading& loading, const MapReader& map, std::size_t tenant) {
    Reporter& reporter = loading.reporter;
    const auto value = map.get("file");
    const auto name = read_scalar(reporter, value, "the path of a file with routes");
    RouteFormat format{};
    const bool has_format = read_choice(reporter, map.require("format"), format, kFormats);
    const auto via = map.get("via");
    if (via && has_format && format != RouteFormat::l3fwd)
        reporter.error(*via, "the file says where each route leads; allowed: beside `format: l3fwd`");
    const auto gateways = read_gateways(loading, via, tenant);
    if (!has_format || !name || !gateways) return;
    std::string why;
    RouteFile file{tenant, beside(reporter.path(value->node->file), *name), {}, {}};
    const auto text = read_text_file(file.path, kMaxRouteFileBytes, why);
    if (!text) return reporter.error(*value, fmt::format("{}: {}", file.path, why));
    loading.sources.add_data(file.path, *text);
    FileReader reader(loading, tenant, format, file);
    reader.set_gateways(*gateways);
    reader.read(*text);
    reporter.absorb(std::move(reader.reporter()));
    loading.config.route_files.push_back(std::move(file));
}

}  // namespace cachewire::config
