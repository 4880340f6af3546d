#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// `cachewire import FORMAT FILE...`: other forwarders' files as our YAML. What has no counterpart is left out and
// named.
#include <string>
#include <string_view>
#include <vector>

namespace cachewire::app {

struct Imported {
    std::string yaml;                // one or more top-level sections
    std::vector<std::string> notes;  // "FILE:LINE:COL: ..."; what was left out or means something else
    bool complete = true;            // false: something was left out
};

// A list for each file, named after it.
Imported import_l3fwd_acl(const std::vector<std::string>& files);

// A whole configuration: ports, links and routes.
Imported import_l3fwd(const std::vector<std::string>& files);

// YAML to stdout, notes to stderr; the exit status says whether all of it could be translated.
int run_import(const std::string& format, const std::vector<std::string>& files);

}  // namespace cachewire::app
