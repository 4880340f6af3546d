#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// EAL's command line, put together from three places: the file's `eal:`, the devices of its `ports:`, and the command
// line. Options that mean the same thing or exclude each other form a group; one on the command line replaces the
// file's whole group, because EAL takes such options once. Pure functions: no EAL, no machine.
#include <string>
#include <string_view>
#include <vector>

#include "app/eal_options.h"
#include "base/error.h"
#include "port/port.h"

namespace cachewire::app {

struct EalSources {
    std::vector<std::string> file;          // `eal:`
    std::vector<port::Device> devices;      // of `ports:`
    std::vector<std::string> command_line;  // before "--"
};

// In EAL's order: file, ports, command line. Throws base::Error: status configuration for what the file got wrong,
// usage for the command line.
std::vector<std::string> merge_eal_arguments(const EalSources& sources);

// What a start with the file alone would refuse, as far as that can be told without EAL. `at`: the argument's index.
std::vector<OptionProblem> judge_file(const std::vector<std::string>& file, const std::vector<port::Device>& devices);

// EAL refused an argument and logged why: status configuration when it came from the file, else usage. EAL does not
// always name the option; then the command line, if it has any, is the nearer suspect.
base::ExitStatus who_is_wrong(const EalSources& sources, std::string_view log);

// -h, -v: EAL prints and ends the process.
bool asks_for_help(const std::vector<std::string>& arguments);

// One line that a shell would take as it stands.
std::string to_shell(const std::vector<std::string>& arguments);

// Secondary processes attach to memory that both share. Empty, or the option that rules it out.
std::string unshared_by(const std::vector<std::string>& arguments);

}  // namespace cachewire::app
