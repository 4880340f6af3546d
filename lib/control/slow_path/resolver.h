#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// ARP and neighbor discovery on the wire: what comes in to the neighbor table and to answers, what the table wants
// asked to the wire. Answers only for addresses of the interface that was asked (B33), and with the flags that make a
// peer believe them (B36).
#include <cstdint>
#include <span>

#include "control/slow_path/frame_sender.h"
#include "control/slow_path/neighbor_table.h"
#include "control/slow_path/own_interfaces.h"
#include "net/nd.h"

namespace cachewire::control {

struct ResolverCounters {
    std::uint64_t arp_in = 0, nd_in = 0, malformed = 0, answered = 0, asked = 0, conflicts = 0;
};

class Resolver {
  public:
    Resolver(NeighborTable& table, const OwnInterfaces& interfaces, FrameSender& sender)
        : table_(table), interfaces_(interfaces), sender_(sender) {}

    // `frame` as received, contiguous as far as it is given; the message begins at `l3_offset`.
    void on_arp(std::span<const std::uint8_t> frame, const pipeline::PuntRecord& record, std::uint64_t now_ms);
    void on_nd(std::span<const std::uint8_t> frame, const pipeline::PuntRecord& record, std::uint64_t now_ms);
    void ask(const NeighborAction& action);
    // Gratuitous ARP (RFC 5227 3) and unsolicited advertisements (RFC 4861 7.2.6) for all own addresses.
    void announce(const OwnInterface& interface);

    [[nodiscard]] const ResolverCounters& counters() const noexcept { return counters_; }

  private:
    void answer(const OwnInterface& in, const net::NeighborMessage& asked, const net::Mac& to);
    void conflict(const OwnInterface& in, const net::Address& address, const net::Mac& mac, std::uint64_t now_ms);

    NeighborTable& table_;
    const OwnInterfaces& interfaces_;
    FrameSender& sender_;
    ResolverCounters counters_;
    std::uint64_t next_warning_ms_ = 0;
};

}  // namespace cachewire::control
