// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.h"

#include <rte_log.h>

namespace cachewire::base {

namespace {

int log_type() {
    static const int type = rte_log_register_type_and_pick_level("cachewire", RTE_LOG_INFO);
    return type;
}

}  // namespace

void log_line(LogLevel level, std::string_view text) {
    static constexpr std::uint32_t kLevel[] = {RTE_LOG_ERR, RTE_LOG_WARNING, RTE_LOG_INFO, RTE_LOG_DEBUG};
    static constexpr const char* kName[] = {"error", "warning", "info", "debug"};
    const auto i = static_cast<unsigned>(level);
    rte_log(kLevel[i], static_cast<std::uint32_t>(log_type()), "cachewire: %s: %.*s\n", kName[i],
            static_cast<int>(text.size()), text.data());
}

}  // namespace cachewire::base
