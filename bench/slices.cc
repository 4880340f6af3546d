// SPDX-License-Identifier: BSD-3-Clause
#include "slices.h"

#include <algorithm>

#include "base/clock.h"

namespace cachewire::bench {

namespace {

double quantile(std::vector<double> values, double q) {
    if (values.empty()) return 0;
    const auto nth = values.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), nth, values.end());
    return *nth;
}

std::uint64_t share = 0, last = 0;  // TSC; 0: no limit

}  // namespace

void limit_time(double seconds) {
    const double cycles = seconds * static_cast<double>(base::tsc_hz());
    share = static_cast<std::uint64_t>(cycles / 10);
    last = base::now_tsc() + static_cast<std::uint64_t>(cycles);
}

std::vector<Result> measure(const std::vector<Variant>& variants, unsigned pairs) {
    constexpr unsigned kWarmUp = 20, kLeast = 3;
    const std::uint64_t begin = base::now_tsc();
    const std::uint64_t end = share == 0 ? UINT64_MAX : std::min(last, begin + share);
    unsigned warm_up = kWarmUp;
    std::vector<std::vector<double>> cost(variants.size());
    for (unsigned round = 0; round < pairs + warm_up; ++round) {
        const std::uint64_t now = base::now_tsc();
        // Where a slice takes long (two lcores on a machine that is busy elsewhere), no more than these.
        if (share != 0 && round >= 1 && round < warm_up && now > begin + share / 4) warm_up = round;
        if (round >= warm_up + kLeast && now > end) break;
        for (std::size_t k = 0; k < variants.size(); ++k) {
            const std::size_t v = (round % 2 == 0) ? k : variants.size() - 1 - k;
            const Slice slice = variants[v].run();
            if (round >= warm_up && slice.packets != 0)
                cost[v].push_back(static_cast<double>(slice.cycles) / static_cast<double>(slice.packets));
        }
    }
    std::vector<Result> results;
    for (std::size_t v = 0; v < variants.size(); ++v) {
        std::vector<double> ratios, differences;
        for (std::size_t i = 0; i < std::min(cost[v].size(), cost[0].size()); ++i) {
            ratios.push_back(cost[v][i] / cost[0][i]);
            differences.push_back(cost[v][i] - cost[0][i]);
        }
        Result r;
        r.name = variants[v].name;
        r.cycles_per_packet = quantile(cost[v], 0.5);
        r.spread = (quantile(cost[v], 0.75) - quantile(cost[v], 0.25)) / 2;
        r.mpps = r.cycles_per_packet == 0 ? 0 : static_cast<double>(base::tsc_hz()) / r.cycles_per_packet / 1e6;
        r.ratio = quantile(ratios, 0.5);
        r.difference = quantile(differences, 0.5);
        results.push_back(r);
    }
    return results;
}

}  // namespace cachewire::bench
