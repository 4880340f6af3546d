#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Catch2 v2 (bookworm) and v3 (trixie and later) under one name.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
