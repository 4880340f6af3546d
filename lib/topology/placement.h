#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Where lcores should run, decided from numbers alone. Workers: on the NUMA nodes of the ports, one a physical core,
// the fastest cores first. The main lcore: on a core of its own. What can't be had is given in the next best way, and
// said.
#include <optional>
#include <string>
#include <vector>

#include "topology/topology.h"

namespace cachewire::topology {

struct PortPlace {
    std::string name;
    std::optional<unsigned> node;  // nullopt: nowhere in particular, as devices in software are
    bool scheduled = false;        // has a scheduler, so the scheduler's lcore sends here
};

struct Plan {
    unsigned main = 0;                  // CPU
    std::vector<unsigned> workers;      // CPU of each
    std::optional<unsigned> scheduler;  // CPU, where a port is scheduled
    // The numbers of their lcores, as EAL is to be told.
    unsigned main_id = 0, scheduler_id = 0;
    std::vector<unsigned> worker_ids;
    std::vector<std::string> costs;  // sentences; empty: nothing to complain about
};

// `workers` 0: as many as there are whole cores for on the ports' nodes, one less if a port is scheduled, and one at
// least. `ids`: the workers' lcores where the file names them, as many as `workers`; empty: from 1 on. The main one and
// the scheduler's are the lowest numbers that are left.
Plan place(const Topology& topology, const std::vector<PortPlace>& ports, unsigned workers,
           const std::vector<unsigned>& ids = {});

// What an arrangement costs; `cpus` of an lcore: those it may run on.
struct Lcore {
    unsigned id = 0;
    std::vector<unsigned> cpus;
    bool main = false;
    bool scheduler = false;  // touches what scheduled ports send, and no other port
};
std::vector<std::string> costs_of(const Topology& topology, const std::vector<PortPlace>& ports,
                                  const std::vector<Lcore>& lcores);

}  // namespace cachewire::topology
