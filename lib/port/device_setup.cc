// SPDX-License-Identifier: BSD-3-Clause
#include "port/device_setup.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_mbuf.h>

#include "base/error.h"
#include "base/log.h"

namespace cachewire::port {

namespace {

constexpr std::uint64_t kRssFields = RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_SCTP;
// Chained payloads pass untouched, so a device that can send them has to be told. Checksum offloads stay off: the
// pipeline checks and updates the IPv4 header checksum itself while the line is in L1, and never touches a payload.
// MBUF_FAST_FREE stays off as well: it forbids chains and packets that somebody else holds too (a capture, a fragment).
constexpr std::uint64_t kTxOffloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;

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

// "multi_segs vlan_insert"
std::string names(std::uint64_t bits, const char* (*name)(std::uint64_t)) {
    std::string text;
    for (; bits != 0; bits &= bits - 1) {
        std::string one = name(std::uint64_t{1} << std::countr_zero(bits));
        std::transform(one.begin(), one.end(), one.begin(), [](unsigned char c) { return std::tolower(c); });
        text += (text.empty() ? "" : " ") + one;
    }
    return text;
}

unsigned buffer_room(const PortConfig& config) { return config.mbuf_size - RTE_PKTMBUF_HEADROOM; }

bool offers_scatter(const rte_eth_dev_info& info) { return (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER) != 0; }

// These chain buffers as they need them and have no capability to say so.
bool spreads_frames(const rte_eth_dev_info& info) {
    const std::string_view driver = info.driver_name;
    return offers_scatter(info) || driver == "net_pcap" || driver == "net_memif";
}

// As ethdev reckons: the driver's longest frame counts header and FCS unless the driver names its MTU too.
unsigned max_mtu(const rte_eth_dev_info& info) {
    const bool says_both = info.max_mtu != UINT16_MAX && info.max_rx_pktlen > info.max_mtu;
    const unsigned overhead = says_both ? info.max_rx_pktlen - info.max_mtu : RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
    const unsigned longest = info.max_rx_pktlen > overhead ? info.max_rx_pktlen - overhead : UINT16_MAX;
    return std::min<unsigned>(info.max_mtu, longest);
}

// net_af_packet names the plain Ethernet's frame whatever the interface can. So does net_tap, but it sends none longer.
bool mtu_beside_ethdev(const PortConfig& config, const rte_eth_dev_info& info) {
    return config.device.kind == DeviceKind::kernel && std::string_view(info.driver_name) == "net_af_packet";
}

// Devices that Linux keeps have peers in this machine, which leave checksums to a NIC that isn't there.
bool is_kernel_driver(const std::string& driver) {
    return driver.starts_with("net_af_packet") || driver.starts_with("net_af_xdp") || driver.starts_with("net_tap");
}

}  // namespace

void fail(const PortConfig& config, const std::string& text) {
    const char* const kernel = config.device.kind == DeviceKind::kernel ? "kernel:" : "";
    throw base::MachineError(fmt::format("port {} ({}{}): {}", config.name, kernel, config.device.name, text));
}

void require(int rc, const PortConfig& config, const char* call) {
    if (rc < 0) fail(config, fmt::format("{}: {}", call, rte_strerror(-rc)));
}

std::uint16_t find_device(const PortConfig& config, const Device& device) {
    std::uint16_t id = 0;
    if (rte_eth_dev_get_port_by_name(device.name.c_str(), &id) == 0) return id;
    if (device.kind == DeviceKind::pci) fail(config, why_no_pci_device(device.name));
    fail(config,
         "no driver made this device: see EAL's messages above (wrong arguments, a missing file or interface, no "
         "permission), or its driver is not in EAL's plug-in folder");
}

bool needs_scatter(const PortConfig& config, std::uint16_t mtu) { return mtu + kFrameOverhead > buffer_room(config); }

void settle_queues(PortConfig& config, const rte_eth_dev_info& info) {
    const std::string_view driver = info.driver_name;
    const auto fitting = [&config](std::uint16_t max) {
        return std::max<std::uint16_t>(std::min(config.workers, max), 1);
    };
    std::uint16_t rx = fitting(info.max_rx_queues), tx = fitting(info.max_tx_queues);
    // How many there are is up to the peer, or the kernel spreads over all that are open without being asked.
    if (driver == "net_tap" || driver == "net_memif" || driver == "net_vhost" || driver == "net_af_xdp") rx = tx = 1;
    // It spreads over the queues that its arguments name, so all of them have to be read.
    if (driver == "net_af_packet") rx = tx = info.max_rx_queues;
    if (config.rx_queues == 0) config.rx_queues = rx;
    if (config.tx_queues == 0) config.tx_queues = tx;
    // It has pairs.
    if (driver == "net_tap") config.rx_queues = config.tx_queues = std::max(config.rx_queues, config.tx_queues);
}

void check_queues(const PortConfig& config, const rte_eth_dev_info& info) {
    if (config.rx_queues > info.max_rx_queues || config.tx_queues > info.max_tx_queues)
        fail(config,
             fmt::format("{} receive and {} send queues are wanted, the driver {} offers {} and {}", config.rx_queues,
                         config.tx_queues, info.driver_name, info.max_rx_queues, info.max_tx_queues));
}

void check_mtu(const PortConfig& config, const rte_eth_dev_info& info, std::uint16_t mtu) {
    const unsigned room = buffer_room(config);
    if (needs_scatter(config, mtu) && !spreads_frames(info))
        fail(config,
             fmt::format(
                 "an mtu of {} and {} bytes of Ethernet and VLAN headers make frames of {}, an mbuf_size of {} less "
                 "{} of headroom holds {}, and the driver {} does not spread frames over buffers: raise `memory: "
                 "mbuf_size` to {}",
                 mtu, kFrameOverhead, mtu + kFrameOverhead, config.mbuf_size, RTE_PKTMBUF_HEADROOM, room,
                 info.driver_name, mtu + kFrameOverhead + RTE_PKTMBUF_HEADROOM));
    if (room < info.min_rx_bufsize)
        fail(config, fmt::format("the driver {} wants receive buffers of {} bytes, an mbuf_size of {} gives {}",
                                 info.driver_name, info.min_rx_bufsize, config.mbuf_size, room));
    if (mtu_beside_ethdev(config, info)) return;
    if (mtu < info.min_mtu || mtu > max_mtu(info))
        fail(config, fmt::format("an mtu of {} is outside what the driver {} offers, {} to {}", mtu, info.driver_name,
                                 info.min_mtu, max_mtu(info)));
}

std::uint16_t ethdev_mtu(const PortConfig& config, const rte_eth_dev_info& info, std::uint16_t mtu) {
    return mtu_beside_ethdev(config, info) ? static_cast<std::uint16_t>(std::min<unsigned>(mtu, max_mtu(info))) : mtu;
}

rte_eth_conf device_configuration(const PortConfig& config, const rte_eth_dev_info& info) {
    rte_eth_conf conf{};
    conf.rxmode.mtu = ethdev_mtu(config, info, config.mtu);
    if (needs_scatter(config, config.mtu) && offers_scatter(info)) conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_SCATTER;
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

std::string offloads_in_use(const rte_eth_conf& conf) {
    std::string rx = names(conf.rxmode.offloads, rte_eth_dev_rx_offload_name);
    if (conf.rxmode.mq_mode == RTE_ETH_MQ_RX_RSS) rx += rx.empty() ? "rss" : " rss";
    const std::string tx = names(conf.txmode.offloads, rte_eth_dev_tx_offload_name);
    if (rx.empty() && tx.empty()) return "none";
    return fmt::format("{}{}{}{}{}", rx.empty() ? "" : "rx ", rx, rx.empty() || tx.empty() ? "" : "; ",
                       tx.empty() ? "" : "tx ", tx);
}

PortTraits traits_of(const PortConfig& config, const std::string& driver, const rte_eth_conf& conf) {
    PortTraits traits;
    traits.partial_checksums = is_kernel_driver(driver);
    // Virtual devices copy or pass chains on without being told, but for net_af_xdp.
    traits.sends_chains = (conf.txmode.offloads & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0 ||
                          (config.device.kind == DeviceKind::vdev && !driver.starts_with("net_af_xdp"));
    if (is_kernel_driver(driver)) traits.max_frame_bytes = config.mtu + kFrameOverhead;
    return traits;
}

}  // namespace cachewire::port
