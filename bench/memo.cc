// SPDX-License-Identifier: BSD-3-Clause
// What does remembering a verdict save? The same packets of 4096 UDP sessions through the shipped pipeline: with the
// memo, with `memoize: false` (list and routes asked for every packet, the session kept), and with `sessions: none` (no
// session at all). The rules are random 5-tuples that match none of the packets but the last, as policy mostly does;
// rule count from 10 to 10 000. Each rule count is a group of three that take turns. The last group is a product's
// size: 10 000 rules, 900 000 routes, and packets that go anywhere there.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "claims.h"
#include "reload_files.h"
#include "rig.h"
#include "support/packet_builder.h"

namespace cachewire::bench {

namespace {

constexpr unsigned kFlows = 4096;

// The routes that the file says, all by the one gateway.
class RoutesFile {
  public:
    explicit RoutesFile(const std::vector<Route>& routes) {
        std::ofstream file(path_);
        for (const Route& route : routes)
            file << fmt::format("{}/{} via 192.0.2.2\n", dotted(route.address), route.length);
        if (!file.flush()) throw std::runtime_error("cannot write " + path_.string());
    }
    ~RoutesFile() { std::filesystem::remove(path_); }
    RoutesFile(const RoutesFile&) = delete;
    RoutesFile& operator=(const RoutesFile&) = delete;

    static std::string dotted(std::uint32_t address) {
        return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255);
    }
    [[nodiscard]] std::string path() const { return path_; }

  private:
    std::filesystem::path path_ =
        std::filesystem::temp_directory_path() / fmt::format("cachewire-bench-{}.routes", getpid());
};

// `routes_file`: "" for the one route that traffic() needs.
std::string configuration(unsigned rules, bool sessions, bool memoize, const std::string& routes_file = "") {
    const std::string routes = routes_file.empty() ? "prefix: 198.18.0.0/16, via: 192.0.2.2"
                                                   : fmt::format("file: \"{}\", format: prefixes", routes_file);
    std::string text = fmt::format(R"(version: 1
pipeline: {{memoize: {}}}
ports:
  - {{name: west, device: "net_ring_west"}}
  - {{name: east, device: "net_ring_east"}}
tenants:
  - {{name: red, id: 10, match: [{{port: west}}, {{port: east}}], acl: edge, sessions: {}}}
interfaces:
  - {{name: lan, port: west, addresses: ["10.0.0.1/16"]}}
  - {{name: wan, port: east, addresses: ["192.0.2.1/24"]}}
neighbors:
  - {{tenant: red, address: 192.0.2.2, mac: "02:00:00:00:00:02"}}
routes:
  - {{tenant: red, {}}}
sessions: {{capacity: 65536}}
acl:
  - name: edge
    stateful: {}
    rules:
)",
                                   memoize, sessions ? "track" : "none", routes, sessions);
    std::minstd_rand random(rules);
    auto out = std::back_inserter(text);
    for (unsigned i = 0; i + 1 < rules; ++i) {
        const unsigned a = random() % 256, b = random() % 256, c = random() % 256, low = 1000 + random() % 60000;
        fmt::format_to(
            out, "      - {{action: deny, proto: {}, src: 10.{}.{}.0/24, dst: 198.{}.{}.0/24, dst_ports: {}-{}}}\n",
            i % 2 == 0 ? "tcp" : "udp", a % 4, b, 18 + a % 2, c, low, low + random() % 1000);
    }
    fmt::format_to(out, "      - {{action: permit, proto: udp, src: 10.0.0.0/16}}\n");
    return text;
}

// To 198.18.0.0/16, or to the routes.
Frames traffic(const std::vector<Route>& routes = {}) {
    Frames frames;
    for (unsigned i = 0; i < kFlows; ++i)
        frames.push_back(test::PacketBuilder()
                             .eth()
                             .ip4(fmt::format("10.0.{}.{}", 1 + i / 250, 1 + i % 250),
                                  routes.empty() ? fmt::format("198.18.{}.{}", i * 7 % 256, 1 + i % 250)
                                                 : RoutesFile::dotted(routes[i].address + 1))
                             .udp(static_cast<std::uint16_t>(1024 + i), 53)
                             .payload(18)
                             .bytes());
    return frames;
}

// Cycles a packet of the stages that a hit skips, from the worker's own counters.
double policy_cycles(const Rig& rig) {
    double cycles = 0;
    for (const auto stage : {pipeline::StageId::acl, pipeline::StageId::route}) {
        const auto& c = rig.worker().stages[static_cast<unsigned>(stage)];
        cycles += static_cast<double>(c.cycles.read()) / static_cast<double>(c.packets.read());
    }
    return cycles;
}

}  // namespace

std::vector<Result> memo(const Options& options) {
    std::vector<Result> all;
    const auto group = [&](const std::string& size, unsigned rules, const Frames& frames, const std::string& file) {
        Rig hit("hit" + std::to_string(all.size()), configuration(rules, true, true, file), frames);
        Rig slow("slow" + std::to_string(all.size()), configuration(rules, true, false, file), frames);
        Rig none("none" + std::to_string(all.size()), configuration(rules, false, true, file), frames);
        auto results = measure({{size + ", memoised", [&] { return hit.pipeline(); }},
                                {size + ", memoize: false", [&] { return slow.pipeline(); }},
                                {size + ", sessions: none", [&] { return none.pipeline(); }}},
                               options.quick ? 300 : options.pairs);
        print_table(fmt::format("memo: whole path, 64 B, {}", size), results);
        const double with = policy_cycles(hit), without = policy_cycles(slow);
        fmt::print("policy part (acl and route stages): {:.1f} with the memo, {:.1f} without: {:.0f} % less\n", with,
                   without, 100 * (1 - with / without));
        all.insert(all.end(), results.begin(), results.end());
    };
    for (const unsigned rules : {10u, 100u, 1000u, 10000u}) group(fmt::format("{} rules", rules), rules, traffic(), "");
    std::mt19937_64 random(kSeed);
    const std::vector<Route> routes = draw_routes(random);
    const RoutesFile file(routes);
    group(fmt::format("{} rules, {} routes", kRules, kRoutes), kRules, traffic(routes), file.path());
    return all;
}

}  // namespace cachewire::bench
