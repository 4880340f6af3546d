#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The steps between a configured port and a started device: what the device offers is asked, what is missing is an
// error that names port, limit and remedy. Used by EthPort alone.
#include <cstdint>
#include <string>

#include <rte_ethdev.h>

#include "port/port.h"

struct rte_mempool;

namespace cachewire::port {

// Ethernet header and two VLAN tags; no FCS, which no driver here hands over.
inline constexpr unsigned kFrameOverhead = RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN;

[[noreturn]] void fail(const PortConfig& config, const std::string& text);  // base::MachineError
void require(int rc, const PortConfig& config, const char* call);

std::uint16_t find_device(const PortConfig& config, const Device& device);
// The longest frames of this MTU don't fit one buffer.
bool needs_scatter(const PortConfig& config, std::uint16_t mtu);
// Replaces what is 0 in `config`.
void settle_queues(PortConfig& config, const rte_eth_dev_info& info);
void check_queues(const PortConfig& config, const rte_eth_dev_info& info);
void check_mtu(const PortConfig& config, const rte_eth_dev_info& info, std::uint16_t mtu);
// The MTU that ethdev may be told: net_af_packet offers 1500 whatever the interface can, and its MTU is set beside it.
std::uint16_t ethdev_mtu(const PortConfig& config, const rte_eth_dev_info& info, std::uint16_t mtu);
rte_eth_conf device_configuration(const PortConfig& config, const rte_eth_dev_info& info);
void setup_queues(const PortConfig& config, std::uint16_t id, const rte_eth_dev_info& info, const rte_eth_conf& conf,
                  rte_mempool* pool);
std::string offloads_in_use(const rte_eth_conf& conf);
PortTraits traits_of(const PortConfig& config, const std::string& driver, const rte_eth_conf& conf);

}  // namespace cachewire::port
