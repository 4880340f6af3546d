// SPDX-License-Identifier: BSD-3-Clause
#include "app/import.h"

#include <cstdio>

#include <fmt/format.h>

#include "base/error.h"

namespace cachewire::app {

int run_import(const std::string& format, const std::vector<std::string>& files) {
    if (format != "l3fwd-acl" && format != "l3fwd")
        throw base::Error(base::ExitStatus::usage,
                          fmt::format("import {}: not supported yet; now: l3fwd, l3fwd-acl", format));
    const Imported imported = format == "l3fwd" ? import_l3fwd(files) : import_l3fwd_acl(files);
    for (const std::string& note : imported.notes) fmt::print(stderr, "{}\n", note);
    std::fputs(imported.yaml.c_str(), stdout);
    return static_cast<int>(imported.complete ? base::ExitStatus::ok : base::ExitStatus::configuration);
}

}  // namespace cachewire::app
