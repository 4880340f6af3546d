// SPDX-License-Identifier: BSD-3-Clause
#include "control/rss_dispatch.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include <fmt/format.h>

namespace cachewire::control {

namespace {

static_assert(port::kOwnerBuckets == pipeline::kOwnerBuckets);

// Every bit of a tuple's sum counts where the ones are odd in number, and about half of them mix it best.
std::uint16_t pattern_from(const net::HashSeed& seed) {
    std::uint64_t bits = seed.a ^ seed.b ^ seed.c;
    for (;; bits = bits * 0x9e3779b97f4a7c15 + 1) {
        const auto pattern = static_cast<std::uint16_t>(bits >> 48);
        if (const int ones = std::popcount(pattern); ones == 7 || ones == 9) return pattern;
    }
}

std::vector<std::uint16_t> all_queues(const RssPort& port) {
    std::vector<std::uint16_t> all;
    for (const auto& queues : port.queues) all.insert(all.end(), queues.begin(), queues.end());
    return all;
}

// A worker's buckets go over the queues that it polls; those of one without any to all: it gets them by hand-off.
std::vector<std::uint16_t> queues_by_bucket(const RssPort& port, const pipeline::Owners& owners, unsigned granularity) {
    assert(granularity != 0);  // a device's table has an entry for each worker at least (why_not)
    const std::vector<std::uint16_t> all = all_queues(port);
    std::vector<std::uint16_t> result(pipeline::kOwnerBuckets);
    std::vector<std::size_t> turn(port.queues.size());
    for (unsigned bucket = 0; bucket < granularity; ++bucket) {
        const unsigned owner = owners[bucket];
        const auto& own = port.queues[owner].empty() ? all : port.queues[owner];
        result[bucket] = own[turn[owner]++ % own.size()];
    }
    for (unsigned bucket = granularity; bucket < result.size(); ++bucket) result[bucket] = result[bucket % granularity];
    return result;
}

}  // namespace

RssDispatch::RssDispatch(bool wanted, unsigned workers, const net::HashSeed& seed, Say say)
    : wanted_(wanted),
      workers_(workers),
      seed_(seed),
      say_(std::move(say)),
      owners_(pipeline::spread_owners(workers)) {}

std::string RssDispatch::why_not(const port::RssDevice::Offer& offer) const {
    if (std::string why = port::why_no_rss(offer); !why.empty()) return why;
    if (offer.reta_size < workers_)
        return fmt::format("its redirection table has {} entries for {} workers", offer.reta_size, workers_);
    return "";
}

std::string RssDispatch::try_device(const RssPort& port, const net::HashSeed& seed) const {
    const port::RssDevice::Offer offer = port.device->offer();
    if (std::string why = why_not(offer); !why.empty()) return why;
    if (port::rss_granularity(offer.reta_size) < granularity_)
        return fmt::format("its redirection table has {} entries, and the running dispatch tells {} buckets apart",
                           offer.reta_size, granularity_);
    return port::set_up_rss(*port.device, seed, queues_by_bucket(port, owners_, granularity_));
}

void RssDispatch::choose(std::span<const RssPort> ports) {
    if (!wanted_ || workers_ < 2) return;
    for (const RssPort& port : ports)
        if (const auto offer = port.device->offer(); why_not(offer).empty())
            granularity_ = std::min(granularity_, port::rss_granularity(offer.reta_size));
    owners_ = pipeline::spread_owners(workers_, granularity_);
    net::HashSeed seed = seed_;
    seed.rss = net::RssHash(pattern_from(seed_));
    bool used = false;
    for (const RssPort& port : ports) {
        if (const std::string why = try_device(port, seed); !why.empty()) {
            say_(
                fmt::format("workers.dispatch: rss is not used on port {} ({}): {}; its packets find their owner in "
                            "software",
                            port.name, port.driver, why));
            continue;
        }
        used = true;
        const auto with = static_cast<unsigned>(
            std::count_if(port.queues.begin(), port.queues.end(), [](const auto& queues) { return !queues.empty(); }));
        say_(fmt::format(
            "workers.dispatch: rss on port {} ({}): its key and redirection table, read back, give the owner "
            "for both directions{}",
            port.name, port.driver,
            with == workers_ ? std::string()
                             : fmt::format("; {} of {} workers have a queue there, the others' packets "
                                           "take the rings",
                                           with, workers_)));
    }
    if (used) {
        seed_ = seed;
        return;
    }
    granularity_ = pipeline::kOwnerBuckets;
    owners_ = pipeline::spread_owners(workers_);
}

void RssDispatch::tell(const RssPort& port) const {
    if (!uses_rss()) return;
    if (const std::string why = try_device(port, seed_); !why.empty())
        say_(fmt::format(
            "workers.dispatch: rss is not used on port {} ({}): {}; its packets find their owner in software",
            port.name, port.driver, why));
}

}  // namespace cachewire::control
