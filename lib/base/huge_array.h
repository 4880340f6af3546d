#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A zeroed anonymous mapping of its own for large tables, outside EAL's heap: hugetlbfs pages where enough are free,
// else ordinary pages that the kernel is asked to merge. Every page is there when the constructor returns, so a
// worker's first touch never faults. Owned and unmapped by one control-plane object; who reads and writes inside is
// that object's business.
#include <cstddef>
#include <utility>

namespace cachewire::base {

class HugeArray {
  public:
    enum class Pages { huge, transparent, small };  // 2 MiB hugetlbfs; ordinary with MADV_HUGEPAGE; under 2 MiB in all

    HugeArray() = default;
    // At least `bytes`, on NUMA node `node` (-1: wherever the kernel likes). Throws MachineError naming the size.
    HugeArray(std::size_t bytes, int node);
    ~HugeArray();
    HugeArray(HugeArray&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)), pages_(other.pages_) {}
    HugeArray& operator=(HugeArray&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        std::swap(pages_, other.pages_);
        return *this;
    }

    // What a request for `bytes` really maps: whole 2 MiB pages, or whole 4 KiB pages when it is smaller than one of
    // those.
    [[nodiscard]] static std::size_t mapped_bytes(std::size_t bytes) noexcept;

    [[nodiscard]] std::byte* data() const noexcept { return data_; }
    [[nodiscard]] std::size_t size() const noexcept { return bytes_; }
    [[nodiscard]] Pages pages() const noexcept { return pages_; }

  private:
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
    Pages pages_ = Pages::small;
};

}  // namespace cachewire::base
