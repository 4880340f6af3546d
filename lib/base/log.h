#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The control plane's log: one line an event on stderr through rte_log, level by `--log-level=cachewire:LEVEL`.
// Never called on a worker.
#include <string_view>

#include <fmt/format.h>

namespace cachewire::base {

enum class LogLevel { error, warning, info, debug };
inline constexpr std::string_view kLogLevelNames[] = {"error", "warning", "info", "debug"};

// What is written from now on; of cachewire's own lines alone.
void set_log_level(LogLevel level);
LogLevel log_level();

void log_line(LogLevel level, std::string_view text);

template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
    log_line(LogLevel::error, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
    log_line(LogLevel::warning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
    log_line(LogLevel::info, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace cachewire::base
