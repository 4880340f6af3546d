// SPDX-License-Identifier: BSD-3-Clause
#include "acl/rule.h"

namespace cachewire::acl {

bool Rule::needs_l4() const noexcept {
    return !src_ports.is_any() || !dst_ports.is_any() || tcp_flags_mask != 0 || icmp_type || icmp_code;
}

}  // namespace cachewire::acl
