#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Rule files that users bring along, one rule a line:
//
//   @SRC/LEN DST/LEN LOW : HIGH LOW : HIGH PROTO/MASK             deny
//   RSRC/LEN DST/LEN LOW : HIGH LOW : HIGH PROTO/MASK PORT        permit
//
// l3fwd_acl: as dpdk-l3fwd reads them, so what stands behind an @ line's protocol is not looked at; IPv6 in any form.
// classbench: behind the protocol FLAGS/MASK may stand, whose upper byte is TCP's flags or ICMP's type.
// In both, R's port is checked to be a number and has no meaning here: routes decide where a packet goes.
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/diagnostics.h"

namespace cachewire::config {

enum class RuleFormat { l3fwd_acl, classbench };

// Rules without a wrong line's; the reporter is the file's own.
std::vector<AclRule> parse_rule_file(std::string_view text, RuleFormat format, Reporter& reporter);

}  // namespace cachewire::config
