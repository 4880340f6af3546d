// SPDX-License-Identifier: BSD-3-Clause
// Rule files of dpdk-l3fwd's LPM and FIB modes: a whole configuration, since a port number alone says neither device
// nor gateway. l3fwd sends what leaves by port N to the station 02:00:00:00:00:N, so that is the neighbor behind it, on
// a link network of our own choice (RFC 6598 and RFC 3849 addresses).
#include <charconv>
#include <map>
#include <set>

#include <fmt/format.h>

#include "app/import.h"
#include "config/route_file.h"
#include "config/text_file.h"

namespace cachewire::app {

namespace {

constexpr std::size_t kMaxBytes = std::size_t{256} << 20;
constexpr unsigned kMaxPorts = 64;

struct Collected {
    std::map<net::Prefix, std::pair<unsigned, std::string>> routes;  // -> port, and where it stands
    std::set<unsigned> ports;
    std::vector<std::string> notes;
};

void read_into(const std::string& file, Collected& out) {
    std::string why;
    const auto text = config::read_text_file(file, kMaxBytes, why);
    if (!text) {
        out.notes.push_back(fmt::format("{}: error: {}", file, why));
        return;
    }
    config::for_each_route_line(*text, config::RouteFormat::l3fwd, [&](const config::RouteLine& line) {
        const auto note = [&](const std::string& what) {
            out.notes.push_back(fmt::format("{}:{}:{}: left out: {}", file, line.line, line.column, what));
            return true;
        };
        if (!line.error.empty()) return note(line.error);
        unsigned port = 0;
        const auto [end, error] = std::from_chars(line.target.data(), line.target.data() + line.target.size(), port);
        if (error != std::errc{} || end != line.target.data() + line.target.size() || port >= kMaxPorts)
            return note(fmt::format("'{}' is not a port number; allowed: 0 to {}", line.target, kMaxPorts - 1));
        const std::string place = fmt::format("{}:{}", file, line.line);
        const auto [at, fresh] = out.routes.try_emplace(line.prefix, port, place);
        if (!fresh)
            return note(fmt::format("a second route to {}; the first stands in {}", net::to_string(line.prefix),
                                    at->second.second));
        out.ports.insert(port);
        return true;
    });
}

std::string gateway(unsigned port, net::Family family) {
    return family == net::Family::ip4 ? fmt::format("100.64.{}.2", port) : fmt::format("2001:db8:0:{:x}::2", port);
}

}  // namespace

Imported import_l3fwd(const std::vector<std::string>& files) {
    Collected all;
    for (const std::string& file : files) read_into(file, all);
    Imported result;
    result.complete = all.notes.empty();
    result.notes = std::move(all.notes);
    std::string& yaml = result.yaml;
    yaml =
        "# l3fwd's ports stand on its command line: put the devices here, and addresses that fit your links.\nversion: "
        "1\n";
    if (all.ports.empty()) return result;
    const unsigned last = *all.ports.rbegin();
    std::string interfaces = "interfaces:\n", neighbors = "neighbors:\n";
    yaml += "ports:\n";
    for (unsigned port = 0; port <= last; ++port) {
        yaml += fmt::format("  - {{name: port{0}, device: \"net_null{0},no-rx=1\"}}\n", port);
        interfaces +=
            fmt::format("  - {{port: port{0}, addresses: [\"100.64.{0}.1/30\", \"2001:db8:0:{0:x}::1/64\"]}}\n", port);
        for (const auto family : {net::Family::ip4, net::Family::ip6})
            neighbors +=
                fmt::format("  - {{address: \"{}\", mac: \"02:00:00:00:00:{:02x}\"}}\n", gateway(port, family), port);
    }
    yaml += interfaces + neighbors + "routes:\n";
    for (const auto& [prefix, target] : all.routes)
        yaml += fmt::format("  - {{prefix: \"{}\", via: \"{}\"}}\n", net::to_string(prefix),
                            gateway(target.first, prefix.family));
    return result;
}

}  // namespace cachewire::app
