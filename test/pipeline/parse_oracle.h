#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The slow parser that the real one is held against: byte by byte, in the order of the RFCs, no wide loads, no flags. A
// read past the frame throws. Knows frames in one piece and no device's help.
#include <optional>

#include "net/flow_key.h"
#include "pipeline/drop_reason.h"
#include "pipeline/snapshot.h"
#include "support/packet_builder.h"

namespace cachewire::test {

struct OracleResult {
    std::optional<pipeline::DropReason> drop;
    std::uint16_t tenant = 0;
    std::uint16_t in_interface = 0;
    std::size_t l3_offset = 0, l3_length = 0, l4_offset = 0;
    bool ipv6 = false, icmp_error = false;
    std::uint8_t ttl = 0;
    net::FlowKey key;
};

OracleResult parse_slowly(const Bytes& frame, const pipeline::Port& port);

}  // namespace cachewire::test
