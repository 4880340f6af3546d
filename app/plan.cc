// SPDX-License-Identifier: BSD-3-Clause
#include "app/plan.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <rte_lcore.h>

#include "app/sizing.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "config/load.h"
#include "config/units.h"
#include "control/policers.h"
#include "port/port.h"
#include "topology/placement.h"

namespace cachewire::app {

namespace {

using topology::Cpu;
using topology::Topology;
using Json = nlohmann::ordered_json;

std::vector<topology::PortPlace> port_places(const config::Config& config, const std::string& xml) {
    std::vector<topology::PortPlace> places;
    for (const config::Port& port : config.ports) {
        std::string why;
        const auto device = port::parse_device(port.device, why);
        topology::PortPlace place{port.name, std::nullopt};
        for (const config::Scheduler& scheduler : config.schedulers)
            if (config.ports[scheduler.port].name == port.name) place.scheduled = true;
        if (device && device->kind == port::DeviceKind::pci)
            place.node = xml.empty() ? topology::pci_node(device->name) : topology::pci_node_xml(xml, device->name);
        places.push_back(place);
    }
    return places;
}

// "0-3,8"
std::string ranges(const std::set<unsigned>& numbers) {
    std::string text;
    for (auto it = numbers.begin(); it != numbers.end();) {
        const unsigned first = *it;
        unsigned last = first;
        for (++it; it != numbers.end() && *it == last + 1; ++it) last = *it;
        text += (text.empty() ? "" : ",") + (first == last ? std::to_string(first) : fmt::format("{}-{}", first, last));
    }
    return text;
}

std::string eal_lcores_of(const topology::Plan& plan) {
    std::string text = fmt::format("{}@{}", plan.main_id, plan.main);
    for (std::size_t w = 0; w < plan.workers.size(); ++w)
        text += fmt::format(",{}@{}", plan.worker_ids[w], plan.workers[w]);
    if (plan.scheduler) text += fmt::format(",{}@{}", plan.scheduler_id, *plan.scheduler);
    return text;
}

// EAL's own choice is the lowest number.
bool is_main_by_itself(const topology::Plan& plan) {
    return std::all_of(plan.worker_ids.begin(), plan.worker_ids.end(), [&](unsigned id) { return plan.main_id < id; });
}

// A line a node: each core in brackets, its CPUs in it, what runs there behind the CPU.
std::string picture(const Topology& machine, const std::vector<topology::PortPlace>& ports,
                    const topology::Plan& plan) {
    std::map<unsigned, std::string> runs;
    for (std::size_t w = 0; w < plan.workers.size(); ++w) {
        std::string& text = runs[plan.workers[w]];
        text += (text.empty() ? "=w" : "+w") + std::to_string(plan.worker_ids[w]);
    }
    if (plan.scheduler) runs[*plan.scheduler] += runs[*plan.scheduler].empty() ? "=scheduler" : "+scheduler";
    runs[plan.main] += runs[plan.main].empty() ? "=main" : "+main";
    std::map<unsigned, std::map<unsigned, std::string>> nodes;
    for (const Cpu& cpu : machine.cpus) {
        std::string& core = nodes[cpu.node][cpu.core];
        core += (core.empty() ? "" : " ") + std::to_string(cpu.os) + (cpu.allowed ? "" : "x") + runs[cpu.os];
    }
    std::string text;
    for (const auto& [node, cores] : nodes) {
        text += fmt::format("node {}:", node);
        for (const auto& [core, cpus] : cores) text += " [" + cpus + "]";
        for (const auto& port : ports)
            if (port.node == node) text += "  port " + port.name;
        text += "\n";
    }
    return text;
}

// "the scheduler of wan": whom the lcore behind the workers' is for. Empty without.
std::string scheduler_text(const std::vector<topology::PortPlace>& ports, const topology::Plan& plan) {
    if (!plan.scheduler) return "";
    std::string names;
    for (const auto& port : ports)
        if (port.scheduled) names += (names.empty() ? "" : ", ") + port.name;
    return fmt::format("lcore {}: the scheduler of {}\n", plan.scheduler_id, names);
}

Json to_json(const Topology& machine, const topology::Plan& plan) {
    const auto lcore = [&](unsigned id, unsigned os) {
        const Cpu* cpu = machine.find(os);
        return Json{{"lcore", id}, {"cpu", cpu->os}, {"core", cpu->core}, {"node", cpu->node}};
    };
    Json workers = Json::array();
    for (std::size_t w = 0; w < plan.workers.size(); ++w) workers.push_back(lcore(plan.worker_ids[w], plan.workers[w]));
    Json answer = {
        {"topology", machine.source}, {"main", {{"lcore", plan.main_id}, {"cpu", plan.main}}}, {"workers", workers}};
    if (plan.scheduler) answer["scheduler"] = lcore(plan.scheduler_id, *plan.scheduler);
    answer["eal"] = {"--lcores", eal_lcores_of(plan)};
    if (!is_main_by_itself(plan))
        for (const std::string& word : {std::string("--main-lcore"), std::to_string(plan.main_id)})
            answer["eal"].push_back(word);
    answer["costs"] = plan.costs;
    return answer;
}

Job job_of(const config::Config& config, const PlanArguments& arguments) {
    std::string why;
    const auto rate = config::parse_rate(arguments.rate, why);
    if (!rate) throw base::Error(base::ExitStatus::usage, fmt::format("--rate {}", why));
    Job job;
    if (rate->kind == config::RateKind::packets) {
        job.packets_per_second = static_cast<double>(rate->per_second);
    } else if (arguments.packet_bytes == 0) {
        throw base::Error(base::ExitStatus::usage,
                          "--rate in bits a second needs --packet, the frames' mean length in bytes");
    } else {
        job.packets_per_second = packets_at(static_cast<double>(rate->per_second), arguments.packet_bytes);
    }
    job.sessions = config.sessions.capacity;
    job.session_buckets = static_cast<unsigned>(std::popcount(control::session_policer_places(config)));
    for (const auto& list : config.acls) job.rules += list.rules.size();
    job.routes = config.routes.size();
    for (const auto& file : config.route_files) job.routes += file.routes->size();
    job.cycles_per_packet = arguments.cycles;
    if (arguments.clock_ghz != 0) job.clock_hz = arguments.clock_ghz * 1e9;
    return job;
}

}  // namespace

int run_plan(const PlanArguments& arguments) {
    const config::LoadResult loaded = config::load_file(arguments.file);
    for (const auto& diagnostic : loaded.diagnostics) fmt::print(stderr, "{}\n", config::to_string(diagnostic));
    if (!loaded.config) return static_cast<int>(base::ExitStatus::configuration);
    const config::Config& config = *loaded.config;
    const Topology machine =
        arguments.topology.empty() ? topology::read_machine() : topology::read_xml(arguments.topology);
    const auto ports = port_places(config, arguments.topology);
    const topology::Plan plan =
        topology::place(machine, ports, static_cast<unsigned>(config.workers.lcores.size()), config.workers.lcores);
    if (plan.workers.empty()) throw base::MachineError(plan.costs.at(0));
    std::optional<Job> job;
    if (!arguments.rate.empty()) job = job_of(config, arguments);
    if (arguments.json) {
        Json answer = to_json(machine, plan);
        if (job) answer["sizing"] = to_json(*job, size_up(*job));
        fmt::print("{}\n", answer.dump(2));
    } else {
        std::set<unsigned> cores, online;
        for (const Cpu& cpu : machine.cpus) {
            cores.insert(cpu.core);
            online.insert(cpu.os);
        }
        fmt::print("{}: CPUs {}, {} cores\n{}EAL: --lcores '{}'{}\n{}", machine.source, ranges(online), cores.size(),
                   picture(machine, ports, plan), eal_lcores_of(plan),
                   is_main_by_itself(plan) ? "" : fmt::format(" --main-lcore {}", plan.main_id),
                   scheduler_text(ports, plan));
        for (const std::string& cost : plan.costs) fmt::print("costs: {}\n", cost);
        if (job) fmt::print("{}", to_text(*job, size_up(*job)));
    }
    const bool refused = config.workers.placement == config::Placement::strict && !plan.costs.empty();
    return static_cast<int>(refused ? base::ExitStatus::configuration : base::ExitStatus::ok);
}

void judge_placement(const config::Config& config, unsigned main, const std::vector<unsigned>& workers,
                     std::optional<unsigned> scheduler) {
    if (config.workers.placement == config::Placement::ignore) return;
    const auto lcore_of = [](unsigned id, bool is_main) {
        topology::Lcore lcore{id, {}, is_main, false};
        const rte_cpuset_t set = rte_lcore_cpuset(id);
        for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu)
            if (CPU_ISSET(cpu, &set)) lcore.cpus.push_back(cpu);
        return lcore;
    };
    std::vector<topology::Lcore> lcores = {lcore_of(main, true)};
    for (const unsigned id : workers) lcores.push_back(lcore_of(id, false));
    if (scheduler) {
        lcores.push_back(lcore_of(*scheduler, false));
        lcores.back().scheduler = true;
    }
    const auto costs = topology::costs_of(topology::read_machine(), port_places(config, ""), lcores);
    for (const std::string& cost : costs) {
        if (config.workers.placement == config::Placement::strict)
            throw base::Error(base::ExitStatus::configuration,
                              fmt::format("workers.placement: strict, but {}; `cachewire plan {}` shows what there is",
                                          cost, config.path));
        base::log_warning("placement: {}", cost);
    }
}

}  // namespace cachewire::app
