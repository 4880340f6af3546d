#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// One file per claim. A claim measures, prints its table and returns the variants for --json.
#include <string>
#include <vector>

#include "slices.h"

namespace cachewire::bench {

struct Options {
    bool quick = false;
    bool sweep = false;                    // session, flows: prefetch distances and burst sizes
    std::string prefixes_v4, prefixes_v6;  // fib: files with a prefix a line; empty: drawn
    unsigned pairs = 4000;
    bool cachesim = false;       // also simulated misses by stage, of claims that have some
    bool cachesim_only = false;  // those, and no cycles
    // Run this many slices of one variant alone, for callgrind. flows and session: of the last one.
    unsigned only_slices = 0;
    std::string only_variant;
    std::vector<std::string> peers;  // peer: NAME=COMMAND of other forwarders
    std::string cachewire;           // peer: our program, if not the one beside this
    unsigned starts = 0;             // peer: of each program; 0: as --quick says
};

// Per-packet metadata in a descriptor and the session, against the same in mbuf dynamic fields.
std::vector<Result> layout(const Options& options);
// A forwarder as one writes it first, one with a descriptor, and the shipped one, for 100 tenants.
std::vector<Result> scenarios(const Options& options);
// The whole path of 64-byte packets against receive-and-send on the same ports.
std::vector<Result> flows(const Options& options);
// Packets handed to another lcore as descriptors against pointers alone, and what the rings cost.
std::vector<Result> handoff(const Options& options);
// Route look-ups by the table's size, loading it, and changing it under look-ups.
std::vector<Result> fib(const Options& options);
// The session table against rte_hash and against itself one packet at a time.
std::vector<Result> session(const Options& options);
// The ACL stage against rte_acl alone, by number of rules and method; build time and memory.
std::vector<Result> acl(const Options& options);
// What the memoised verdict saves, by number of rules.
std::vector<Result> memo(const Options& options);

// The worker's gaps and the control plane's time, with and without reloads of 10 000 rules and 900 000 routes.
std::vector<Result> reload(const Options& options);
// What a tenant feels of another one's flood on the same worker.
std::vector<Result> noisy(const Options& options);
// Other forwarders beside cachewire on the same memif ports. Not one of `all`.
std::vector<Result> peer(const Options& options);
// Policing against rte_meter's own call, and one rate over two lcores against one.
std::vector<Result> qos(const Options& options);
// A port's scheduler against rte_sched: a part of qos.
std::vector<Result> scheduling(const Options& options);

// Every claim's table: variant, Mpps, cycles a packet and their spread, ratio and difference against the first one.
void print_table(const std::string& title, const std::vector<Result>& results);

}  // namespace cachewire::bench
