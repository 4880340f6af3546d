#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Files that a configuration is made of: itself, and what it names beside itself.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace cachewire::config {

// The whole file, or in `why` what is wrong with it. Regular files of at most `max_bytes` only: a pipe or a device may
// never end.
std::optional<std::string> read_text_file(const std::string& path, std::size_t max_bytes, std::string& why);

// A name inside the file `from`: relative ones start in that file's folder.
std::string beside(const std::string& from, std::string_view name);

}  // namespace cachewire::config
