// SPDX-License-Identifier: BSD-3-Clause
#include "app/run.h"

#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_pdump.h>
#include <unistd.h>

#include "app/eal.h"
#include "app/eal_arguments.h"
#include "app/lcores.h"
#include "app/plan.h"
#include "app/prompt.h"
#include "app/stats_table.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/log.h"
#include "config/load.h"
#include "control/runtime.h"
#include "control/signals.h"

namespace cachewire::app {

namespace {

// Every diagnostic, a warning too, goes to stderr. nullopt: the file has errors.
std::optional<config::Config> load(const std::string& path) {
    config::LoadResult loaded = config::load_file(path);
    for (const auto& diagnostic : loaded.diagnostics) fmt::print(stderr, "{}\n", config::to_string(diagnostic));
    return std::move(loaded.config);
}

std::vector<port::Device> devices_of(const config::Config& config) {
    std::vector<port::Device> devices;
    for (std::size_t i = 0; i < config.ports.size(); ++i) {
        std::string why;
        auto device = port::parse_device(config.ports[i].device, why);
        if (!device)
            throw base::Error(base::ExitStatus::configuration,
                              fmt::format("{}: error: ports[{}].device: {}", config.path, i, why));
        devices.push_back(std::move(*device));
    }
    return devices;
}

// dpdk-dumpcap attaches through this. It needs shared memory, and a run without it goes on.
class Pdump {
  public:
    explicit Pdump(const std::string& unshared) {
        if (!unshared.empty()) {
            base::log_info(
                "memory is not shared ({}): secondary processes such as dpdk-proc-info and dpdk-dumpcap can't "
                "attach; telemetry and cwctl work",
                unshared);
            return;
        }
        ready_ = rte_pdump_init() == 0;
        if (!ready_) base::log_warning("rte_pdump_init: {}: dpdk-dumpcap can't capture", rte_strerror(rte_errno));
    }
    ~Pdump() {
        if (ready_) rte_pdump_uninit();
    }
    Pdump(const Pdump&) = delete;
    Pdump& operator=(const Pdump&) = delete;

  private:
    bool ready_ = false;
};

void print(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

std::string file_prefix() { return std::filesystem::path(rte_eal_get_runtime_dir()).filename(); }

double seconds() { return static_cast<double>(base::now_tsc()) / static_cast<double>(base::tsc_hz()); }

void forward(const RunArguments& arguments, const config::Config& config) {
    const Lcores lcores = eal_lcores();
    const Jobs jobs = share_out(lcores, config.workers.lcores, !config.schedulers.empty());
    judge_placement(config, lcores.main, jobs.workers, jobs.scheduler);
    control::Runtime runtime(config, jobs.workers, jobs.scheduler);
    control::RunOptions options;
    options.stats_period_s = arguments.stats_period_s;
    options.duration_s = arguments.duration_s;
    options.idle_s = arguments.idle_s;
    StatsTable table;
    const char* const before = isatty(STDOUT_FILENO) != 0 ? "\x1b[H\x1b[2J" : "\n";
    if (arguments.stats_period_s != 0) options.on_stats = [&] { print(before + table.next(seconds())); };
    base::log_info("running: {} ports, {}", config.ports.size(), config.path);
    std::optional<Prompt> prompt;
    if (arguments.interactive) prompt.emplace(file_prefix(), [&runtime] { runtime.request_stop(); });
    runtime.run(options);
    prompt.reset();
    if (arguments.stats_period_s == 0) print(runtime.ledger_text() + "\n");
}

}  // namespace

int run(const RunArguments& arguments) {
    // Before EAL starts threads, which inherit it; and first, so that a signal never kills what could end well.
    control::Signals::block();
    base::keep_freed_memory();
    const auto config = load(arguments.config);
    if (!config) return static_cast<int>(base::ExitStatus::configuration);
    const EalSources sources{config->eal, devices_of(*config), arguments.eal};
    const auto eal_line = merge_eal_arguments(sources);
    log_to_stderr();
    base::log_info("EAL arguments: {}", to_shell(eal_line));
    const Eal eal(eal_line, sources);
    const Pdump pdump(unshared_by(eal_line));
    forward(arguments, *config);
    return static_cast<int>(base::ExitStatus::ok);
}

}  // namespace cachewire::app
