#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// File -> Config, or every error it has. Strict: unknown keys, wrong types, duplicate keys and dangling references are
// errors; nothing invalid becomes a default. Needs no EAL and never runs on a worker.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace cachewire::config {

struct Diagnostic {
    enum class Severity { error, warning };
    Severity severity = Severity::error;
    std::string file;
    unsigned line = 0;  // 1-based; 0: the file as a whole
    unsigned column = 0;
    std::string key_path;  // "ports[0].mtu"
    std::string text;      // what is wrong, and what is allowed
};

// "FILE:LINE:COL: error: KEY.PATH: what is wrong, and what is allowed"
std::string to_string(const Diagnostic& diagnostic);

struct LoadResult {
    std::optional<Config> config;  // empty when there is any error
    std::vector<Diagnostic> diagnostics;
    std::vector<SourceFile> sources;  // as far as they could be read, of a wrong configuration too
};

inline constexpr std::size_t kMaxFileBytes = 64u << 20;

LoadResult load_file(const std::string& path);
// `path` is used in messages only.
LoadResult load_text(std::string_view text, const std::string& path);

}  // namespace cachewire::config
