// SPDX-License-Identifier: BSD-3-Clause
// cwctl: asks and steers a running cachewire from a shell. Everything it does is lib/client/.
#include <iostream>
#include <string>
#include <vector>

#include "client/commands.h"

int main(int argc, char** argv) {
    cachewire::client::Context context;
    context.out = &std::cout;
    context.err = &std::cerr;
    return cachewire::client::run_command(context, std::vector<std::string>(argv + 1, argv + argc));
}
