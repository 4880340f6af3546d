// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.h"

#include <iterator>

#include <rte_log.h>

namespace cachewire::base {

namespace {

int log_type() {
    static const int type = rte_log_register_type_and_pick_level("cachewire", RTE_LOG_INFO);
    return type;
}

constexpr std::uint32_t kLevel[] = {RTE_LOG_ERR, RTE_LOG_WARNING, RTE_LOG_INFO, RTE_LOG_DEBUG};

}  // namespace

void set_log_level(LogLevel level) {
    rte_log_set_level(static_cast<std::uint32_t>(log_type()), kLevel[static_cast<unsigned>(level)]);
}

// DPDK has levels between ours: the next one that says no more.
LogLevel log_level() {
    const int set = rte_log_get_level(static_cast<std::uint32_t>(log_type()));
    unsigned level = 0;
    while (level + 1 < std::size(kLevel) && static_cast<int>(kLevel[level + 1]) <= set) ++level;
    return static_cast<LogLevel>(level);
}

void log_line(LogLevel level, std::string_view text) {
    const auto i = static_cast<unsigned>(level);
    rte_log(kLevel[i], static_cast<std::uint32_t>(log_type()), "cachewire: %s: %.*s\n", kLogLevelNames[i].data(),
            static_cast<int>(text.size()), text.data());
}

}  // namespace cachewire::base
