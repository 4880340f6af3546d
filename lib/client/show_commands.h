#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// show: one view, once or as rates.
#include "client/commands.h"

namespace cachewire::client {

void declare_show(void* cli_app, Arguments& arguments);
int run_show(Context& context, const Arguments& arguments);

}  // namespace cachewire::client
