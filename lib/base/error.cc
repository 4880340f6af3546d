// SPDX-License-Identifier: BSD-3-Clause
#include "base/error.h"

#include <fmt/format.h>
#include <rte_errno.h>

namespace cachewire::base {

int check(int rc, const std::string& what) {
    if (rc < 0) throw MachineError(fmt::format("{}: {}", what, rte_strerror(-rc)));
    return rc;
}

void* check_pointer(void* pointer, const std::string& what) {
    if (pointer == nullptr) throw MachineError(fmt::format("{}: {}", what, rte_strerror(rte_errno)));
    return pointer;
}

}  // namespace cachewire::base
