#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Instructions and simulated cache misses a packet, by stage: this program once more, under callgrind, with one
// variant's slices collected. Repeatable, and the same on every machine: the simulated caches have fixed sizes. The
// simulator knows no prefetch, so a miss here is a line that is touched and not in L1, whether or not it was fetched
// ahead; what prefetching is worth only cycles tell.
#include <string>
#include <vector>

namespace cachewire::bench {

struct StageCost {
    std::string stage;        // or "rest": what the collected code does between the stages; "all"
    double instructions = 0;  // a packet, as all of these
    double references = 0;    // data reads and writes
    double l1_misses = 0;     // of data, in 32 KiB with 8 ways
    double ll_misses = 0;     // of data, in 2 MiB with 16 ways: about what a core has to itself behind L1
    double l1i_misses = 0;    // of instructions, in 32 KiB with 8 ways
};

// `claim VARIANT` is run so: `--only-variant VARIANT --only-slices SLICES`; each slice handles `packets`. Empty, and a
// line on stdout says why, where valgrind is missing or fails.
std::vector<StageCost> simulate(const std::string& claim, const std::string& variant, unsigned slices,
                                unsigned packets);

void print_costs(const std::string& title, const std::vector<StageCost>& costs);

}  // namespace cachewire::bench
