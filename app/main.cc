// SPDX-License-Identifier: BSD-3-Clause
// argv -> what to do -> exit status. Every exception ends here.
#include <cstdio>
#include <exception>

#include <fmt/format.h>

#include "app/arguments.h"
#include "app/check.h"
#include "app/import.h"
#include "app/run.h"
#include "base/error.h"

namespace cachewire::app {

namespace {

int act(const Arguments& arguments) {
    if (arguments.print) {
        std::fputs(arguments.print->c_str(), stdout);
        return static_cast<int>(base::ExitStatus::ok);
    }
    if (arguments.check) return run_check(arguments.check->file, arguments.check->json);
    if (arguments.import_files) return run_import(arguments.import_files->format, arguments.import_files->files);
    if (arguments.plan) return run_plan(*arguments.plan);
    return run(*arguments.run);
}

}  // namespace

}  // namespace cachewire::app

int main(int argc, char** argv) {
    using namespace cachewire;
    try {
        return app::act(app::parse_arguments({argv + 1, argv + argc}));
    } catch (const base::Error& error) {
        fmt::print(stderr, "cachewire: {}\n", error.what());
        return static_cast<int>(error.status());
    } catch (const std::exception& error) {
        fmt::print(stderr, "cachewire: stopped by a fault: {}\n", error.what());
        return static_cast<int>(base::ExitStatus::fault);
    }
}
