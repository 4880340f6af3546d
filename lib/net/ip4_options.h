#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// IPv4 options (RFC 791 3.1): walked for their lengths only; nothing here acts on them.
#include <cstdint>
#include <span>

namespace cachewire::net {

// True when every option lies inside and none of them routes by its sender's will (LSRR, SSRR: RFC 7126 4.3, 4.4).
bool ip4_options_ok(std::span<const std::uint8_t> options) noexcept;

}  // namespace cachewire::net
