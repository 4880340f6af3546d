#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The files that the reload claim reads: long lists and a full table of routes, drawn, in two versions.
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace cachewire::bench {

inline constexpr unsigned kRules = 10'000, kRoutes = 900'000, kSeed = 1;

struct Route {
    std::uint32_t address;
    unsigned length;
};
// From 16.0.0.0 to 111.255.255.255: neither our own networks nor anybody's special ones.
std::vector<Route> draw_routes(std::mt19937_64& random);

// What a configuration says, by tenant: each has two versions. Red's other one is a rule more and each route by another
// gateway, blue's a rule more.
struct Version {
    bool red = false, blue = false;
};

// Red's packets are forwarded; blue has a list as long, and none.
class Files {
  public:
    explicit Files(const std::vector<Route>& routes);
    ~Files();
    Files(const Files&) = delete;
    Files& operator=(const Files&) = delete;

    // The main file, which names the others.
    std::string choose(Version version);

  private:
    void write(const std::string& name, const fmt::memory_buffer& text);
    void write_routes(const std::vector<Route>& routes, unsigned version);
    void write_rules(const std::string& name, unsigned count);

    std::filesystem::path folder_;
};

}  // namespace cachewire::bench
