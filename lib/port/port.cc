// SPDX-License-Identifier: BSD-3-Clause
#include "port/port.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/error.h"
#include "base/log.h"

namespace cachewire::port {

namespace {

// Ethernet header and two VLAN tags; no FCS, which no driver here hands over.
constexpr unsigned kFrameOverhead = RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN;
constexpr std::uint64_t kRssFields = RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_SCTP;
// Chained payloads pass untouched, so a device that can send them has to be told. Checksum offloads stay off: the
// pipeline checks and updates the IPv4 header checksum itself while the line is in L1, and never touches a payload.
constexpr std::uint64_t kTxOffloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;

[[noreturn]] void fail(const PortConfig& config, const std::string& text) {
    throw base::MachineError(fmt::format("port {} ({}): {}", config.name, config.device.name, text));
}

void require(int rc, const PortConfig& config, const char* call) {
    if (rc < 0) fail(config, fmt::format("{}: {}", call, rte_strerror(-rc)));
}

std::string why_no_pci_device(const std::string& address) {
    namespace fs = std::filesystem;
    const fs::path device = fs::path("/sys/bus/pci/devices") / address;
    std::error_code error;
    if (!fs::exists(device, error)) return "this machine has no such PCI device; `lspci -D` lists them";
    const fs::path driver = fs::read_symlink(device / "driver", error).filename();
    if (error)
        return fmt::format("it is bound to no driver; bind it with `dpdk-devbind.py --bind=vfio-pci {}`", address);
    if (driver == "vfio-pci" || driver == "uio_pci_generic" || driver == "igb_uio")
        return fmt::format(
            "it is bound to {}, but no DPDK driver took it: see EAL's messages above; vfio-pci needs an IOMMU, or "
            "`echo 1 > "
            "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode`",
            driver.string());
    return fmt::format(
        "it is bound to the kernel's driver {}; take it down and bind it with `modprobe vfio-pci` and `dpdk-devbind.py "
        "--bind=vfio-pci {}`",
        driver.string(), address);
}

std::uint16_t find_device(const PortConfig& config) {
    std::uint16_t id = 0;
    if (rte_eth_dev_get_port_by_name(config.device.name.c_str(), &id) == 0) return id;
    if (config.device.kind == DeviceKind::pci) fail(config, why_no_pci_device(config.device.name));
    fail(config,
         "no driver made this device: see EAL's messages above (wrong arguments, a missing file or interface, no "
         "permission), or its driver is not in EAL's plug-in folder");
}

void check_queues(const PortConfig& config, const rte_eth_dev_info& info) {
    if (config.rx_queues > info.max_rx_queues || config.tx_queues > info.max_tx_queues)
        fail(config,
             fmt::format("{} receive and {} send queues are wanted, the driver {} offers {} and {}", config.rx_queues,
                         config.tx_queues, info.driver_name, info.max_rx_queues, info.max_tx_queues));
}

void check_mtu(const PortConfig& config, const rte_eth_dev_info& info, std::uint16_t mtu) {
    const unsigned room = config.mbuf_size - RTE_PKTMBUF_HEADROOM;
    if (mtu + kFrameOverhead > room)
        fail(config,
             fmt::format(
                 "an mtu of {} and {} bytes of Ethernet and VLAN headers make frames of {}, an mbuf_size of {} less "
                 "{} of headroom holds {}: raise `memory: mbuf_size` to {}",
                 mtu, kFrameOverhead, mtu + kFrameOverhead, config.mbuf_size, RTE_PKTMBUF_HEADROOM, room,
                 mtu + kFrameOverhead + RTE_PKTMBUF_HEADROOM));
    if (room < info.min_rx_bufsize)
        fail(config, fmt::format("the driver {} wants receive buffers of {} bytes, an mbuf_size of {} gives {}",
                                 info.driver_name, info.min_rx_bufsize, config.mbuf_size, room));
    const unsigned longest =
        info.max_rx_pktlen > RTE_ETHER_HDR_LEN ? info.max_rx_pktlen - RTE_ETHER_HDR_LEN : UINT16_MAX;
    const unsigned max_mtu = std::min<unsigned>(info.max_mtu, longest);
    if (mtu < info.min_mtu || mtu > max_mtu)
        fail(config, fmt::format("an mtu of {} is outside what the driver {} offers, {} to {}", mtu, info.driver_name,
                                 info.min_mtu, max_mtu));
}

rte_eth_conf device_configuration(const PortConfig& config, const rte_eth_dev_info& info) {
    rte_eth_conf conf{};
    conf.rxmode.mtu = config.mtu;
    conf.txmode.offloads = kTxOffloads & info.tx_offload_capa;
    const std::uint64_t rss = kRssFields & info.flow_type_rss_offloads;
    if (config.rx_queues > 1 && rss != 0) {
        conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
        conf.rx_adv_conf.rss_conf.rss_hf = rss;
    }
    return conf;
}

void setup_queues(const PortConfig& config, std::uint16_t id, const rte_eth_dev_info& info, const rte_eth_conf& conf,
                  rte_mempool* pool) {
    std::uint16_t rxd = config.rx_descriptors, txd = config.tx_descriptors;
    require(rte_eth_dev_adjust_nb_rx_tx_desc(id, &rxd, &txd), config, "rte_eth_dev_adjust_nb_rx_tx_desc");
    if (rxd != config.rx_descriptors || txd != config.tx_descriptors)
        base::log_warning("port {}: the driver {} takes {} receive and {} send descriptors instead of {} and {}",
                          config.name, info.driver_name, rxd, txd, config.rx_descriptors, config.tx_descriptors);
    const int socket = rte_eth_dev_socket_id(id);
    const auto on_socket = socket < 0 ? static_cast<unsigned>(SOCKET_ID_ANY) : static_cast<unsigned>(socket);
    rte_eth_rxconf rx = info.default_rxconf;
    rx.offloads = conf.rxmode.offloads;
    for (std::uint16_t q = 0; q < config.rx_queues; ++q)
        require(rte_eth_rx_queue_setup(id, q, rxd, on_socket, &rx, pool), config, "rte_eth_rx_queue_setup");
    rte_eth_txconf tx = info.default_txconf;
    tx.offloads = conf.txmode.offloads;
    for (std::uint16_t q = 0; q < config.tx_queues; ++q)
        require(rte_eth_tx_queue_setup(id, q, txd, on_socket, &tx), config, "rte_eth_tx_queue_setup");
}

// net_ring has no address of its own. The same one after each restart, so that neighbours need not learn anew.
net::Mac made_up_mac(const std::string& port_name) {
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (const unsigned char c : port_name) hash = (hash ^ c) * 0x100000001b3;
    net::Mac mac;
    std::memcpy(mac.bytes.data(), &hash, mac.bytes.size());
    mac.bytes[0] = 0x02;  // locally administered, unicast
    return mac;
}

struct PortAddress {
    net::Mac mac;
    bool in_software;  // the device filters for another one
};

PortAddress settle_mac(const PortConfig& config, std::uint16_t id) {
    rte_ether_addr address{};
    require(rte_eth_macaddr_get(id, &address), config, "rte_eth_macaddr_get");
    net::Mac own;
    std::memcpy(own.bytes.data(), address.addr_bytes, own.bytes.size());
    net::Mac wanted = config.mac.value_or(own.is_zero() ? made_up_mac(config.name) : own);
    if (wanted == own) return {own, false};
    std::memcpy(address.addr_bytes, wanted.bytes.data(), wanted.bytes.size());
    if (wanted.is_zero() || wanted.is_multicast()) fail(config, "its MAC address is zero or a multicast address");
    return {wanted, rte_eth_dev_default_mac_addr_set(id, &address) != 0};
}

}  // namespace

EthPort::EthPort(const PortConfig& config, rte_mempool* pool) : config_(config), id_(find_device(config)) {
    rte_eth_dev_info info{};
    require(rte_eth_dev_info_get(id_, &info), config_, "rte_eth_dev_info_get");
    check_queues(config_, info);
    check_mtu(config_, info, config_.mtu);
    const rte_eth_conf conf = device_configuration(config_, info);
    require(rte_eth_dev_configure(id_, config_.rx_queues, config_.tx_queues, &conf), config_, "rte_eth_dev_configure");
    apply_mtu(config_.mtu);
    setup_queues(config_, id_, info, conf, pool);
    const PortAddress address = settle_mac(config_, id_);
    mac_ = address.mac;
    mac_in_software_ = address.in_software;
    require(rte_eth_dev_start(id_), config_, "rte_eth_dev_start");
    started_ = true;
    apply_promiscuous();
}

EthPort::~EthPort() {
    stop();
    rte_eth_dev_close(id_);
}

// Not every driver has an MTU to set (net_pcap, net_ring): then the frame's way through the buffer is the only limit,
// and that was checked.
void EthPort::apply_mtu(std::uint16_t mtu) {
    const int rc = rte_eth_dev_set_mtu(id_, mtu);
    if (rc == -ENOTSUP) return;
    if (rc == -EBUSY)
        fail(config_, fmt::format("the driver changes its mtu only while stopped: restart to apply {}", mtu));
    require(rc, config_, "rte_eth_dev_set_mtu");
}

void EthPort::set_mtu(std::uint16_t mtu) {
    rte_eth_dev_info info{};
    require(rte_eth_dev_info_get(id_, &info), config_, "rte_eth_dev_info_get");
    check_mtu(config_, info, mtu);
    apply_mtu(mtu);
    config_.mtu = mtu;
}

// A configured address that the driver can't take arrives only when the device lets every address through; the parse
// stage drops what is for others.
void EthPort::apply_promiscuous() {
    const bool on = config_.promiscuous || mac_in_software_;
    if (on == (rte_eth_promiscuous_get(id_) == 1)) return;
    const int rc = on ? rte_eth_promiscuous_enable(id_) : rte_eth_promiscuous_disable(id_);
    // Devices in software that know no such mode (net_pcap, net_ring) let everything through anyway.
    if (rc == 0 || (rc == -ENOTSUP && config_.device.kind == DeviceKind::vdev)) return;
    base::log_warning("port {}: promiscuous mode can't be turned {}: {}", config_.name, on ? "on" : "off",
                      rte_strerror(-rc));
}

void EthPort::set_promiscuous(bool on) {
    config_.promiscuous = on;
    apply_promiscuous();
}

PortStats EthPort::stats() const {
    PortStats result{};
    rte_eth_stats counters{};
    if (rte_eth_stats_get(id_, &counters) == 0) {
        result.rx_missed = counters.imissed;
        result.rx_errors = counters.ierrors;
        result.rx_nombuf = counters.rx_nombuf;
    }
    rte_eth_dev_info info{};
    if (rte_eth_dev_info_get(id_, &info) == 0) result.driver = info.driver_name;
    rte_eth_link link{};
    if (rte_eth_link_get_nowait(id_, &link) == 0) {
        result.link_up = link.link_status == RTE_ETH_LINK_UP;
        result.link_mbps = link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : link.link_speed;
    }
    return result;
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
