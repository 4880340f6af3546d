#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// EAL for the program's life: started with the merged arguments. What EAL says goes to stderr;
// when it refuses to start, what it said is turned into a sentence on what a person can do.
#include <string>
#include <string_view>
#include <vector>

#include "app/eal_arguments.h"
#include "base/error.h"

namespace cachewire::app {

class Eal {
  public:
    // `sources`: where the arguments came from. Throws base::Error: for arguments that EAL refuses status configuration
    // or usage, after the place they came from; machine for the rest.
    Eal(const std::vector<std::string>& arguments, const EalSources& sources);
    // No rte_eal_cleanup(): it unmaps memory that DPDK's own telemetry commands read on threads which nothing can stop,
    // so a client that asks at that moment ends the process by a fault. Ports are closed by their owner; what is left
    // behind is what a killed process leaves, and the next start takes it over.
    ~Eal() = default;
    Eal(const Eal&) = delete;
    Eal& operator=(const Eal&) = delete;
};

// Log lines of EAL and cachewire go to stderr from here on, with 22.11 too, which would write them to stdout.
void log_to_stderr();

// The error that stands for what EAL logged before it gave up.
base::Error explain_eal_failure(const EalSources& sources, std::string_view log, const std::string& reason);

}  // namespace cachewire::app
