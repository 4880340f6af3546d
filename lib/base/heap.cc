// SPDX-License-Identifier: BSD-3-Clause
#include "base/heap.h"

#include <malloc.h>

namespace cachewire::base {

void keep_freed_memory() noexcept {
#ifdef __GLIBC__
    mallopt(M_MMAP_MAX, 0);         // a mapping of its own goes back when it is freed
    mallopt(M_TRIM_THRESHOLD, -1);  // the heap's end never does
    mallopt(M_ARENA_MAX, 1);        // another thread's heap does when it is empty
#endif
}

}  // namespace cachewire::base
