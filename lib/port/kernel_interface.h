#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// `device: "kernel:IFNAME"`: a Linux interface through AF_XDP where machine and interface allow it, else through
// AF_PACKET. probe() asks the machine, choose() decides from the answers alone, so every case is tested without one.
// Control thread only.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "port/port.h"

namespace cachewire::port {

// What is known of the interface and of this process.
struct KernelFacts {
    unsigned index = 0;  // 0: no such interface
    bool up = false;
    bool ethernet = true;
    std::string driver;            // "veth", "ixgbe", ...; empty: not told
    unsigned rx_queues = 1;        // active ones
    std::string no_xdp_socket;     // why AF_XDP can't be opened; empty: it can
    std::string no_packet_socket;  // why AF_PACKET can't be opened; empty: it can
    std::string xdp_program;       // that is on it already; empty: none
    std::string xdp_holder;        // another process that receives by it through AF_XDP
    bool xdp_plugin = true;        // the DPDK drivers are installed
    bool packet_plugin = true;
};

struct KernelWish {
    std::string interface;
    std::uint16_t queues = 1;  // pairs
    std::uint16_t mtu = 1500;
    std::uint16_t mbuf_size = 2176;
    bool pool_has_gaps = false;
    bool xdp_failed = false;    // it was tried, and the device did not start
    bool xdp_too_dear = false;  // each opening costs the pool buffers that the driver never gives back
};

enum class KernelDriver { af_xdp, af_packet };

struct KernelChoice {
    KernelDriver driver;
    std::string why;  // fits behind "uses AF_XDP: " or "uses AF_PACKET: "
};

// Letters, digits and "._-@", up to 15: what Linux allows and what device arguments can hold. Empty, or why not.
std::string why_no_interface_name(std::string_view name);

KernelFacts probe_interface(const std::string& name);
// Linux's driver of it, as ethtool names it; empty when it doesn't.
std::string driver_below(const std::string& name);

// nullopt with `error`, a sentence that says what a person can do.
std::optional<KernelChoice> choose_driver(const KernelWish& wish, const KernelFacts& facts, std::string& error);

// Why nobody may open net_af_xdp on the interface: its driver would take somebody else's XDP program off. Empty: none.
std::string why_xdp_is_taken(const std::string& interface, const KernelFacts& facts);

// The virtual device that EAL makes of the choice: "net_af_xdp_IFNAME" with its arguments.
Device kernel_device(const KernelWish& wish, KernelDriver driver);

// Of `iface=` in the arguments of net_af_packet and net_af_xdp, and of kernel devices; empty for others: their
// interface is theirs alone.
std::string interface_below(const Device& device);

// AF_PACKET copies frames through a ring of slots: the size of one for this MTU, a divisor or a multiple of a page.
unsigned packet_slot_bytes(std::uint16_t mtu) noexcept;

std::optional<InterfaceState> read_interface(const std::string& interface) noexcept;
// Changes only what differs. A name that is gone, or an interface that refuses, is left alone.
void restore_interface(const std::string& interface, const InterfaceState& to) noexcept;

// Sets IFF_UP. False, and errno, when that is not allowed.
bool bring_up(const std::string& interface) noexcept;
bool take_down(const std::string& interface) noexcept;
bool set_interface_mtu(const std::string& interface, std::uint16_t mtu) noexcept;

}  // namespace cachewire::port
