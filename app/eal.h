#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// EAL for the program's life: started with the merged arguments, cleaned up at the end. What EAL says goes to stderr;
// when it refuses to start, what it said is turned into a sentence on what a person can do.
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace cachewire::app {

class Eal {
  public:
    // Throws base::Error: status usage for arguments that EAL refuses, machine for the rest.
    explicit Eal(const std::vector<std::string>& arguments);
    ~Eal();
    Eal(const Eal&) = delete;
    Eal& operator=(const Eal&) = delete;
};

// Log lines of EAL and cachewire go to stderr from here on, with 22.11 too, which would write them to stdout.
void log_to_stderr();

// The error that stands for what EAL logged before it gave up.
base::Error explain_eal_failure(std::string_view log, const std::string& reason);

}  // namespace cachewire::app
