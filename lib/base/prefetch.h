#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Prefetch into all cache levels. A prefetch of any address is harmless, so callers need no bounds check.

namespace cachewire::base {

inline void prefetch_read(const void* p) noexcept { __builtin_prefetch(p, 0, 3); }
inline void prefetch_write(const void* p) noexcept { __builtin_prefetch(p, 1, 3); }

}  // namespace cachewire::base
