// SPDX-License-Identifier: BSD-3-Clause
#include "port/own_descriptors.h"

#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>

namespace cachewire::port {

std::vector<int> own_descriptors() {
    std::vector<int> all;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
        const std::string name = entry.path().filename();
        int number = -1;
        if (std::from_chars(name.data(), name.data() + name.size(), number).ec == std::errc{}) all.push_back(number);
    }
    return all;
}

}  // namespace cachewire::port
