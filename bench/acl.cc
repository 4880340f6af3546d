// SPDX-License-Identifier: BSD-3-Clause
// The ACL stage on bursts of 32 lanes without sessions, against the bare rte_acl_classify calls over the same keys.
// Lists look like a site's edge: servers and networks of a pool, well-known ports, one rule in ten wide in the source,
// one in twenty in the destination. Each key fits a rule drawn at random; keys are taken from 4 MB of them, so that
// they and the tries meet in L2 and L3 as they do behind a NIC.
#include <array>
#include <random>

#include <fmt/format.h>
#include <rte_lcore.h>

#include "acl/classifier.h"
#include "base/clock.h"
#include "base/error.h"
#include "burst_slice.h"
#include "claims.h"
#include "control/workers.h"
#include "pipeline/stages/4_acl.h"

namespace cachewire::bench {

namespace {

constexpr unsigned kBurst = 32;
constexpr unsigned kKeys = 65536;
constexpr unsigned kBursts = 32;  // a slice

class Rules {
  public:
    explicit Rules(unsigned count) : count_(count) {}

    acl::List list() {
        acl::List out;
        out.name = fmt::format("bench-{}", count_);
        out.default_action = acl::Action::permit;
        for (unsigned i = 0; i < count_; ++i) {
            acl::Rule rule;
            rule.action = acl::Action::permit;
            if (below(10) != 0) rule.src = network(0x0a000000, count_ / 4 + 4);
            if (below(20) != 0) rule.dst = network(0xac100000, count_ / 8 + 4);
            rule.proto = below(4) == 0 ? 17 : 6;
            static constexpr std::uint16_t kPorts[] = {22, 25, 53, 80, 110, 143, 443, 993, 3306, 5432, 8080};
            if (below(20) == 0) {
                rule.dst_ports = {1024, 65535};
            } else {
                const std::uint16_t port = kPorts[below(std::size(kPorts))];
                rule.dst_ports = {port, port};
            }
            out.rules.push_back(std::move(rule));
        }
        return out;
    }
    net::FlowKey key(const acl::List& list) {
        const acl::Rule& rule = list.rules[below(static_cast<unsigned>(list.rules.size()))];
        const auto address = [&](const std::optional<net::Prefix>& prefix) {
            const unsigned length = prefix ? prefix->length : 0;
            const std::uint32_t host = length >= 32 ? 0 : static_cast<std::uint32_t>(engine_()) >> length;
            return net::Address::from_v4((prefix ? prefix->address.v4() : 0x0a000000) | host);
        };
        const auto port = [&](const acl::PortRange& range) {
            return __builtin_bswap16(static_cast<std::uint16_t>(range.first + below(range.last - range.first + 1u)));
        };
        net::FlowKey key;
        key.src = address(rule.src);
        key.dst = address(rule.dst);
        key.src_port_be = port({1024, 65535});
        key.dst_port_be = port(rule.dst_ports);
        key.proto = *rule.proto;
        key.match_flags = net::kL4Known;
        return key;
    }

  private:
    unsigned below(unsigned n) { return static_cast<unsigned>(engine_() % n); }
    // The n-th of a pool: hosts, and /24 and /28 among them.
    net::Prefix network(std::uint32_t base, unsigned pool) {
        const std::uint32_t n = below(pool);
        const std::uint8_t length = n % 8 == 0 ? 24 : n % 8 == 1 ? 28 : 32;
        const std::uint32_t address = (base + n * 0x95) & (~std::uint32_t{0} << (32 - length));
        return {net::Address::from_v4(address), length, net::Family::ip4};
    }

    unsigned count_;
    std::mt19937 engine_{1};
};

class Arm {
  public:
    Arm(const acl::List& list, acl::Method method, const std::vector<net::FlowKey>& keys)
        : classifier_(acl::Classifier::build(list, acl::Classifier::Options{.method = method})),
          keys_(keys),
          worker_(control::make_worker_state(rte_lcore_id(), 16)) {
        snapshot_.tenants.resize(2);
        snapshot_.tenants[1].acl = classifier_.get();
    }

    Slice bare() {
        Slice slice;
        const auto tries = classifier_->tries_of(net::Family::ip4);
        std::array<const std::uint8_t*, kBurst> data;
        std::array<std::uint32_t, kBurst> found, more;
        for (unsigned b = 0; b < kBursts; ++b) {
            for (unsigned i = 0; i < kBurst; ++i) data[i] = reinterpret_cast<const std::uint8_t*>(next_key());
            const std::uint64_t begin = base::now_tsc();
            tries[0]->classify(data.data(), found.data(), kBurst);
            for (std::size_t t = 1; t < tries.size(); ++t) tries[t]->classify(data.data(), more.data(), kBurst);
            slice.cycles += base::now_tsc() - begin;
        }
        slice.packets = std::uint64_t{kBurst} * kBursts;
        return slice;
    }
    Slice stage() {
        pipeline::Burst& burst = worker_->burst;
        const auto fill = [&](pipeline::Lane& lane, net::FlowKey& key) {
            lane.flags = 0;
            lane.tenant = 1;
            key = *next_key();
        };
        return time_bursts(burst, kBursts, kBurst, fill, [&](std::uint64_t) {
            pipeline::stages::Acl::process(*worker_, snapshot_, burst);
            if (burst.size() != kBurst) throw std::runtime_error("a packet was denied");
        });
    }
    [[nodiscard]] const acl::Classifier& classifier() const { return *classifier_; }

  private:
    const net::FlowKey* next_key() { return &keys_[at_++ % keys_.size()]; }

    std::unique_ptr<acl::Classifier> classifier_;
    const std::vector<net::FlowKey>& keys_;
    std::unique_ptr<pipeline::WorkerState> worker_;
    pipeline::Snapshot snapshot_;
    std::size_t at_ = 0;
};

struct NamedMethod {
    const char* name;
    acl::Method method;
};
constexpr NamedMethod kMethods[] = {
    {"best", acl::Method::best}, {"scalar", acl::Method::scalar},       {"sse", acl::Method::sse},
    {"avx2", acl::Method::avx2}, {"avx512x16", acl::Method::avx512x16}, {"avx512x32", acl::Method::avx512x32}};

}  // namespace

std::vector<Result> acl(const Options& options) {
    std::vector<Result> all;
    for (const unsigned count : {100u, 1000u, 10000u, 100000u}) {
        Rules rules(count);
        const acl::List list = rules.list();
        std::vector<net::FlowKey> keys;
        for (unsigned i = 0; i < kKeys; ++i) keys.push_back(rules.key(list));
        for (const auto& [name, method] : kMethods) {
            if (options.quick && count == 100000 && method != acl::Method::best) continue;
            try {
                Arm arm(list, method, keys);
                const std::string prefix = fmt::format("{} {} ", count, name);
                auto results = measure(
                    {{prefix + "rte_acl", [&] { return arm.bare(); }}, {prefix + "stage", [&] { return arm.stage(); }}},
                    options.quick ? 300 : options.pairs);
                print_table(
                    fmt::format("acl: {} rules, {}: {} tries, {:.1f} MB, built in {:.2f} s", count, name,
                                arm.classifier().tries(), static_cast<double>(arm.classifier().memory_bytes()) / 1e6,
                                static_cast<double>(arm.classifier().build_time_us()) / 1e6),
                    results);
                all.insert(all.end(), results.begin(), results.end());
            } catch (const base::MachineError& error) {
                fmt::print("\nacl: {} rules, {}: {}\n", count, name, error.what());
            }
        }
    }
    return all;
}

}  // namespace cachewire::bench
