// SPDX-License-Identifier: BSD-3-Clause
#include "app/eal.h"

#include "support/catch.h"

using namespace cachewire;

// Lines as DPDK 22.11 logs them.
TEST_CASE("eal: a failed start becomes a sentence on what to do", "[app]") {
    struct Case {
        const char* log;
        base::ExitStatus status;
        const char* advice;
    };
    using Status = base::ExitStatus;
    const Case cases[] = {
        {"EAL: Cannot create lock on '/var/run/dpdk/rte/config'. Is another primary process running?\n"
         "EAL: FATAL: Cannot init config\n",
         Status::machine, "--file-prefix NAME"},
        {"EAL: No free 2048 kB hugepages reported on node 0\n"
         "EAL: FATAL: Cannot get hugepage information.\n",
         Status::machine, "echo 512 > /proc/sys/vm/nr_hugepages"},
        {"EAL: Not enough memory available! Requested: 4096MB, available: 512MB\nEAL: FATAL: Cannot init memory\n",
         Status::machine, "-m"},
        {"EAL: Error creating '/var/run/dpdk': Permission denied\nEAL: FATAL: Invalid 'command line' arguments.\n",
         Status::machine, "run as root"},
        {"EAL: FATAL: Invalid 'command line' arguments.\n", Status::usage, "refuses an argument"},
        {"EAL: something new\n", Status::machine, "see its messages above"},
    };
    for (const Case& c : cases) {
        INFO(c.log);
        const base::Error error = app::explain_eal_failure({{}, {}, {"-l", "0"}}, c.log, "unknown");
        INFO(error.what());
        CHECK(error.status() == c.status);
        CHECK(std::string(error.what()).find(c.advice) != std::string::npos);
    }
}

TEST_CASE("eal: an argument of the file is the configuration's fault, and named", "[app]") {
    const char* const log = "EAL: invalid parameters for --iova-mode\nEAL: FATAL: Invalid 'command line' arguments.\n";
    const base::Error error = app::explain_eal_failure({{"--iova-mode", "x"}, {}, {}}, log, "unknown");
    CHECK(error.status() == base::ExitStatus::configuration);
    CHECK(std::string(error.what()).find("`eal: --iova-mode x`") != std::string::npos);
}
