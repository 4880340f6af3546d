#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What is changed at run time and stands in no file: memoize, block, unblock, log.
#include "client/commands.h"

namespace cachewire::client {

void declare_rebalance(void* cli_app, Arguments& arguments);
int run_rebalance(Context& context, const Arguments& arguments);
void declare_memoize(void* cli_app, Arguments& arguments);
int run_memoize(Context& context, const Arguments& arguments);
void declare_block(void* cli_app, Arguments& arguments);
int run_block(Context& context, const Arguments& arguments);
void declare_unblock(void* cli_app, Arguments& arguments);
int run_unblock(Context& context, const Arguments& arguments);
void declare_log(void* cli_app, Arguments& arguments);
int run_log(Context& context, const Arguments& arguments);

}  // namespace cachewire::client
