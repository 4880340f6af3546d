// SPDX-License-Identifier: BSD-3-Clause
#include "base/heap.h"

#include <cstring>
#include <memory>
#include <thread>

#include <malloc.h>
#include <unistd.h>

#include "support/catch.h"

namespace cachewire::base {
namespace {

constexpr std::size_t kBytes = 64u << 20;  // more than any threshold of the C library's

void take_and_free() {
    const std::unique_ptr<char[]> bytes(new char[kBytes]);
    std::memset(bytes.get(), 1, kBytes);
}

TEST_CASE("heap: what is freed stays the process's, another thread's too", "[heap]") {
    keep_freed_memory();
    take_and_free();
    const void* const end = sbrk(0);
    CHECK(mallinfo2().hblks == 0);  // no mapping of its own, which would go back
    take_and_free();
    CHECK(sbrk(0) == end);
    std::thread(take_and_free).join();
    CHECK(sbrk(0) == end);
    CHECK(mallinfo2().hblks == 0);
}

}  // namespace
}  // namespace cachewire::base
