#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What CPUs a machine has, as plain numbers: this machine through hwloc, or any other from the XML that `lstopo`
// writes. Control plane only, before the start.
#include <optional>
#include <string>
#include <vector>

namespace cachewire::topology {

struct Cpu {
    unsigned os = 0;    // Linux's number
    unsigned core = 0;  // physical core, counted over the whole machine
    unsigned package = 0;
    unsigned node = 0;    // NUMA node, Linux's number
    int efficiency = 0;   // hybrid machines: higher is faster
    bool allowed = true;  // by cgroup and cpuset
};

struct Topology {
    std::vector<Cpu> cpus;  // those that are online, by `os`
    std::string source;     // "this machine", or the file

    [[nodiscard]] const Cpu* find(unsigned os) const noexcept;
};

// Throws base::Error (configuration for a file, machine for this one).
Topology read_machine();
Topology read_xml(const std::string& path);

// The NUMA node of a PCI device by its address, as the XML tells it; nullopt: not in it, or no node in particular.
std::optional<unsigned> pci_node_xml(const std::string& path, const std::string& address);
// The same of this machine, from sysfs.
std::optional<unsigned> pci_node(const std::string& address);

}  // namespace cachewire::topology
