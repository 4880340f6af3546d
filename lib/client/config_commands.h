#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// reload, confirm, rollback, and what the files say against what runs.
#include "client/commands.h"

namespace cachewire::client {

void declare_reload(void* cli_app, Arguments& arguments);
int run_reload(Context& context, const Arguments& arguments);
void declare_nothing(void* cli_app, Arguments& arguments);
int run_confirm(Context& context, const Arguments& arguments);
int run_rollback(Context& context, const Arguments& arguments);
// `show config --diff`: kRefused where something differs.
int show_config_diff(Context& context);

}  // namespace cachewire::client
