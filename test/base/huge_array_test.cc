// SPDX-License-Identifier: BSD-3-Clause
#include "base/huge_array.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/error.h"
#include "support/catch.h"

using cachewire::base::HugeArray;

TEST_CASE("huge_array: what is mapped is whole pages", "[base]") {
    CHECK(HugeArray::mapped_bytes(1) == 4096);
    CHECK(HugeArray::mapped_bytes(4096) == 4096);
    CHECK(HugeArray::mapped_bytes((2 << 20) - 1) == 2 << 20);
    CHECK(HugeArray::mapped_bytes(2 << 20) == 2 << 20);
    CHECK(HugeArray::mapped_bytes((2 << 20) + 1) == 4 << 20);
}

TEST_CASE("huge_array: memory is zeroed, aligned and writable to its end", "[base]") {
    for (const std::size_t bytes : {std::size_t{100}, std::size_t{5} << 20}) {
        HugeArray array(bytes, -1);
        REQUIRE(array.size() == HugeArray::mapped_bytes(bytes));
        const std::size_t page = bytes < (2 << 20) ? 4096 : 2 << 20;
        CHECK(reinterpret_cast<std::uintptr_t>(array.data()) % page == 0);
        CHECK((array.pages() == HugeArray::Pages::small) == (page == 4096));
        CHECK(std::all_of(array.data(), array.data() + array.size(), [](std::byte b) { return b == std::byte{0}; }));
        std::fill(array.data(), array.data() + array.size(), std::byte{0xab});
        CHECK(array.data()[array.size() - 1] == std::byte{0xab});
    }
}

TEST_CASE("huge_array: node 0 is always there, one that does not exist is refused by name", "[base]") {
    CHECK(HugeArray(1 << 20, 0).data() != nullptr);
    CHECK_THROWS_AS(HugeArray(1 << 20, 1000), cachewire::base::MachineError);
    try {
        HugeArray array(1 << 20, 1000);
    } catch (const cachewire::base::MachineError& e) {
        CHECK(std::string(e.what()).find("NUMA node 1000") != std::string::npos);
    }
}

TEST_CASE("huge_array: more than the machine has is an error that names the size", "[base]") {
    try {
        HugeArray array(std::size_t{1} << 44, -1);
        FAIL("16 TiB were mapped");
    } catch (const cachewire::base::MachineError& e) {
        CHECK(std::string(e.what()).find("16777216 MiB") != std::string::npos);
    }
}

TEST_CASE("huge_array: moving hands the mapping over", "[base]") {
    HugeArray first(4096, -1);
    std::byte* const data = first.data();
    HugeArray second(std::move(first));
    CHECK(second.data() == data);
    HugeArray third;
    third = std::move(second);
    CHECK(third.data() == data);
    third.data()[0] = std::byte{1};
}
