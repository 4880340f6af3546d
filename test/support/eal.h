#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// EAL for unit tests: once per process, no huge pages, no NIC, nothing shared, so that any number of test programs run
// at once.
#include <array>
#include <stdexcept>

#include <rte_eal.h>

namespace cachewire::test {

inline void ensure_eal() {
    static const int rc = [] {
        std::array<const char*, 11> argv = {"test",        "--no-huge",   "-m",  "512", "--no-pci", "--no-telemetry",
                                            "--no-shconf", "--log-level", "*:4", "-l",  "0"};
        return rte_eal_init(static_cast<int>(argv.size()), const_cast<char**>(argv.data()));
    }();
    if (rc < 0) throw std::runtime_error("rte_eal_init failed");
}

}  // namespace cachewire::test
