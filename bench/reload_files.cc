// SPDX-License-Identifier: BSD-3-Clause
#include "reload_files.h"

#include <array>
#include <fstream>
#include <iterator>
#include <set>

#include <unistd.h>

namespace cachewire::bench {

namespace {
constexpr unsigned kGateways = 64;
}

std::vector<Route> draw_routes(std::mt19937_64& random) {
    constexpr std::array<unsigned, 20> kLengths = {24, 24, 24, 24, 24, 24, 24, 24, 24, 24,
                                                   24, 24, 23, 23, 22, 22, 21, 20, 19, 17};
    std::set<std::uint64_t> seen;
    std::vector<Route> routes;
    while (routes.size() < kRoutes) {
        const unsigned length = kLengths[random() % kLengths.size()];
        const auto address = static_cast<std::uint32_t>(0x10000000 + random() % 0x60000000) & ~0u << (32 - length);
        if (seen.insert(std::uint64_t{address} << 8 | length).second) routes.push_back({address, length});
    }
    return routes;
}

Files::Files(const std::vector<Route>& routes)
    : folder_(std::filesystem::temp_directory_path() / fmt::format("cachewire-bench-{}", getpid())) {
    std::filesystem::create_directory(folder_);
    for (const unsigned version : {0u, 1u}) {
        write_routes(routes, version);
        write_rules("red", kRules + version);
        write_rules("blue", kRules + version);
    }
}

Files::~Files() { std::filesystem::remove_all(folder_); }

std::string Files::choose(Version version) {
    fmt::memory_buffer text;
    fmt::format_to(std::back_inserter(text), R"(version: 1
ports: [{{name: west, device: net_ring_west}}, {{name: east, device: net_ring_east}}]
tenants:
  - {{name: red, id: 10, match: [{{port: west}}, {{port: east}}], acl: red, sessions: track}}
  - {{name: blue, id: 20, match: [{{port: west, vlan: 20}}], acl: blue, sessions: track}}
interfaces:
  - {{name: lan, port: west, tenant: red, addresses: ["10.0.0.1/8"]}}
  - {{name: wan, port: east, tenant: red, addresses: ["192.0.2.1/24"]}}
sessions: {{capacity: 262144, timeouts: {{established_udp: 6h, new: 6h}}}}
routes: [{{tenant: red, file: routes-{0}.txt, format: prefixes}}]
acl:
  - {{name: red, stateful: true, file: red-{1}.rules, format: l3fwd-acl}}
  - {{name: blue, stateful: true, file: blue-{2}.rules, format: l3fwd-acl}}
neighbors:
)",
                   version.red ? 1 : 0, kRules + (version.red ? 1 : 0), kRules + (version.blue ? 1 : 0));
    for (unsigned i = 0; i < kGateways; ++i)
        fmt::format_to(std::back_inserter(text),
                       "  - {{tenant: red, address: 192.0.2.{}, mac: \"02:00:00:00:02:{:02x}\"}}\n", 2 + i, i);
    write("main.yaml", text);
    return folder_ / "main.yaml";
}

void Files::write(const std::string& name, const fmt::memory_buffer& text) {
    std::ofstream(folder_ / name).write(text.data(), static_cast<std::streamsize>(text.size()));
}

void Files::write_routes(const std::vector<Route>& routes, unsigned version) {
    fmt::memory_buffer text;
    for (std::size_t i = 0; i < routes.size(); ++i)
        fmt::format_to(std::back_inserter(text), "{}.{}.{}.{}/{} via 192.0.2.{}\n", routes[i].address >> 24,
                       routes[i].address >> 16 & 255, routes[i].address >> 8 & 255, routes[i].address & 255,
                       routes[i].length, 2 + (i + version) % kGateways);
    write(fmt::format("routes-{}.txt", version), text);
}

// Random denials that match none of the packets, and the permission, as policy mostly is.
void Files::write_rules(const std::string& name, unsigned count) {
    fmt::memory_buffer text;
    std::minstd_rand random(kSeed);
    for (unsigned i = 0; i + 1 < count; ++i) {
        const unsigned a = random() % 256, b = random() % 256, c = random() % 256, low = 1000 + random() % 60000;
        fmt::format_to(std::back_inserter(text), "@10.{}.{}.0/24 {}.{}.{}.0/24 0 : 65535 {} : {} {}/0xff\n", a, b,
                       16 + a % 96, b, c, low, low + random() % 1000, i % 2 == 0 ? 6 : 17);
    }
    fmt::format_to(std::back_inserter(text), "R10.0.0.0/8 0.0.0.0/0 0 : 65535 0 : 65535 17/0xff 1\n");
    write(fmt::format("{}-{}.rules", name, count), text);
}

}  // namespace cachewire::bench
