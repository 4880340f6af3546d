#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Paired measurement. The machine flips between speeds that differ by 1.7x and two runs of one binary differ by 50 %,
// so variants take turns in one process in slices of about 0.25 ms, in an order that turns round every time, and what
// is compared is slice with slice. Identical code against itself agrees to 0.2 % over 4000 pairs.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cachesim.h"

namespace cachewire::bench {

struct Slice {
    std::uint64_t cycles = 0;   // TSC
    std::uint64_t packets = 0;  // or operations
};

struct Variant {
    std::string name;
    std::function<Slice()> run;  // one slice
};

struct Result {
    std::string name;
    double cycles_per_packet = 0;   // median over the slices
    double spread = 0;              // half the distance between the quartiles, in cycles
    double mpps = 0;                // from the median, at the TSC's rate
    double ratio = 1;               // median of (this slice / the first variant's slice beside it)
    double difference = 0;          // median of (this slice - the first variant's slice beside it), cycles a packet
    std::vector<StageCost> stages;  // simulated, where --cachesim asked for it
    std::vector<double> starts{};   // peer: Mpps by start
    std::string frames{};           // peer: how they come out of it
    std::string failure{};          // peer: why it was not measured, or not to the end
};

// For --quick: from now on no measurement takes longer than a tenth of `seconds`, and past them all none takes more
// than a few rounds. A machine that is busy elsewhere gives fewer pairs then, and not a longer run.
void limit_time(double seconds);

std::vector<Result> measure(const std::vector<Variant>& variants, unsigned pairs);

}  // namespace cachewire::bench
