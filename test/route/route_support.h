#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What the route tests share: prefixes from text, the naive longest match, random nested routes and the addresses where
// tables go wrong.
#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "net/prefix.h"
#include "route/fib.h"
#include "support/catch.h"
#include "support/parsed.h"

namespace cachewire::test {

using net::Address;
using net::Family;
using net::Prefix;
using route::FibView;
using route::RouteChange;
using route::Vrf;

using Routes = std::map<Prefix, std::uint16_t>;

struct Form {
    const char* name;
    std::size_t compact_limit;
};
inline constexpr Form kForms[] = {{"ranges", 1u << 20}, {"rte_fib", 0}, {"both, changing at 40 routes", 40}};

inline Vrf::Options options(const Form& form) {
    Vrf::Options o;
    o.compact_limit = form.compact_limit;
    o.max_routes = 1u << 18;
    return o;
}

inline RouteChange add(const std::string& text, std::uint16_t next_hop) { return {prefix(text), next_hop}; }
inline RouteChange withdraw(const std::string& text) { return {prefix(text), std::nullopt}; }

inline std::uint16_t naive(const Routes& routes, const Address& a) {
    int best = -1;
    std::uint16_t next_hop = 0;
    for (const auto& [p, n] : routes) {
        if (p.contains(a) && p.length > best) {
            best = p.length;
            next_hop = n;
        }
    }
    return next_hop;
}

inline std::vector<std::uint16_t> bulk(const FibView& view, const std::vector<Address>& addresses) {
    std::vector<std::uint16_t> out(addresses.size(), 0xffff);
    std::vector<const Address*> pointers;
    for (const auto& a : addresses) pointers.push_back(&a);
    for (std::size_t i = 0; i < addresses.size(); i += route::kMaxBulk) {
        const std::size_t n = std::min(route::kMaxBulk, addresses.size() - i);
        view.lookup({&pointers[i], n}, {&out[i], n});
    }
    return out;
}

inline std::uint16_t one(const FibView& view, const std::string& text) { return bulk(view, {address(text)})[0]; }

inline void publish(Vrf& vrf, const std::vector<RouteChange>& batch) {
    vrf.apply(batch);
    vrf.grace_period_over();
}

// The 128-bit form with all but the first `kept` bits of the family cleared or, for the last address of a prefix, set.
inline Address with_tail(Address a, Family family, unsigned kept, bool ones) {
    for (unsigned bit = (family == Family::ip4 ? 96 : 0) + kept; bit < 128; ++bit) {
        const auto mask = static_cast<std::uint8_t>(0x80u >> (bit % 8));
        a.bytes[bit / 8] = static_cast<std::uint8_t>(ones ? a.bytes[bit / 8] | mask : a.bytes[bit / 8] & ~mask);
    }
    return a;
}

// Few distinct bits, so that prefixes nest, meet and repeat.
class RandomRoutes {
  public:
    explicit RandomRoutes(std::mt19937_64 engine) : engine_(engine) {}

    Address any_address(Family family) {
        static constexpr std::uint8_t kBytes[] = {0x00, 0x0a, 0x80, 0xff};
        Address a;
        for (auto& b : a.bytes) b = kBytes[engine_() % 4];
        if (engine_() % 4 == 0) a.bytes[15] = static_cast<std::uint8_t>(engine_());
        if (family == Family::ip6) {
            a.bytes[0] = engine_() % 8 == 0 ? 0xff : 0x20;
            if (a.is_v4()) a.bytes[0] = 0x20;
            return a;
        }
        const Address v4 = Address::from_v4(0);
        std::copy_n(v4.bytes.begin(), 12, a.bytes.begin());
        return a;
    }

    Prefix any_prefix(Family family) {
        const unsigned max = family == Family::ip4 ? 32 : 128;
        const auto length = static_cast<std::uint8_t>(engine_() % 3 == 0 ? 24 + engine_() % 9 : engine_() % (max + 1));
        return {with_tail(any_address(family), family, length, false), length, family};
    }

    RouteChange any_change(const Routes& existing) {
        const Family family = engine_() % 2 ? Family::ip4 : Family::ip6;
        const auto next_hop =
            static_cast<std::uint16_t>(1 + engine_() % 4);  // few, so that children repeat their parent's
        if (!existing.empty() && engine_() % 3 == 0) {
            auto it = existing.begin();
            std::advance(it, static_cast<long>(engine_() % existing.size()));
            return engine_() % 3 == 0 ? RouteChange{it->first, next_hop} : RouteChange{it->first, std::nullopt};
        }
        return {any_prefix(family), next_hop};
    }

    std::uint64_t number() { return engine_(); }

  private:
    std::mt19937_64 engine_;
};

inline void apply_to(Routes& routes, const std::vector<RouteChange>& batch) {
    for (const auto& c : batch) {
        if (c.next_hop) {
            routes[c.prefix] = *c.next_hop;
        } else {
            routes.erase(c.prefix);
        }
    }
}

// First and last address of every prefix, their neighbours outside, and random ones.
inline std::vector<Address> probes(const Routes& routes, RandomRoutes& random) {
    std::vector<Address> out;
    for (const auto& [p, n] : routes) {
        out.push_back(p.address);
        out.push_back(with_tail(p.address, p.family, p.length, true));
        if (p.length == 0) continue;
        Address beside = p.address;
        const unsigned bit = (p.family == Family::ip4 ? 96 : 0) + p.length - 1u;
        beside.bytes[bit / 8] ^= static_cast<std::uint8_t>(0x80u >> (bit % 8));
        out.push_back(with_tail(beside, p.family, p.length, false));
        out.push_back(with_tail(beside, p.family, p.length, true));
    }
    for (int i = 0; i < 200; ++i) out.push_back(random.any_address(i % 2 ? Family::ip4 : Family::ip6));
    return out;
}

inline void check_against_naive(const FibView& view, const Routes& routes, RandomRoutes& random) {
    auto addresses = probes(routes, random);
    // The limited broadcast is never looked up, and rte_fib can't be trusted with it (route/end_routes.h).
    std::erase(addresses, Address::from_v4(0xffffffff));
    const auto found = bulk(view, addresses);
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        if (found[i] != naive(routes, addresses[i])) {
            INFO(net::to_string(addresses[i]));
            REQUIRE(found[i] == naive(routes, addresses[i]));
        }
    }
    REQUIRE_FALSE(found.empty());
}

}  // namespace cachewire::test
