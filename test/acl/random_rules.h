#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Random lists and headers for oracle tests. Values come from small pools, and most headers are aimed at a rule, so
// that matches, near misses and overlaps are common; uniform values would nearly always match nothing.
#include <random>
#include <vector>

#include "acl/rule.h"

namespace cachewire::test {

class RandomRules {
  public:
    explicit RandomRules(std::mt19937_64 engine) : engine_(engine) {}

    acl::List list(unsigned rules);
    net::FlowKey key(const acl::List& list);
    unsigned below(unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(engine_); }

  private:
    bool one_in(unsigned n) { return below(n) == 0; }
    net::Address address(net::Family family);
    net::Prefix prefix(net::Family family);
    acl::PortRange ports();
    acl::Rule rule();
    net::Address address_near(const std::optional<net::Prefix>& prefix, net::Family family);
    std::uint16_t port_near(const acl::PortRange& range);

    std::mt19937_64 engine_;
};

}  // namespace cachewire::test
