#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The project's version, from meson.build.

namespace cachewire::control {

inline constexpr const char* kVersion = CACHEWIRE_VERSION;

}  // namespace cachewire::control
