// SPDX-License-Identifier: BSD-3-Clause
#include "control/rebalance.h"

#include <algorithm>
#include <numeric>

namespace cachewire::control {

namespace {

constexpr std::uint64_t kLoadWindowMs = 1000;
constexpr double kToleratedShare = 0.1;

struct BucketWeight {
    unsigned bucket;
    double rate;
};

void add_class(Shift& shift, unsigned bucket, unsigned granularity) noexcept {
    for (unsigned same = bucket; same < pipeline::kOwnerBuckets; same += granularity) shift.buckets.add(same);
    ++shift.count;
}

// Heaviest first.
std::vector<BucketWeight> weights_of(unsigned worker, double rate, const pipeline::Owners& owners, unsigned granularity,
                                     std::span<const HeavySession> heavy) {
    std::vector<BucketWeight> weights;
    for (unsigned bucket = 0; bucket < granularity; ++bucket)
        if (owners[bucket] == worker) weights.push_back({bucket, 0});
    double known = 0;
    for (const HeavySession& session : heavy)
        for (BucketWeight& weight : weights)
            if (weight.bucket == session.bucket % granularity) weight.rate += session.rate, known += session.rate;
    const double rest = std::max(rate - known, 0.0) / static_cast<double>(std::max<std::size_t>(weights.size(), 1));
    for (BucketWeight& weight : weights) weight.rate += rest;
    std::sort(weights.begin(), weights.end(), [](const auto& a, const auto& b) { return a.rate > b.rate; });
    return weights;
}

}  // namespace

void WorkerLoad::look(std::uint64_t now_ms, std::vector<std::uint64_t> packets) {
    samples_.push_back({now_ms, std::move(packets)});
    while (samples_.size() > 2 && now_ms - samples_[1].at_ms >= kLoadWindowMs) samples_.pop_front();
}

std::vector<double> WorkerLoad::rates() const {
    if (samples_.size() < 2) return {};
    const Sample &first = samples_.front(), &last = samples_.back();
    if (last.at_ms == first.at_ms) return {};
    std::vector<double> rates;
    for (std::size_t w = 0; w < last.packets.size(); ++w)
        rates.push_back(static_cast<double>(last.packets[w] - first.packets[w]) * 1000.0 /
                        static_cast<double>(last.at_ms - first.at_ms));
    return rates;
}

std::optional<Shift> choose_shift(std::span<const double> rates, const pipeline::Owners& owners, unsigned granularity,
                                  std::span<const HeavySession> heavy) {
    if (rates.size() < 2) return std::nullopt;
    const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
    const double fair = std::accumulate(rates.begin(), rates.end(), 0.0) / static_cast<double>(rates.size());
    if (*most - *least <= 2 * kToleratedShare * fair) return std::nullopt;
    Shift shift{static_cast<unsigned>(most - rates.begin()), static_cast<unsigned>(least - rates.begin()), {}};
    double room = (*most - *least) / 2;
    // What is larger than the room would only change places: it stays, and the others leave it alone with its worker.
    for (const BucketWeight& weight : weights_of(shift.from, *most, owners, granularity, heavy)) {
        if (weight.rate <= 0 || weight.rate > room) continue;
        add_class(shift, weight.bucket, granularity);
        shift.rate += weight.rate;
        room -= weight.rate;
    }
    if (shift.count == 0) return std::nullopt;
    return shift;
}

std::optional<Shift> any_buckets(const pipeline::Owners& owners, unsigned granularity, unsigned from, unsigned to,
                                 unsigned count) {
    Shift shift{from, to, {}};
    for (unsigned bucket = 0; bucket < granularity && shift.count < count; ++bucket)
        if (owners[bucket] == from) add_class(shift, bucket, granularity);
    if (shift.count == 0) return std::nullopt;
    return shift;
}

void apply(const Shift& shift, pipeline::Owners& owners) noexcept {
    for (unsigned bucket = 0; bucket < pipeline::kOwnerBuckets; ++bucket)
        if (shift.buckets.has(bucket)) owners[bucket] = static_cast<std::uint8_t>(shift.to);
}

}  // namespace cachewire::control
