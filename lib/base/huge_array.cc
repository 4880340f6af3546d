// SPDX-License-Identifier: BSD-3-Clause
#include "base/huge_array.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <linux/mman.h>
#include <numa.h>
#include <numaif.h>
#include <sys/mman.h>

#include "base/error.h"

namespace cachewire::base {

namespace {

constexpr std::size_t kSmallPage = 4096;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t round_up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

// What the kernel thinks it can hand out without swapping; populating more would wake the OOM killer instead of
// failing.
std::size_t available_bytes() {
    std::ifstream meminfo("/proc/meminfo");
    for (std::string word; meminfo >> word;) {
        std::size_t kib = 0;
        if (word == "MemAvailable:" && meminfo >> kib) return kib * 1024;
    }
    return SIZE_MAX;  // no /proc: let the mapping itself decide
}

std::byte* map(std::size_t bytes, int extra_flags) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | extra_flags, -1, 0);
    return p == MAP_FAILED ? nullptr : static_cast<std::byte*>(p);
}

// A mapping that starts on a 2 MiB boundary, or the kernel could not merge its first and last pages.
std::byte* map_aligned(std::size_t bytes) {
    std::byte* raw = map(bytes + kHugePage, 0);
    if (raw == nullptr) return nullptr;
    const std::size_t head =
        round_up(reinterpret_cast<std::uintptr_t>(raw), kHugePage) - reinterpret_cast<std::uintptr_t>(raw);
    if (head != 0) munmap(raw, head);
    munmap(raw + head + bytes, kHugePage - head);
    return raw + head;
}

void require_node(int node) {
    if (node < 0) return;
    if (numa_available() < 0 ? node != 0 : node > numa_max_node())
        throw MachineError(fmt::format("NUMA node {} does not exist; name a socket that this machine has", node));
}

// Binds, then takes every page now. A hugetlbfs page that is missing on the node would otherwise be a SIGBUS on a
// worker.
int bind_and_populate(std::byte* data, std::size_t bytes, int node) {
    if (node >= 0 && numa_available() >= 0) {
        bitmask* nodes = numa_allocate_nodemask();
        numa_bitmask_setbit(nodes, static_cast<unsigned>(node));
        const long rc = mbind(data, bytes, MPOL_BIND, nodes->maskp, nodes->size + 1, 0);
        const int error = errno;
        numa_free_nodemask(nodes);
        // Containers often forbid mbind; first touch from wherever we run is all that is left then.
        if (rc != 0 && error != EPERM && error != ENOSYS) return error;
    }
    if (madvise(data, bytes, MADV_POPULATE_WRITE) == 0) return 0;
    if (errno != EINVAL) return errno;
    for (std::size_t at = 0; at < bytes; at += kSmallPage)  // before Linux 5.14
        *reinterpret_cast<volatile std::byte*>(data + at) = std::byte{0};
    return 0;
}

}  // namespace

std::size_t HugeArray::mapped_bytes(std::size_t bytes) noexcept {
    return round_up(bytes, bytes < kHugePage ? kSmallPage : kHugePage);
}

HugeArray::HugeArray(std::size_t bytes, int node) {
    require_node(node);
    const std::size_t size = mapped_bytes(bytes);
    const auto take = [&](std::byte* data, Pages pages) {
        if (data == nullptr) return errno;
        const int error = bind_and_populate(data, size, node);
        if (error != 0) {
            munmap(data, size);
            return error;
        }
        data_ = data;
        bytes_ = size;
        pages_ = pages;
        return 0;
    };
    if (size >= kHugePage && take(map(size, MAP_HUGETLB | MAP_HUGE_2MB), Pages::huge) == 0) return;

    const auto refuse = [&](const std::string& why) {
        throw MachineError(fmt::format("{} MiB of memory: {}; lower the capacity, or free memory or huge pages",
                                       (size + (1 << 20) - 1) >> 20, why));
    };
    const std::size_t available = available_bytes();
    if (size > available) refuse(fmt::format("only {} MiB are available", available >> 20));
    std::byte* data = size < kHugePage ? map(size, 0) : map_aligned(size);
    // Advice only: a kernel without transparent huge pages answers EINVAL and small pages do.
    if (data != nullptr && size >= kHugePage) madvise(data, size, MADV_HUGEPAGE);
    const int error = take(data, size < kHugePage ? Pages::small : Pages::transparent);
    if (error != 0) refuse(std::strerror(error));
}

HugeArray::~HugeArray() {
    if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace cachewire::base
