// SPDX-License-Identifier: BSD-3-Clause
#include "topology/placement.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

namespace cachewire::topology {

namespace {

std::set<unsigned> port_nodes(const std::vector<PortPlace>& ports) {
    std::set<unsigned> nodes;
    for (const PortPlace& port : ports)
        if (port.node) nodes.insert(*port.node);
    return nodes;
}

// CPUs that may be used, best first: on a port's node, fast, the first of its core, then by number. With ports on
// several nodes the nodes take turns.
std::vector<const Cpu*> by_merit(const Topology& topology, const std::set<unsigned>& nodes) {
    struct Candidate {
        const Cpu* cpu;
        bool near;
        unsigned of_core;  // how many of its core stand before it
        unsigned turn = 0;
    };
    std::map<unsigned, unsigned> of_core;
    std::vector<Candidate> candidates;
    for (const Cpu& cpu : topology.cpus) {
        if (!cpu.allowed) continue;
        candidates.push_back({&cpu, nodes.empty() || nodes.contains(cpu.node), of_core[cpu.core]++});
    }
    // Without a port's node all stay on the first allowed CPU's.
    if (nodes.empty() && !candidates.empty())
        for (Candidate& candidate : candidates) candidate.near = candidate.cpu->node == candidates.front().cpu->node;
    const auto before = [](const Candidate& a, const Candidate& b) {
        if (a.near != b.near) return a.near;
        if (a.of_core != b.of_core) return a.of_core < b.of_core;
        if (a.cpu->efficiency != b.cpu->efficiency) return a.cpu->efficiency > b.cpu->efficiency;
        if (a.turn != b.turn) return a.turn < b.turn;
        return a.cpu->os < b.cpu->os;
    };
    std::sort(candidates.begin(), candidates.end(), before);
    std::map<std::pair<unsigned, unsigned>, unsigned> turns;
    for (Candidate& candidate : candidates) candidate.turn = turns[{candidate.cpu->node, candidate.of_core}]++;
    std::sort(candidates.begin(), candidates.end(), before);
    std::vector<const Cpu*> result;
    result.reserve(candidates.size());
    for (const Candidate& candidate : candidates) result.push_back(candidate.cpu);
    return result;
}

std::string join(const std::vector<unsigned>& numbers) {
    std::string text;
    for (const unsigned n : numbers) text += (text.empty() ? "" : ", ") + std::to_string(n);
    return text;
}

std::string name_of(const Lcore& lcore) {
    return fmt::format("{}lcore {}", lcore.main ? "main " : lcore.scheduler ? "the scheduler's " : "", lcore.id);
}

// Takes the scheduler's CPU out of `all`, best first and `workers` of them wanted: the last that the workers can spare
// on a scheduled port's node, so that the best ones stay the workers'.
std::optional<unsigned> take_scheduler(std::vector<const Cpu*>& all, const std::vector<PortPlace>& ports,
                                       unsigned workers) {
    if (all.empty()) return std::nullopt;
    std::set<unsigned> nodes;
    for (const PortPlace& port : ports)
        if (port.scheduled && port.node) nodes.insert(*port.node);
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(all.size(), workers + 1));
    auto chosen = end - 1;
    for (auto cpu = all.begin(); cpu != end; ++cpu)
        if (nodes.contains((*cpu)->node)) chosen = cpu;
    const unsigned os = (*chosen)->os;
    all.erase(chosen);
    return os;
}

void number_lcores(Plan& plan, const std::vector<unsigned>& ids) {
    plan.worker_ids = ids;
    for (unsigned id = 1; plan.worker_ids.size() < plan.workers.size(); ++id) plan.worker_ids.push_back(id);
    std::set<unsigned> taken(plan.worker_ids.begin(), plan.worker_ids.end());
    const auto lowest = [&taken] {
        unsigned id = 0;
        while (!taken.insert(id).second) ++id;
        return id;
    };
    plan.main_id = lowest();
    if (plan.scheduler) plan.scheduler_id = lowest();
}

}  // namespace

Plan place(const Topology& topology, const std::vector<PortPlace>& ports, unsigned workers,
           const std::vector<unsigned>& ids) {
    const std::set<unsigned> nodes = port_nodes(ports);
    const std::vector<const Cpu*> order = by_merit(topology, nodes);
    Plan plan;
    if (order.empty()) {
        plan.costs.push_back(topology.source + ": no CPU is allowed");
        return plan;
    }
    // The main lcore takes the machine's first allowed CPU: there the kernel's own work is, and on hybrid machines it
    // need not be a fast one.
    const Cpu* const main = *std::min_element(order.begin(), order.end(), [](const Cpu* a, const Cpu* b) {
        return a->efficiency != b->efficiency ? a->efficiency < b->efficiency : a->os < b->os;
    });
    plan.main = main->os;
    std::vector<const Cpu*> whole, rest;
    std::set<unsigned> cores{main->core};
    for (const Cpu* cpu : order) (cores.insert(cpu->core).second ? whole : rest).push_back(cpu);
    const bool anywhere = nodes.empty();
    const unsigned home = order.front()->node;
    const auto near = [&](const Cpu* cpu) { return anywhere ? cpu->node == home : nodes.contains(cpu->node); };
    const bool schedules = std::any_of(ports.begin(), ports.end(), [](const PortPlace& p) { return p.scheduled; });
    if (workers == 0) {
        const auto cores_near = static_cast<unsigned>(std::count_if(whole.begin(), whole.end(), near));
        workers = std::max(1u, cores_near - (schedules && cores_near != 0 ? 1 : 0));
    }
    std::vector<const Cpu*> all = whole;
    std::erase(rest, main);
    all.insert(all.end(), rest.begin(), rest.end());
    if (schedules) plan.scheduler = take_scheduler(all, ports, workers).value_or(main->os);
    for (unsigned w = 0; w < workers; ++w) plan.workers.push_back(all.empty() ? main->os : all[w % all.size()]->os);
    number_lcores(plan, ids);
    std::vector<Lcore> lcores = {{plan.main_id, {plan.main}, true}};
    for (unsigned w = 0; w < workers; ++w) lcores.push_back({plan.worker_ids[w], {plan.workers[w]}, false});
    if (plan.scheduler) lcores.push_back({plan.scheduler_id, {*plan.scheduler}, false, true});
    plan.costs = costs_of(topology, ports, lcores);
    return plan;
}

std::vector<std::string> costs_of(const Topology& topology, const std::vector<PortPlace>& ports,
                                  const std::vector<Lcore>& lcores) {
    std::vector<std::string> costs;
    std::map<unsigned, std::vector<const Lcore*>> on_cpu, on_core;
    std::map<unsigned, std::set<unsigned>> nodes_of_workers;
    for (const Lcore& lcore : lcores) {
        if (lcore.cpus.size() > 1 && !lcore.main)
            costs.push_back(fmt::format("{} may run on CPUs {}: the kernel moves it, and its caches grow cold",
                                        name_of(lcore), join(lcore.cpus)));
        if (lcore.cpus.size() != 1) continue;
        const Cpu* cpu = topology.find(lcore.cpus[0]);
        if (cpu == nullptr) {
            costs.push_back(
                fmt::format("{} is on CPU {}, which is offline or not there", name_of(lcore), lcore.cpus[0]));
            continue;
        }
        if (!cpu->allowed)
            costs.push_back(fmt::format("{} is on CPU {}, which this process may not use", name_of(lcore), cpu->os));
        on_cpu[cpu->os].push_back(&lcore);
        if (on_cpu[cpu->os].size() == 1) on_core[cpu->core].push_back(&lcore);
        if (lcore.main) continue;
        for (const PortPlace& port : ports)
            if (port.node && *port.node != cpu->node && (port.scheduled || !lcore.scheduler))
                costs.push_back(
                    fmt::format("{} is on NUMA node {}, port {} on node {}: each packet's lines cross between them",
                                name_of(lcore), cpu->node, port.name, *port.node));
    }
    const auto ids = [](const std::vector<const Lcore*>& sharers) {
        std::string text;
        for (const Lcore* lcore : sharers) text += (text.empty() ? "" : " and ") + name_of(*lcore);
        return text;
    };
    for (const auto& [cpu, sharers] : on_cpu)
        if (sharers.size() > 1)
            costs.push_back(fmt::format("{} share CPU {} and take turns by the millisecond", ids(sharers), cpu));
    for (const auto& [core, sharers] : on_core)
        if (sharers.size() > 1)
            costs.push_back(fmt::format("{} share a physical core (SMT): each has about half of it", ids(sharers)));
    return costs;
}

}  // namespace cachewire::topology
