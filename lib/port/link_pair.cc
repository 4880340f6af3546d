// SPDX-License-Identifier: BSD-3-Clause
// A port's link as one side of a transparent pair: whether it has one, and taking it away from the other side.
#include <linux/if_tun.h>
#include <rte_ethdev.h>
#include <sys/ioctl.h>

#include "port/kernel_interface.h"
#include "port/port.h"

namespace cachewire::port {

std::optional<bool> EthPort::wire() const {
    if (!open_) return std::nullopt;
    if (config_.device.kind != DeviceKind::pci) return link();
    rte_eth_link link{};
    if (rte_eth_link_get_nowait(id_, &link) != 0) return std::nullopt;
    return link.link_status == RTE_ETH_LINK_UP;
}

bool EthPort::set_wire(bool up) noexcept {
    if (!open_) return false;
    if (config_.device.kind == DeviceKind::pci)
        return (up ? rte_eth_dev_set_link_up(id_) : rte_eth_dev_set_link_down(id_)) == 0;
    // A TAP's other end is the host, wherever it has been moved to.
    int carrier = up ? 1 : 0;
    if (tap_ >= 0) return ioctl(tap_, TUNSETCARRIER, &carrier) == 0;
    return !interface_.empty() && (up ? bring_up(interface_) : take_down(interface_));
}

}  // namespace cachewire::port
