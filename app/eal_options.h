#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// EAL's options, read from a list of arguments as EAL's getopt does. Pure functions.
#include <cstddef>
#include <string>
#include <vector>

#include "base/error.h"

namespace cachewire::app {

struct Option {
    std::string name;   // "l", "no-huge"; abbreviations written out
    std::string group;  // an option that is not in the table is its own group
    std::string value;
    std::vector<std::string> tokens;  // as given
    std::size_t at = 0;               // of its first token among those given
};

struct OptionProblem {
    std::size_t at;  // of the argument that is wrong
    std::string text;
};

// Throws base::Error with this status at the first that is wrong; its text begins with `where`.
std::vector<Option> read_options(const std::vector<std::string>& arguments, base::ExitStatus status,
                                 const std::string& where);
// All that is wrong with a file's.
std::vector<OptionProblem> find_problems(const std::vector<std::string>& arguments);

}  // namespace cachewire::app
