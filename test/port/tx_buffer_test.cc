// SPDX-License-Identifier: BSD-3-Clause
#include "port/tx_buffer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "support/catch.h"
#include "support/mbuf.h"
#include "support/random.h"
#include "support/ring_port.h"

using namespace cachewire;
using namespace cachewire::test;
using port::TxBuffer;

namespace {

rte_mbuf* numbered(std::uint32_t number, std::uint16_t length = 60) {
    rte_mbuf* mbuf = rte_pktmbuf_alloc(test_pool());
    REQUIRE(mbuf != nullptr);
    auto* data = rte_pktmbuf_append(mbuf, length);
    std::memcpy(data, &number, sizeof number);
    return mbuf;
}

std::uint32_t number_of(const rte_mbuf* mbuf) {
    std::uint32_t number;
    std::memcpy(&number, rte_pktmbuf_mtod(mbuf, const char*), sizeof number);
    return number;
}

}  // namespace

TEST_CASE("tx buffer: what a device leaves goes first next time, in order", "[port]") {
    const unsigned before = (test_pool(), mbufs_in_use());
    auto buffer = std::make_unique<TxBuffer>();
    std::vector<std::uint32_t> sent;
    unsigned accept = 0;
    const auto device = [&](rte_mbuf** mbufs, std::uint16_t n) -> unsigned {
        const unsigned taken = std::min<unsigned>(accept, n);
        for (unsigned i = 0; i < taken; ++i) {
            sent.push_back(number_of(mbufs[i]));
            rte_pktmbuf_free(mbufs[i]);
        }
        return taken;
    };
    for (std::uint32_t i = 0; i < 5; ++i) REQUIRE(buffer->push(numbered(i, static_cast<std::uint16_t>(60 + i))));

    std::uint64_t bytes = 0;
    CHECK(buffer->flush_with(device, bytes) == 0);
    CHECK(bytes == 0);
    CHECK(buffer->size() == 5);

    accept = 3;
    CHECK(buffer->flush_with(device, bytes) == 3);
    CHECK(bytes == 60 + 61 + 62);
    CHECK(buffer->size() == 2);

    REQUIRE(buffer->push(numbered(5, 65)));
    accept = 100;
    CHECK(buffer->flush_with(device, bytes) == 3);
    CHECK(bytes == 60 + 61 + 62 + 63 + 64 + 65);
    CHECK(buffer->size() == 0);
    CHECK(sent == std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5});
    CHECK(buffer->flush_with(device, bytes) == 0);
    CHECK(mbufs_in_use() == before);
}

TEST_CASE("tx buffer: a full one refuses and leaves the packet to the caller", "[port]") {
    const unsigned before = (test_pool(), mbufs_in_use());
    auto buffer = std::make_unique<TxBuffer>();
    for (unsigned i = 0; i < port::kTxBufferSize; ++i) REQUIRE(buffer->push(numbered(i)));
    MbufPtr extra(numbered(999));
    CHECK_FALSE(buffer->push(extra.get()));
    CHECK(buffer->size() == port::kTxBufferSize);
    extra.reset();
    CHECK(mbufs_in_use() == before + port::kTxBufferSize);
    CHECK(buffer->discard() == port::kTxBufferSize);
    CHECK(buffer->size() == 0);
    CHECK(buffer->discard() == 0);
    CHECK(mbufs_in_use() == before);
}

// B73: two million packets against a device that takes a part of each burst, or nothing.
TEST_CASE("tx buffer: a slow device loses nothing that is not counted, and no mbuf", "[port]") {
    const unsigned before = (test_pool(), mbufs_in_use());
    auto engine = random_engine();
    auto buffer = std::make_unique<TxBuffer>();
    std::uint32_t next = 0;
    std::uint64_t pushed = 0, refused = 0, sent = 0, bytes = 0;
    std::int64_t last = -1;
    bool ordered = true;
    const auto device = [&](rte_mbuf** mbufs, std::uint16_t n) -> unsigned {
        const unsigned taken = engine() % 8 == 0 ? n : static_cast<unsigned>(engine() % 40) % (n + 1u);
        for (unsigned i = 0; i < taken; ++i) {
            ordered &= static_cast<std::int64_t>(number_of(mbufs[i])) > last;
            last = number_of(mbufs[i]);
        }
        rte_pktmbuf_free_bulk(mbufs, taken);
        return taken;
    };
    while (next < 2'000'000) {
        for (unsigned i = 0; i < 32; ++i, ++next) {
            rte_mbuf* mbuf = rte_pktmbuf_alloc(test_pool());
            if (mbuf == nullptr) FAIL("the pool ran dry: mbufs leak");
            mbuf->data_len = 60;
            mbuf->pkt_len = 60;
            std::memcpy(rte_pktmbuf_mtod(mbuf, char*), &next, sizeof next);
            if (buffer->push(mbuf)) {
                ++pushed;
            } else {
                ++refused;
                rte_pktmbuf_free(mbuf);
            }
        }
        sent += buffer->flush_with(device, bytes);
    }
    CHECK(ordered);
    CHECK(refused > 0);
    CHECK(sent + buffer->size() == pushed);
    CHECK(pushed + refused == next);
    CHECK(bytes == sent * 60);
    sent += buffer->discard();
    CHECK(sent == pushed);
    CHECK(mbufs_in_use() == before);
}

TEST_CASE("tx buffer: a device with a full ring gets the rest later", "[port]") {
    const unsigned before = (test_pool(), mbufs_in_use());
    RingPort device("txbuf", 16, test_pool());  // 15 fit
    auto buffer = std::make_unique<TxBuffer>();
    for (std::uint32_t i = 0; i < 40; ++i) REQUIRE(buffer->push(numbered(i)));
    std::vector<std::uint32_t> out;
    std::uint64_t bytes = 0;
    for (int round = 0; round < 10; ++round) {
        buffer->flush(device.id(), 0, bytes);
        std::array<rte_mbuf*, 15> mbufs;
        const unsigned n = device.collect(mbufs);
        for (unsigned i = 0; i < n; ++i) out.push_back(number_of(mbufs[i]));
        rte_pktmbuf_free_bulk(mbufs.data(), n);
    }
    CHECK(out.size() == 40);
    CHECK(std::is_sorted(out.begin(), out.end()));
    CHECK(bytes == 2400);
    CHECK(buffer->size() == 0);
    CHECK(mbufs_in_use() == before);
}
