// SPDX-License-Identifier: BSD-3-Clause
#include "topology/topology.h"

#include <algorithm>
#include <fstream>
#include <memory>

#include <fmt/format.h>
#include <hwloc.h>

#include "base/error.h"

namespace cachewire::topology {

namespace {

struct Destroy {
    void operator()(hwloc_topology_t topology) const noexcept { hwloc_topology_destroy(topology); }
};
using Handle = std::unique_ptr<hwloc_topology, Destroy>;

Handle load(const std::string* path) {
    hwloc_topology_t raw = nullptr;
    if (hwloc_topology_init(&raw) != 0) throw base::MachineError("hwloc does not start");
    Handle topology(raw);
    // CPUs that a cgroup forbids stay in, and are told apart: their siblings matter.
    hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    if (path != nullptr) hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (path != nullptr && hwloc_topology_set_xml(raw, path->c_str()) != 0)
        throw base::Error(base::ExitStatus::configuration,
                          fmt::format("{}: is no topology that hwloc reads; `lstopo {}` writes one", *path, *path));
    if (hwloc_topology_load(raw) != 0) throw base::MachineError("hwloc can't read the machine's topology");
    return topology;
}

// Objects of a type that a machine (or its virtual disguise) doesn't have count as one.
unsigned above(hwloc_topology_t topology, hwloc_obj_t pu, hwloc_obj_type_t type, unsigned otherwise) {
    const hwloc_obj_t object = hwloc_get_ancestor_obj_by_type(topology, type, pu);
    return object == nullptr ? otherwise : object->logical_index;
}

int efficiency_of(hwloc_topology_t topology, hwloc_obj_t pu) {
    const int kind = hwloc_cpukinds_get_by_cpuset(topology, pu->cpuset, 0);
    int efficiency = -1;
    if (kind < 0 ||
        hwloc_cpukinds_get_info(topology, static_cast<unsigned>(kind), nullptr, &efficiency, nullptr, nullptr, 0) != 0)
        return 0;
    return std::max(efficiency, 0);
}

Topology read(const std::string* path) {
    const Handle handle = load(path);
    hwloc_topology_t topology = handle.get();
    const hwloc_const_cpuset_t allowed = hwloc_topology_get_allowed_cpuset(topology);
    Topology result;
    result.source = path == nullptr ? "this machine" : *path;
    for (hwloc_obj_t pu = nullptr; (pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu)) != nullptr;) {
        Cpu cpu;
        cpu.os = pu->os_index;
        cpu.core = above(topology, pu, HWLOC_OBJ_CORE, pu->logical_index);
        cpu.package = above(topology, pu, HWLOC_OBJ_PACKAGE, 0);
        const int node = pu->nodeset == nullptr ? -1 : hwloc_bitmap_first(pu->nodeset);
        cpu.node = node < 0 ? 0 : static_cast<unsigned>(node);
        cpu.efficiency = efficiency_of(topology, pu);
        cpu.allowed = hwloc_bitmap_isset(allowed, pu->os_index) != 0;
        result.cpus.push_back(cpu);
    }
    std::sort(result.cpus.begin(), result.cpus.end(), [](const Cpu& a, const Cpu& b) { return a.os < b.os; });
    if (result.cpus.empty()) throw base::MachineError(result.source + ": has no CPU");
    return result;
}

}  // namespace

const Cpu* Topology::find(unsigned os) const noexcept {
    const auto it = std::find_if(cpus.begin(), cpus.end(), [os](const Cpu& cpu) { return cpu.os == os; });
    return it == cpus.end() ? nullptr : &*it;
}

Topology read_machine() { return read(nullptr); }
Topology read_xml(const std::string& path) { return read(&path); }

std::optional<unsigned> pci_node_xml(const std::string& path, const std::string& address) {
    const Handle handle = load(&path);
    const hwloc_obj_t device = hwloc_get_pcidev_by_busidstring(handle.get(), address.c_str());
    const hwloc_obj_t place = device == nullptr ? nullptr : hwloc_get_non_io_ancestor_obj(handle.get(), device);
    if (place == nullptr || place->nodeset == nullptr || hwloc_bitmap_weight(place->nodeset) != 1) return std::nullopt;
    return static_cast<unsigned>(hwloc_bitmap_first(place->nodeset));
}

std::optional<unsigned> pci_node(const std::string& address) {
    std::ifstream file("/sys/bus/pci/devices/" + address + "/numa_node");
    int node = -1;
    if (!(file >> node) || node < 0) return std::nullopt;
    return static_cast<unsigned>(node);
}

}  // namespace cachewire::topology
