#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What a router says about packets that it doesn't pass on: ICMP and ICMPv6 errors, TCP resets, echo replies, as
// datagrams for SlowPath to route. The worker has kept back what must not be answered and can be told from its parse
// (errors, later fragments, group addresses, martians; B29) and all that is over the port's rate; what needs the
// tenant's routes is left out here.
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "control/slow_path/own_interfaces.h"
#include "net/icmp.h"
#include "pipeline/punt.h"

namespace cachewire::control {

struct AnswerCounters {
    std::uint64_t echo_replies = 0, errors = 0, resets = 0, not_due = 0;
};

class Answers {
  public:
    // Kind of route that the tenant has towards an address.
    using Route = std::function<route::NextHopKind(std::uint16_t tenant, const net::Address& to)>;

    Answers(const OwnInterfaces& interfaces, Route route) : interfaces_(interfaces), route_(std::move(route)) {}

    // What answers the packet: a datagram, valid until the next call; empty: nothing does. `packet`: from the IP
    // header's first byte, as much of the datagram as kQuoteBytes or all; `mtu`: of its next hop.
    static constexpr unsigned kQuoteBytes = net::kMaxIcmp6ErrorBytes;
    std::span<const std::uint8_t> about(const pipeline::PuntRecord& record, std::span<const std::uint8_t> packet,
                                        std::uint16_t mtu);
    // Its next hop did not answer.
    std::span<const std::uint8_t> host_unreachable(const pipeline::PuntRecord& record,
                                                   std::span<const std::uint8_t> packet);
    // Turned around in place; false: its checksum is wrong.
    bool echo(const pipeline::PuntRecord& record, std::span<std::uint8_t> packet);

    [[nodiscard]] const AnswerCounters& counters() const noexcept { return counters_; }

  private:
    std::span<const std::uint8_t> error(const pipeline::PuntRecord& record, std::span<const std::uint8_t> packet,
                                        net::IcmpError error, std::uint32_t value);
    std::span<const std::uint8_t> reset(const pipeline::PuntRecord& record, std::span<const std::uint8_t> packet);
    std::span<const std::uint8_t> not_local(const pipeline::PuntRecord& record, std::span<const std::uint8_t> packet,
                                            std::uint8_t proto);
    [[nodiscard]] bool is_host(std::uint16_t tenant, const net::Address& source) const;

    const OwnInterfaces& interfaces_;
    Route route_;
    AnswerCounters counters_;
    std::array<std::uint8_t, kQuoteBytes> out_{};
};

}  // namespace cachewire::control
