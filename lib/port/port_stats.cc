// SPDX-License-Identifier: BSD-3-Clause
// A port's counters: what ethdev says of the device, and what the kernel says where ethdev doesn't.
#include <rte_ethdev.h>

#include "port/claim.h"
#include "port/kernel_side.h"
#include "port/port.h"
#include "port/removal.h"

namespace cachewire::port {

void add_counts(PortStats& to, const PortStats& more) noexcept {
    to.rx_missed += more.rx_missed;
    to.rx_errors += more.rx_errors;
    to.rx_nombuf += more.rx_nombuf;
    to.tx_errors += more.tx_errors;
}

PortStats EthPort::stats() const {
    PortStats result = closed_;
    result.driver = driver_;
    result.link_up = false;
    result.link_mbps = 0;
    if (open_) add_device(result);
    return result;
}

void EthPort::add_device(PortStats& result) const {
    rte_eth_stats counters{};
    if (rte_eth_stats_get(id_, &counters) == 0) {
        result.rx_errors += counters.ierrors;
        result.rx_nombuf += counters.rx_nombuf;
        result.tx_errors += counters.oerrors;
    }
    result.rx_missed += kernel_side_ ? kernel_side_->missed(counters.imissed) : counters.imissed;
    rte_eth_link link{};
    if (rte_eth_link_get_nowait(id_, &link) == 0) {
        result.link_up = link.link_status == RTE_ETH_LINK_UP;
        result.link_mbps = link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : link.link_speed;
    }
    if (kernel_side_ && kernel_side_->facts()) result.link_up = kernel_side_->link();
}

}  // namespace cachewire::port
