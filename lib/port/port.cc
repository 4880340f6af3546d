// SPDX-License-Identifier: BSD-3-Clause
#include "port/port.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>

#include <fmt/format.h>
#include <net/if.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "base/error.h"
#include "base/log.h"
#include "port/claim.h"
#include "port/device_setup.h"
#include "port/kernel_interface.h"
#include "port/kernel_side.h"
#include "port/removal.h"
#include "port/tap_signals.h"
#include "port/xdp_buffers.h"
#include "port/xdp_program.h"

namespace cachewire::port {

namespace {

// net_ring has no address of its own. The same one after each restart, so that neighbours need not learn anew.
net::Mac made_up_mac(const std::string& port_name) {
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (const unsigned char c : port_name) hash = (hash ^ c) * 0x100000001b3;
    net::Mac mac;
    std::memcpy(mac.bytes.data(), &hash, mac.bytes.size());
    mac.bytes[0] = 0x02;  // locally administered, unicast
    return mac;
}

net::Mac to_mac(const rte_ether_addr& address) {
    net::Mac mac;
    std::memcpy(mac.bytes.data(), address.addr_bytes, mac.bytes.size());
    return mac;
}

bool is_plugged_in(const Device& device) {
    std::uint16_t id = 0;
    return rte_eth_dev_get_port_by_name(device.name.c_str(), &id) == 0;
}

const char* bus(const Device& device) { return device.kind == DeviceKind::pci ? "pci" : "vdev"; }

void unplug_device(const Device& device) noexcept { rte_eal_hotplug_remove(bus(device), device.name.c_str()); }

// What appeared between two lists, both sorted.
std::vector<std::uint64_t> newcomers(const std::vector<std::uint64_t>& before,
                                     const std::vector<std::uint64_t>& after) {
    std::vector<std::uint64_t> result;
    std::set_difference(after.begin(), after.end(), before.begin(), before.end(), std::back_inserter(result));
    return result;
}

}  // namespace

EthPort::EthPort(const PortConfig& config, rte_mempool* pool)
    : config_(config), pool_(pool), removal_(std::make_unique<Removal>()) {
    open();
}

EthPort::~EthPort() { close(); }

void EthPort::open() {
    claim_interface();
    if (config_.device.kind == DeviceKind::kernel) return open_kernel();
    open_device(config_.device);
    base::log_info("port {}: {} uses the driver {}, offloads: {}", config_.name, in_use_.name, driver_, offloads_);
}

// Before anything of the interface is changed.
void EthPort::claim_interface() {
    claim_.reset();
    const std::string below = interface_below(config_.device);
    const unsigned index = below.empty() ? 0 : if_nametoindex(below.c_str());
    if (index == 0) return;
    auto claim = std::make_unique<InterfaceClaim>(index);
    if (!claim->holder().empty())
        fail(config_, fmt::format("the interface {} is a port of a running cachewire already ({}); two can't share one",
                                  below, claim->holder()));
    claim_ = std::move(claim);
}

// kernel: devices asked before they chose AF_XDP.
void EthPort::refuse_taken_xdp(const Device& device) const {
    if (config_.device.kind == DeviceKind::kernel || !device.name.starts_with("net_af_xdp")) return;
    const std::string why = why_xdp_is_taken(interface_, probe_interface(interface_));
    if (!why.empty()) fail(config_, why);
}

// AF_XDP first where everything that can be asked beforehand allows it; what only a start tells (another XDP program, a
// limit on locked memory) leads to AF_PACKET.
void EthPort::open_kernel() {
    KernelWish wish;
    wish.interface = config_.device.name;
    wish.queues = config_.rx_queues;
    wish.mtu = config_.mtu;
    wish.mbuf_size = config_.mbuf_size;
    wish.pool_has_gaps = !lies_side_by_side(pool_);
    wish.xdp_too_dear = had_xdp_ && xdp_too_dear();
    for (;;) {
        const KernelFacts facts = probe_interface(wish.interface);
        std::string error;
        const auto choice = choose_driver(wish, facts, error);
        if (!choice) fail(config_, error);
        if (!facts.up) {
            if (!bring_up(wish.interface))
                fail(config_, fmt::format("it is down, and `ip link set {} up` fails: {}", wish.interface,
                                          std::strerror(errno)));
            base::log_info("port {}: interface {} was down and is set up", config_.name, wish.interface);
        }
        const bool xdp = choice->driver == KernelDriver::af_xdp;
        const Device device = kernel_device(wish, choice->driver);
        try {
            open_device(device);
        } catch (const base::MachineError& start_error) {
            unplug_device(device);
            if (!xdp) throw;
            base::log_warning("{}", start_error.what());
            wish.xdp_failed = true;
            continue;
        }
        base::log_info("port {}: interface {} uses {}: {}; offloads: {}", config_.name, wish.interface,
                       xdp ? "AF_XDP" : "AF_PACKET", choice->why, offloads_);
        return;
    }
}

// EAL makes virtual devices at its start; those of kernel interfaces, and of ports that a reload brings, come later.
// True: it was not there before.
bool EthPort::plug_in(const Device& device) {
    const bool may_plug = device.kind != DeviceKind::pci || !in_use_.name.empty();
    if (!may_plug || is_plugged_in(device)) return false;
    rte_eal_hotplug_add(bus(device), device.name.c_str(), device.arguments.c_str());
    return true;
}

void EthPort::open_device(const Device& device) {
    interface_ = interface_below(device);
    interface_index_ = interface_.empty() ? 0 : if_nametoindex(interface_.c_str());
    std::optional<NoTapSignals> no_tap_signals;
    if (device.name.starts_with("net_tap")) no_tap_signals.emplace();
    const bool plugged = plug_in(device);
    id_ = find_device(config_, device);
    refuse_taken_xdp(device);
    before_ = interface_.empty() ? std::nullopt : read_interface(interface_);
    tap_ = -1;
    const std::vector<std::uint64_t> sockets = xdp_sockets();
    const unsigned in_use = rte_mempool_in_use_count(pool_);
    try {
        start_device(device);
    } catch (...) {
        xdp_sockets_ = newcomers(sockets, xdp_sockets());
        release();
        // net_af_xdp unmaps the ring of a socket that it could not open, with the buffers in it.
        if (const unsigned now = rte_mempool_in_use_count(pool_); driver_ == "net_af_xdp" && now > in_use)
            lost_mbufs_ += std::min(now - in_use, kXdpFill);
        if (plugged && config_.device.kind != DeviceKind::kernel) unplug_device(device);
        throw;
    }
    xdp_sockets_ = newcomers(sockets, xdp_sockets());
    had_xdp_ = had_xdp_ || !xdp_sockets_.empty();
    if (!interface_.empty()) kernel_side_ = std::make_unique<KernelSide>(driver_, interface_, tap_, xdp_sockets_);
    removal_->watch(id_, device.name, device.kind == DeviceKind::pci);
    in_use_ = device;
    open_ = true;
}

// The ring that the kernel fills takes buffers anew, and what the one before had in flight may be lost.
bool EthPort::xdp_too_dear() const {
    return rte_mempool_avail_count(pool_) < pool_->size / 4 + config_.rx_queues * 2 * kXdpFill;
}

void EthPort::start_device(const Device& device) {
    rte_eth_dev_info info{};
    require(rte_eth_dev_info_get(id_, &info), config_, "rte_eth_dev_info_get");
    driver_ = info.driver_name;
    if (driver_ == "net_af_xdp" && !lies_side_by_side(pool_))
        fail(config_,
             "AF_XDP wants buffers in one piece of memory, and beside a NIC (a PCI address in `ports`) they have gaps: "
             "use "
             "net_af_packet, or a process of its own");
    settle_queues(config_, info);
    check_queues(config_, info);
    check_mtu(config_, info, config_.mtu);
    const rte_eth_conf conf = device_configuration(config_, info);
    require(rte_eth_dev_configure(id_, config_.rx_queues, config_.tx_queues, &conf), config_, "rte_eth_dev_configure");
    opened_mtu_ = config_.mtu;
    apply_mtu(config_.mtu);
    setup_queues(config_, id_, info, conf, pool_);
    rte_ether_addr address{};
    require(rte_eth_macaddr_get(id_, &address), config_, "rte_eth_macaddr_get");
    if (own_mac_.is_zero()) own_mac_ = to_mac(address);
    apply_mac();
    require(rte_eth_dev_start(id_), config_, "rte_eth_dev_start");
    started_ = true;
    if (driver_ == "net_tap") find_tap(info.if_index);
    traits_ = traits_of(config_, driver_, conf);
    offloads_ = offloads_in_use(conf);
    if (!apply_promiscuous())
        base::log_warning("port {}: promiscuous mode can't be turned {}", device.name,
                          config_.promiscuous ? "on" : "off");
}

void EthPort::close() noexcept {
    if (!open_) return;
    closed_ = stats();
    release();
    open_ = false;
    claim_.reset();
}

void EthPort::unplug() noexcept { unplug_device(in_use_); }

// Closes the device, as far as it was opened. Buffers are noted while its rings are mapped and freed when the kernel
// can't write to them any more. The interface gets back what was changed of it.
void EthPort::release() noexcept {
    removal_->forget();
    stop();
    const XdpBuffers buffers = find_xdp_buffers(xdp_sockets_, pool_);
    close_device();
    for (rte_mbuf* mbuf : buffers.found) rte_pktmbuf_free(mbuf);
    lost_mbufs_ += buffers.lost;
    if (buffers.lost != 0)
        base::log_warning("port {}: AF_XDP's driver closed with {} buffers that are lost to the pool", config_.name,
                          buffers.lost);
    xdp_sockets_.clear();
    if (before_ && !interface_gone()) restore_interface(interface_, *before_);
    before_.reset();
}

// net_af_xdp takes off whatever XDP program is there. Another one than ours is somebody's, and stays.
void EthPort::close_device() noexcept {
    std::optional<KeptXdpProgram> foreign;
    if (kernel_side_) {
        kernel_side_->look();
        if (const auto& facts = kernel_side_->facts(); kernel_side_->lost_xdp_program() && facts->xdp_program != 0)
            foreign.emplace(interface_index_, *facts);
        kernel_side_.reset();
    }
    rte_eth_dev_close(id_);
    close_left_sockets(xdp_sockets_);
    if (foreign && !foreign->put_back())
        base::log_warning("port {}: the XDP program that somebody put on {} could not stay: {}", config_.name,
                          interface_, std::strerror(errno));
}

void EthPort::look() noexcept {
    if (kernel_side_) kernel_side_->look();
}

bool EthPort::take_flap() noexcept { return kernel_side_ && kernel_side_->take_flap(); }

bool EthPort::link() const noexcept { return !kernel_side_ || kernel_side_->link(); }

bool EthPort::interface_gone() const {
    if (tap_ >= 0) return tap_deleted(tap_);
    return interface_index_ != 0 && if_nametoindex(interface_.c_str()) != interface_index_;
}

std::string EthPort::gone() const {
    if (interface_gone()) return "interface " + interface_;
    if (kernel_side_ && kernel_side_->lost_xdp_program()) return "its XDP program";
    return removal_->seen() ? "device " + in_use_.name : "";
}

bool EthPort::can_open() const {
    if (in_use_.kind == DeviceKind::pci) {
        std::error_code error;
        return std::filesystem::exists("/sys/bus/pci/devices/" + in_use_.name, error);
    }
    const std::string below = interface_below(in_use_);
    return below.empty() || if_nametoindex(below.c_str()) != 0;
}

// The driver opened it by name in this namespace; from there it may be moved, and the descriptor follows.
void EthPort::find_tap(unsigned index) {
    char name[IF_NAMESIZE] = "";
    if (if_indextoname(index, name) == nullptr) return;
    interface_ = name;
    tap_ = tap_descriptor(interface_);
}

// Not every driver has an MTU to set (net_pcap, net_ring): then the frame's way through the buffer is the only limit,
// and that was checked.
void EthPort::apply_mtu(std::uint16_t mtu) {
    rte_eth_dev_info info{};
    require(rte_eth_dev_info_get(id_, &info), config_, "rte_eth_dev_info_get");
    check_mtu(config_, info, mtu);
    if (config_.device.kind == DeviceKind::kernel && driver_ == "net_af_packet") {
        if (packet_slot_bytes(mtu) > packet_slot_bytes(opened_mtu_))
            fail(config_, fmt::format("an mtu of {} needs longer slots in AF_PACKET's ring: restart to apply it", mtu));
        if (!set_interface_mtu(interface_, mtu))
            fail(config_,
                 fmt::format("the interface {} does not take an mtu of {}: {}", interface_, mtu, std::strerror(errno)));
        return;
    }
    const int rc = rte_eth_dev_set_mtu(id_, mtu);
    if (rc == -ENOTSUP) return;
    if (rc == -EBUSY)
        fail(config_, fmt::format("the driver changes its mtu only while stopped: restart to apply {}", mtu));
    if (rc < 0) fail(config_, fmt::format("the device does not take an mtu of {}: {}", mtu, rte_strerror(-rc)));
}

void EthPort::set_mtu(std::uint16_t mtu) {
    if (open_) {
        rte_eth_dev_info info{};
        require(rte_eth_dev_info_get(id_, &info), config_, "rte_eth_dev_info_get");
        check_mtu(config_, info, mtu);
        if (needs_scatter(config_, mtu) && !needs_scatter(config_, opened_mtu_))
            fail(config_,
                 fmt::format("frames of an mtu of {} go over one buffer, which is set up at the start: restart "
                             "to apply it, or raise `memory: mbuf_size`",
                             mtu));
        apply_mtu(mtu);
    }
    config_.mtu = mtu;
    if (traits_.max_frame_bytes != UINT32_MAX) traits_.max_frame_bytes = mtu + kFrameOverhead;
}

void EthPort::apply_mac() {
    const net::Mac wanted = config_.mac.value_or(own_mac_.is_zero() ? made_up_mac(config_.name) : own_mac_);
    if (wanted.is_zero() || wanted.is_multicast()) fail(config_, "its MAC address is zero or a multicast address");
    rte_ether_addr address{};
    require(rte_eth_macaddr_get(id_, &address), config_, "rte_eth_macaddr_get");
    mac_in_software_ = false;
    if (to_mac(address) != wanted) {
        std::memcpy(address.addr_bytes, wanted.bytes.data(), wanted.bytes.size());
        mac_in_software_ = rte_eth_dev_default_mac_addr_set(id_, &address) != 0;
    }
    mac_ = wanted;
}

void EthPort::set_mac(const std::optional<net::Mac>& mac) {
    config_.mac = mac;
    if (!open_) return;
    apply_mac();
    if (!apply_promiscuous() && mac_in_software_)
        base::log_warning("port {}: neither takes the driver {} this address nor all of them", config_.name, driver_);
}

// A configured address that the driver can't take arrives only when the device lets every address through; the parse
// stage drops what is for others.
bool EthPort::apply_promiscuous() {
    const bool on = config_.promiscuous || mac_in_software_;
    if (on == (rte_eth_promiscuous_get(id_) == 1)) return true;
    const int rc = on ? rte_eth_promiscuous_enable(id_) : rte_eth_promiscuous_disable(id_);
    // Devices in software that know no such mode (net_pcap, net_ring) let everything through anyway.
    return rc == 0 || (rc == -ENOTSUP && config_.device.kind != DeviceKind::pci);
}

void EthPort::set_promiscuous(bool on) {
    const bool before = config_.promiscuous;
    config_.promiscuous = on;
    if (!open_ || apply_promiscuous()) return;
    config_.promiscuous = before;
    fail(config_, fmt::format("the driver {} does not turn promiscuous mode {}", driver_, on ? "on" : "off"));
}

// What waits in a ring's queue belongs to the pool and no driver frees it on stop. Bounded: some sources never end.
void EthPort::free_waiting() noexcept {
    std::array<rte_mbuf*, 32> burst;
    for (std::uint16_t q = 0; q < config_.rx_queues; ++q)
        for (unsigned round = 0; round < 256; ++round) {
            const std::uint16_t n = rte_eth_rx_burst(id_, q, burst.data(), burst.size());
            if (n == 0) break;
            rte_pktmbuf_free_bulk(burst.data(), n);
        }
}

void EthPort::stop() {
    if (!started_) return;
    free_waiting();
    started_ = false;
    const int rc = rte_eth_dev_stop(id_);
    if (rc != 0) base::log_warning("port {}: rte_eth_dev_stop: {}", config_.name, rte_strerror(-rc));
}

}  // namespace cachewire::port
