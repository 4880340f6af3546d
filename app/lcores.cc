// SPDX-License-Identifier: BSD-3-Clause
#include "app/lcores.h"

#include <algorithm>

#include <fmt/format.h>
#include <rte_lcore.h>

#include "base/error.h"
#include "pipeline/owner.h"

namespace cachewire::app {

namespace {

[[noreturn]] void fail(const std::string& text) {
    throw base::Error(base::ExitStatus::configuration, "workers.lcores: " + text);
}

std::string list(const std::vector<unsigned>& lcores) {
    std::string text;
    for (const unsigned lcore : lcores) text += (text.empty() ? "" : ", ") + std::to_string(lcore);
    return text;
}

}  // namespace

Lcores eal_lcores() {
    Lcores lcores{rte_get_main_lcore(), {}};
    unsigned lcore;
    RTE_LCORE_FOREACH_WORKER(lcore) lcores.others.push_back(lcore);
    return lcores;
}

std::vector<unsigned> choose_workers(const Lcores& lcores, const std::vector<unsigned>& configured) {
    if (lcores.others.empty())
        fail(
            "EAL has one lcore, and a worker needs one beside the main one: start with `-l 0,1`, or on a machine with "
            "one "
            "CPU with `--lcores '0@0,1@0'`");
    const std::vector<unsigned>& workers = configured.empty() ? lcores.others : configured;
    for (const unsigned lcore : workers) {
        if (lcore == lcores.main)
            fail(
                fmt::format("lcore {} is EAL's main one, which never forwards: choose among {}, or move it with "
                            "`--main-lcore`",
                            lcore, list(lcores.others)));
        if (std::find(lcores.others.begin(), lcores.others.end(), lcore) == lcores.others.end())
            fail(fmt::format("lcore {} is not one of EAL's: start with `-l {},{}`", lcore, lcores.main, lcore));
    }
    if (workers.size() > pipeline::kMaxWorkers)
        fail(fmt::format("{} workers are more than {}: choose fewer", workers.size(), pipeline::kMaxWorkers));
    return workers;
}

}  // namespace cachewire::app
