// SPDX-License-Identifier: BSD-3-Clause
// Decisions for machines that aren't here: hwloc makes them of a line, writes them as XML, and that is read.
#include "topology/placement.h"

#include <cstdio>
#include <set>

#include <hwloc.h>
#include <unistd.h>

#include "base/error.h"
#include "support/catch.h"

using namespace cachewire;
using topology::place;
using topology::Topology;
using Cpus = std::vector<unsigned>;

namespace {

// `forbidden`: CPUs that a cgroup keeps from us; `offline`: that aren't there at all.
Topology synthetic(const char* description, const Cpus& offline = {}, const Cpus& forbidden = {}) {
    hwloc_topology_t machine;
    REQUIRE(hwloc_topology_init(&machine) == 0);
    REQUIRE(hwloc_topology_set_synthetic(machine, description) == 0);
    REQUIRE(hwloc_topology_load(machine) == 0);
    if (!offline.empty()) {
        hwloc_bitmap_t set = hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(machine));
        for (const unsigned cpu : offline) hwloc_bitmap_clr(set, cpu);
        REQUIRE(hwloc_topology_restrict(machine, set, 0) == 0);
        hwloc_bitmap_free(set);
    }
    const std::string path = "/tmp/cachewire-topology-" + std::to_string(getpid()) + ".xml";
    REQUIRE(hwloc_topology_export_xml(machine, path.c_str(), 0) == 0);
    hwloc_topology_destroy(machine);
    Topology result = topology::read_xml(path);
    std::remove(path.c_str());
    for (auto& cpu : result.cpus)
        for (const unsigned os : forbidden)
            if (cpu.os == os) cpu.allowed = false;
    return result;
}

std::set<unsigned> cores_of(const Topology& machine, const Cpus& cpus) {
    std::set<unsigned> cores;
    for (const unsigned cpu : cpus) cores.insert(machine.find(cpu)->core);
    return cores;
}

}  // namespace

TEST_CASE("placement: one socket without SMT, the main lcore apart", "[topology]") {
    const Topology machine = synthetic("node:1 core:4 pu:1");
    const auto plan = place(machine, {}, 0);
    CHECK(plan.main == 0);
    CHECK(plan.workers == Cpus{1, 2, 3});
    CHECK(plan.costs.empty());
}

TEST_CASE("placement: whole cores, no sibling of a worker or of the main lcore", "[topology]") {
    // Two sockets of eight cores, two threads each: CPUs 2n and 2n+1 are siblings.
    const Topology machine = synthetic("package:2 node:1 core:8 pu:2");
    const auto plan = place(machine, {{"wan", 0u}, {"lan", 0u}}, 0);
    CHECK(plan.main == 0);
    CHECK(plan.workers == Cpus{2, 4, 6, 8, 10, 12, 14});
    CHECK(plan.costs.empty());
}

TEST_CASE("placement: workers stand on the node of the ports", "[topology]") {
    const Topology machine = synthetic("package:2 node:1 core:8 pu:2");
    const auto plan = place(machine, {{"wan", 1u}}, 4);
    CHECK(plan.workers == Cpus{16, 18, 20, 22});
    CHECK(plan.main == 0);
    CHECK(plan.costs.empty());
    // Several nodes in a socket (SNC).
    const Topology snc = synthetic("package:2 node:2 core:4 pu:2");
    for (const unsigned cpu : place(snc, {{"wan", 3u}}, 3).workers) CHECK(snc.find(cpu)->node == 3);
}

TEST_CASE("placement: ports on two nodes, so nodes take turns and each crossing is said", "[topology]") {
    const Topology machine = synthetic("package:2 node:1 core:8 pu:2");
    const auto plan = place(machine, {{"wan", 0u}, {"lan", 1u}}, 4);
    unsigned on_first = 0;
    for (const unsigned cpu : plan.workers) on_first += machine.find(cpu)->node == 0;
    CHECK(on_first == 2);
    CHECK(plan.costs.size() == 4);
}

TEST_CASE("placement: more workers than cores take siblings, then share, and it says so", "[topology]") {
    const Topology machine = synthetic("node:1 core:2 pu:2");
    auto plan = place(machine, {}, 1);
    CHECK(plan.workers == Cpus{2});
    CHECK(plan.costs.empty());
    plan = place(machine, {}, 3);
    CHECK(std::set<unsigned>(plan.workers.begin(), plan.workers.end()) == std::set<unsigned>{1, 2, 3});
    CHECK(plan.costs.size() == 2);
    CHECK(plan.costs[0].find("share a physical core") != std::string::npos);
    plan = place(machine, {}, 5);
    CHECK(plan.workers.size() == 5);
    bool shares = false;
    for (const auto& cost : plan.costs) shares |= cost.find("share CPU") != std::string::npos;
    CHECK(shares);
}

TEST_CASE("placement: a virtual machine with one CPU still gets a plan", "[topology]") {
    const auto plan = place(synthetic("pu:1"), {}, 0);
    CHECK(plan.main == 0);
    CHECK(plan.workers == Cpus{0});
    REQUIRE(plan.costs.size() == 1);
    CHECK(plan.costs[0].find("share CPU 0") != std::string::npos);
}

TEST_CASE("placement: CPUs that are offline or forbidden are not used", "[topology]") {
    const Topology offline = synthetic("node:1 core:8 pu:1", {0, 1, 4});
    const auto plan = place(offline, {}, 0);
    CHECK(plan.main == 2);
    CHECK(plan.workers == Cpus{3, 5, 6, 7});
    const Topology caged = synthetic("node:1 core:8 pu:1", {}, {0, 1, 2, 6, 7});
    const auto inside = place(caged, {}, 0);
    CHECK(inside.main == 3);
    CHECK(inside.workers == Cpus{4, 5});
    CHECK(inside.costs.empty());
}

TEST_CASE("placement: slow cores carry the main lcore, fast ones the workers", "[topology]") {
    Topology hybrid = synthetic("node:1 core:8 pu:1");
    for (auto& cpu : hybrid.cpus) cpu.efficiency = cpu.os < 4 ? 1 : 0;
    const auto plan = place(hybrid, {}, 4);
    CHECK(plan.main == 4);
    CHECK(plan.workers == Cpus{0, 1, 2, 3});
    CHECK(plan.costs.empty());
}

TEST_CASE("placement: a scheduled port's lcore has a core of its own, on that port's node, and takes a worker's place",
          "[topology]") {
    const auto port = [](const char* name, std::optional<unsigned> node, bool scheduled) {
        return topology::PortPlace{name, node, scheduled};
    };
    const Topology small = synthetic("node:1 core:4 pu:1");
    auto plan = place(small, {port("wan", {}, true), port("lan", {}, false)}, 0);
    CHECK(plan.workers == Cpus{1, 2});
    CHECK(plan.scheduler == 3u);
    CHECK(plan.costs.empty());
    CHECK_FALSE(place(small, {port("wan", {}, false)}, 0).scheduler);
    // As many workers as were asked for, and it comes on top.
    plan = place(small, {port("wan", {}, true), port("lan", {}, true)}, 2);
    CHECK(plan.workers == Cpus{1, 2});
    CHECK(plan.scheduler == 3u);
    // Nodes take turns; it stands where its port does, and crosses to no other.
    const Topology two = synthetic("package:2 node:1 core:4 pu:1");
    for (const unsigned node : {0u, 1u}) {
        plan = place(two, {port("wan", node, true), port("lan", 1 - node, false)}, 3);
        REQUIRE(plan.scheduler);
        CHECK(two.find(*plan.scheduler)->node == node);
        CHECK(plan.workers.size() == 3);
        CHECK(plan.costs.size() == 3);  // each worker's, to the port on the other node
        for (const auto& cost : plan.costs) CHECK(cost.find("scheduler") == std::string::npos);
    }
    // No CPU for everybody: it says who shares.
    plan = place(synthetic("node:1 core:2 pu:1"), {port("wan", {}, true)}, 0);
    CHECK(plan.scheduler == 1u);
    CHECK(plan.workers == Cpus{0});
    REQUIRE(plan.costs.size() == 1);
    CHECK(plan.costs[0].find("main lcore 0 and lcore 1 share CPU 0") != std::string::npos);
    plan = place(synthetic("pu:1"), {port("wan", {}, true)}, 0);
    CHECK(plan.scheduler == 0u);
    REQUIRE(plan.costs.size() == 1);
    CHECK(plan.costs[0].find("the scheduler's lcore 2") != std::string::npos);
}

TEST_CASE("placement: lcores have the numbers that the file gives them, others what is left", "[topology]") {
    const Topology machine = synthetic("node:1 core:6 pu:1");
    auto plan = place(machine, {{"wan", {}, true}}, 2, {3, 5});
    CHECK(plan.main_id == 0);
    CHECK(plan.worker_ids == Cpus{3, 5});
    CHECK(plan.scheduler_id == 1);
    CHECK(plan.workers == Cpus{1, 2});
    plan = place(machine, {{"wan", {}, true}}, 3, {0, 1, 3});
    CHECK(plan.main_id == 2);
    CHECK(plan.scheduler_id == 4);
    plan = place(machine, {{"wan", {}, true}}, 0);
    CHECK(plan.main_id == 0);
    CHECK(plan.worker_ids == Cpus{1, 2, 3, 4});
    CHECK(plan.scheduler_id == 5);
    const auto costs = place(synthetic("pu:1"), {}, 1, {7}).costs;
    REQUIRE(costs.size() == 1);
    CHECK(costs[0].find("main lcore 0 and lcore 7 share CPU 0") != std::string::npos);
}

TEST_CASE("placement: whatever the machine, no core twice while there are cores left", "[topology]") {
    for (const char* description : {"package:2 node:1 core:32 pu:2", "package:1 node:4 core:8 pu:2",
                                    "package:2 node:2 core:6 pu:1", "node:1 core:64 pu:4"}) {
        const Topology machine = synthetic(description);
        for (const unsigned workers : {1u, 2u, 3u, 7u}) {
            INFO(description << ", " << workers << " workers");
            const auto plan = place(machine, {}, workers);
            Cpus all = plan.workers;
            all.push_back(plan.main);
            CHECK(cores_of(machine, all).size() == workers + 1);
        }
    }
}

TEST_CASE("placement: what an arrangement costs is named by lcore", "[topology]") {
    const Topology machine = synthetic("package:2 node:1 core:2 pu:2");
    const auto costs =
        topology::costs_of(machine, {{"wan", 0u}},
                           {{0, {0}, true}, {1, {1}, false}, {2, {4}, false}, {3, {2, 3}, false}, {4, {99}, false}});
    REQUIRE(costs.size() == 4);
    CHECK(costs[0] == "lcore 2 is on NUMA node 1, port wan on node 0: each packet's lines cross between them");
    CHECK(costs[1] == "lcore 3 may run on CPUs 2, 3: the kernel moves it, and its caches grow cold");
    CHECK(costs[2] == "lcore 4 is on CPU 99, which is offline or not there");
    CHECK(costs[3] == "main lcore 0 and lcore 1 share a physical core (SMT): each has about half of it");
}

TEST_CASE("placement: a file that is no topology is refused by name", "[topology]") {
    try {
        topology::read_xml("/dev/null");
        FAIL("no error");
    } catch (const base::Error& error) {
        CHECK(error.status() == base::ExitStatus::configuration);
        CHECK(std::string(error.what()).find("/dev/null") == 0);
    }
}
