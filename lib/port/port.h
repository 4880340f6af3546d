#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The only owner of ethdev: what a `device:` string means, and a configured, started port. Control thread only; the
// datapath calls rte_eth_rx_burst and rte_eth_tx_burst with the ids from here.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/mac.h"

struct rte_mempool;

namespace cachewire::port {

enum class DeviceKind { pci, vdev };

struct Device {
    DeviceKind kind;
    std::string name;       // what rte_eth_dev_get_port_by_name finds: "0000:03:00.0" or "net_tap0"
    std::string arguments;  // after the first comma, as given
};

// "0000:03:00.0" (or without domain) is PCI; "net_xxx0,args" is a vdev. nullopt with `why` for anything else.
std::optional<Device> parse_device(const std::string& text, std::string& why);

// EAL arguments for all ports: "-a PCI" for each PCI device, else "--no-pci"; "--vdev=NAME,ARGS" for each vdev.
std::vector<std::string> eal_arguments(const std::vector<Device>& devices);

struct PortConfig {
    std::string name;
    Device device;
    std::uint16_t rx_queues = 1, tx_queues = 1;  // wanted; what the device can't give is an error that names its limit
    std::uint16_t rx_descriptors = 1024, tx_descriptors = 1024;
    std::uint16_t mtu = 1500;
    bool promiscuous = false;
    std::optional<net::Mac> mac;
    std::uint16_t mbuf_size = 2176;
};

struct PortStats {
    std::uint64_t rx_missed, rx_errors, rx_nombuf;
    std::string driver;
    bool link_up;
    std::uint32_t link_mbps;
};

class EthPort {
  public:
    // Finds, configures and starts; throws base::MachineError that names the port and says what a person can do.
    EthPort(const PortConfig& config, rte_mempool* pool);
    ~EthPort();  // stops and closes; no worker may use the port any more
    EthPort(const EthPort&) = delete;
    EthPort& operator=(const EthPort&) = delete;

    [[nodiscard]] const std::string& name() const noexcept { return config_.name; }
    [[nodiscard]] const PortConfig& config() const noexcept { return config_; }
    [[nodiscard]] std::uint16_t id() const noexcept { return id_; }
    // The configured address, else the device's own; where a device has none (net_ring), one derived from the port's
    // name.
    [[nodiscard]] net::Mac mac() const noexcept { return mac_; }
    [[nodiscard]] PortStats stats() const;
    void set_mtu(std::uint16_t mtu);
    void set_promiscuous(bool on);
    void stop();  // also frees what waits in the receive queues; workers have left before

  private:
    void apply_mtu(std::uint16_t mtu);
    void apply_promiscuous();
    void free_waiting() noexcept;

    PortConfig config_;
    std::uint16_t id_ = 0;
    net::Mac mac_;
    bool mac_in_software_ = false;  // the driver can't take it: promiscuous, whatever the configuration says
    bool started_ = false;
};

// Data mbufs of `data_room` bytes on `socket_id`. The count is the caller's; throws base::MachineError with the memory
// needed.
rte_mempool* make_mempool(const std::string& name, unsigned mbufs, unsigned cache, unsigned mbuf_size, int socket_id);

}  // namespace cachewire::port
