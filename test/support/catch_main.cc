// SPDX-License-Identifier: BSD-3-Clause
// One main for every test program. The random seed is Catch2's: printed with a failure, given again with --rng-seed.
#define CATCH_CONFIG_RUNNER
#include "support/catch.h"

int main(int argc, char** argv) { return Catch::Session().run(argc, argv); }
