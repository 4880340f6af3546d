// SPDX-License-Identifier: BSD-3-Clause
// What does a route look-up cost by the table's size, what does a full table cost to load and to keep, and how fast can
// routes change under a reading worker? The tables are prefixes of files (--prefixes-v4, --prefixes-v6, one a line), or
// drawn from the lengths of the internet's tables of 2026. Next hops are 256 of them. Bursts of 32 random addresses,
// each inside a random prefix.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "claims.h"
#include "route/fib.h"

namespace cachewire::bench {

namespace {

using net::Address;
using net::Family;
using net::Prefix;
using route::RouteChange;
using route::Vrf;

constexpr unsigned kBurst = 32;
constexpr unsigned kAddresses = 1u << 16;
constexpr std::uint16_t kNextHops = 256;

Prefix cut(Address address, unsigned length, Family family) {
    const unsigned kept = (family == Family::ip4 ? 96u : 0u) + length;
    for (unsigned bit = kept; bit < 128; ++bit)
        address.bytes[bit / 8] = static_cast<std::uint8_t>(address.bytes[bit / 8] & ~(0x80u >> (bit % 8)));
    return {address, static_cast<std::uint8_t>(length), family};
}

Address random_address(Family family, std::mt19937_64& random) {
    if (family == Family::ip4)
        return Address::from_v4(static_cast<std::uint32_t>(random() % 0xdf000000u + 0x01000000u));
    Address address;
    for (auto& byte : address.bytes) byte = static_cast<std::uint8_t>(random());
    address.bytes[0] = static_cast<std::uint8_t>(0x20 | (address.bytes[0] & 0x0f));
    return address;
}

struct Share {
    unsigned length, percent;
};
constexpr Share kLengths4[] = {{24, 60}, {23, 10}, {22, 11}, {21, 6}, {20, 5}, {19, 3}, {18, 2}, {16, 2}, {17, 1}};
constexpr Share kLengths6[] = {{48, 50}, {32, 13}, {44, 10}, {40, 10}, {36, 6}, {46, 4}, {29, 3}, {42, 4}};

std::vector<Prefix> drawn(Family family, std::size_t count, std::mt19937_64& random) {
    std::set<Prefix> prefixes;
    const std::span<const Share> shares = family == Family::ip4 ? std::span<const Share>(kLengths4) : kLengths6;
    while (prefixes.size() < count) {
        unsigned at = random() % 100, i = 0;
        while (i + 1 < shares.size() && at >= shares[i].percent) at -= shares[i++].percent;
        prefixes.insert(cut(random_address(family, random), shares[i].length, family));
    }
    return {prefixes.begin(), prefixes.end()};
}

std::vector<Prefix> read(const std::string& file) {
    std::ifstream in(file);
    if (!in) throw std::runtime_error("can't read " + file);
    std::vector<Prefix> prefixes;
    for (std::string line; std::getline(in, line);) {
        const auto parsed = net::parse_prefix(line.substr(0, line.find_first_of(" \t\r")));
        if (parsed) prefixes.push_back(parsed->prefix);
    }
    return prefixes;
}

std::vector<Prefix> sample(const std::vector<Prefix>& all, std::size_t count) {
    std::vector<Prefix> some;
    for (std::size_t i = 0; i < std::min(count, all.size()); ++i) some.push_back(all[i * all.size() / count]);
    return some;
}

double seconds_of(const std::function<void()>& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// A loaded table and addresses that it has routes for.
class Table {
  public:
    Table(std::string name, const std::vector<Prefix>& prefixes, std::mt19937_64& random)
        : name_(std::move(name)), vrf_(std::make_unique<Vrf>(name_, Vrf::Options{})) {
        std::vector<RouteChange> batch;
        batch.reserve(prefixes.size());
        for (const Prefix& p : prefixes) batch.push_back({p, static_cast<std::uint16_t>(1 + random() % kNextHops)});
        const double first = seconds_of([&] { vrf_->apply(batch); });
        const double second = seconds_of([&] { vrf_->grace_period_over(); });
        fmt::print("{:<14} {:>7} routes loaded in {:.2f} s, the second copy in {:.2f} s, {} MiB\n", name_,
                   prefixes.size(), first, second, vrf_->stats().memory_bytes >> 20);
        for (unsigned i = 0; i < kAddresses; ++i) {
            const Prefix& p = prefixes[random() % prefixes.size()];
            Address address = random_address(p.family, random);
            const unsigned fixed = (p.family == Family::ip4 ? 96u : 0u) + p.length;
            for (unsigned bit = 0; bit < fixed; ++bit) {
                const auto mask = static_cast<std::uint8_t>(0x80u >> (bit % 8));
                address.bytes[bit / 8] =
                    static_cast<std::uint8_t>((address.bytes[bit / 8] & ~mask) | (p.address.bytes[bit / 8] & mask));
            }
            addresses_.push_back(address);
        }
        for (const Address& address : addresses_) pointers_.push_back(&address);
    }

    // 128 bursts.
    Slice lookups() {
        const auto view = vrf_->view();
        std::array<std::uint16_t, kBurst> next_hops;
        const std::uint64_t begin = base::now_tsc();
        for (unsigned i = 0; i < 128; ++i) {
            view->lookup({&pointers_[at_], kBurst}, next_hops);
            missed_ += next_hops[0] == 0;
            at_ = (at_ + kBurst) % kAddresses;
        }
        return {base::now_tsc() - begin, std::uint64_t{128} * kBurst};
    }

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] std::uint64_t missed() const { return missed_; }
    [[nodiscard]] Vrf& vrf() { return *vrf_; }
    [[nodiscard]] const std::vector<const Address*>& addresses() const { return pointers_; }

  private:
    std::string name_;
    std::unique_ptr<Vrf> vrf_;
    std::vector<Address> addresses_;
    std::vector<const Address*> pointers_;
    std::size_t at_ = 0;
    std::uint64_t missed_ = 0;
};

// EAL has bound the main thread to one CPU, and a thread inherits that.
void leave_this_cpu(int cpu) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    for (long i = 0; i < sysconf(_SC_NPROCESSORS_ONLN); ++i)
        if (i != cpu) CPU_SET(static_cast<std::size_t>(i), &cpus);
    pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);  // one CPU only: it stays where it is
}

// Routes move between next hops, in batches as a routing daemon sends them, while a thread looks up without a pause. No
// route goes, so every look-up that finds none is a packet lost.
void change_under_traffic(Table& table, const std::vector<Prefix>& prefixes, std::size_t batch_size, double seconds,
                          std::mt19937_64& random) {
    Vrf& vrf = table.vrf();
    std::atomic<const route::FibView*> published{vrf.view().get()}, seen{nullptr};
    std::atomic<bool> stop{false};
    std::uint64_t lookups = 0, lost = 0;
    const int writer_cpu = sched_getcpu();
    std::thread reader([&] {
        leave_this_cpu(writer_cpu);
        std::array<std::uint16_t, kBurst> next_hops;
        for (std::size_t at = 0; !stop.load(std::memory_order_relaxed); at = (at + kBurst) % kAddresses) {
            const route::FibView* view = published.load(std::memory_order_acquire);
            view->lookup({&table.addresses()[at], kBurst}, next_hops);
            for (const std::uint16_t next_hop : next_hops) lost += next_hop == 0;
            lookups += kBurst;
            seen.store(view, std::memory_order_release);
        }
    });
    std::size_t changes = 0;
    double longest = 0;
    const auto begin = std::chrono::steady_clock::now();
    double passed = 0;
    while (passed < seconds) {
        std::vector<RouteChange> batch;
        for (std::size_t i = 0; i < batch_size; ++i)
            batch.push_back(
                {prefixes[random() % prefixes.size()], static_cast<std::uint16_t>(1 + random() % kNextHops)});
        const double took = seconds_of([&] {
            const auto old = vrf.view();
            const auto view = vrf.apply(batch);
            published.store(view.get(), std::memory_order_release);
            while (seen.load(std::memory_order_acquire) != view.get()) std::this_thread::yield();
        });
        longest = std::max(longest, took + seconds_of([&] { vrf.grace_period_over(); }));
        changes += batch_size;
        passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    stop = true;
    reader.join();
    fmt::print(
        "{:<14} batches of {:>5}: {:>9.0f} changes/s under {:.1f} M look-ups/s, longest batch {:.0f} ms, {} lost\n",
        table.name(), batch_size, static_cast<double>(changes) / passed, static_cast<double>(lookups) / passed / 1e6,
        longest * 1e3, lost);
    if (lost != 0) throw std::runtime_error("a look-up found no route while its route was there");
}

}  // namespace

std::vector<Result> fib(const Options& options) {
    std::mt19937_64 random(1);
    const auto v4 = options.prefixes_v4.empty() ? drawn(Family::ip4, 900'000, random) : read(options.prefixes_v4);
    const auto v6 = options.prefixes_v6.empty() ? drawn(Family::ip6, 160'000, random) : read(options.prefixes_v6);
    fmt::print("\nprefixes: {} IPv4 {}, {} IPv6 {}\n", v4.size(), options.prefixes_v4.empty() ? "drawn" : "read",
               v6.size(), options.prefixes_v6.empty() ? "drawn" : "read");
    std::vector<std::unique_ptr<Table>> tables;
    const auto add = [&](const std::string& name, const std::vector<Prefix>& prefixes) {
        try {
            tables.push_back(std::make_unique<Table>(name, prefixes, random));
        } catch (const base::MachineError& error) {
            fmt::print("{:<14} left out: {}\n", name, error.what());
        }
    };
    add("v4 1 k", sample(v4, 1000));
    add("v4 100 k", sample(v4, 100'000));
    add("v4 full", v4);
    add("v6 1 k", sample(v6, 1000));
    add("v6 full", v6);
    std::vector<Variant> variants;
    variants.reserve(tables.size());
    for (const auto& table : tables) variants.push_back({table->name(), [&table] { return table->lookups(); }});
    auto results = measure(variants, options.quick ? 300 : options.pairs);
    print_table("fib: look-ups in bursts of 32, random addresses", results);
    for (const auto& table : tables)
        if (table->missed() != 0) throw std::runtime_error("a look-up found no route");
    for (const std::size_t batch : {100u, 2500u, 8192u}) {
        for (const auto& table : tables)
            if (table->name().ends_with("full"))
                change_under_traffic(*table, table->name().starts_with("v4") ? v4 : v6, batch, options.quick ? 2 : 5,
                                     random);
    }
    return results;
}

}  // namespace cachewire::bench
