#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Port and tag stack -> tenant and interface: the one look-up, for the parser and for whoever explains what it would
// do.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "pipeline/snapshot.h"

namespace cachewire::pipeline {

inline constexpr std::uint16_t kAnyVlan = 0xffff;       // TaggedAttachment::outer of a wildcard
inline constexpr std::uint16_t kReservedVlan = 0x0fff;  // IEEE 802.1Q table 9-2: never on the wire

// `outer` and `inner` are VLAN IDs without priority tags (ID 0 says nothing about the VLAN): 0, 0 is untagged; inner 0
// is one tag. Exact stacks first, then the wildcards in their order; a wildcard leaves the inner tag open, whatever its
// `inner` says.
inline Attachment find_attachment(const Port& port, std::uint16_t outer, std::uint16_t inner) noexcept {
    if (outer == 0) return port.untagged;
    if (outer == kReservedVlan || inner == kReservedVlan) return {};
    const auto stack = std::pair(outer, inner);
    const auto before = [](const TaggedAttachment& a, const auto& b) { return std::pair(a.outer, a.inner) < b; };
    const auto exact = std::lower_bound(port.tagged.begin(), port.tagged.end(), stack, before);
    if (exact != port.tagged.end() && exact->outer == outer && exact->inner == inner) return exact->attachment;
    for (const auto& wildcard : port.wildcards) {
        if (wildcard.outer == outer || wildcard.outer == kAnyVlan) return wildcard.attachment;
    }
    return {};
}

inline constexpr unsigned kVlanIds = 4096;

// For Port::by_vlan. A port without tagged interfaces or matches needs none.
inline std::vector<Attachment> attachments_by_vlan(const Port& port) {
    std::vector<Attachment> all;
    if (port.tagged.empty() && port.wildcards.empty()) return all;
    all.reserve(kVlanIds);
    for (std::uint16_t vlan = 0; vlan < kVlanIds; ++vlan) all.push_back(find_attachment(port, vlan, 0));
    return all;
}

}  // namespace cachewire::pipeline
