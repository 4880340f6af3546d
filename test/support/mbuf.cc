// SPDX-License-Identifier: BSD-3-Clause
#include "support/mbuf.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include <rte_mempool.h>

#include "support/eal.h"

namespace cachewire::test {

namespace {

MbufPtr make_segment(std::span<const std::uint8_t> bytes, rte_mempool* pool) {
    MbufPtr mbuf(rte_pktmbuf_alloc(pool));
    if (!mbuf) throw std::runtime_error("the test's pool is empty");
    if (bytes.size() > rte_pktmbuf_tailroom(mbuf.get())) throw std::length_error("more bytes than a segment holds");
    std::copy(bytes.begin(), bytes.end(), rte_pktmbuf_mtod(mbuf.get(), std::uint8_t*));
    mbuf->data_len = static_cast<std::uint16_t>(bytes.size());
    mbuf->pkt_len = static_cast<std::uint32_t>(bytes.size());
    return mbuf;
}

}  // namespace

rte_mempool* test_pool() {
    static rte_mempool* const pool = [] {
        ensure_eal();
        rte_mempool* p = rte_pktmbuf_pool_create("test_pool", kTestMbufs, 0, 0, kTestDataRoom, 0);
        if (p == nullptr) throw std::runtime_error("rte_pktmbuf_pool_create failed");
        return p;
    }();
    return pool;
}

unsigned mbufs_in_use() { return rte_mempool_in_use_count(test_pool()); }

MbufPtr make_mbuf(std::span<const std::uint8_t> bytes, rte_mempool* pool) { return make_segment(bytes, pool); }

MbufPtr make_mbuf(std::span<const std::uint8_t> bytes, std::span<const std::size_t> cuts, rte_mempool* pool) {
    std::vector<std::size_t> ends(cuts.begin(), cuts.end());
    ends.push_back(bytes.size());
    MbufPtr first;
    std::size_t from = 0;
    for (const std::size_t end : ends) {
        MbufPtr segment = make_segment(bytes.subspan(from, end - from), pool);
        from = end;
        if (!first) {
            first = std::move(segment);
        } else if (rte_pktmbuf_chain(first.get(), segment.get()) == 0) {
            static_cast<void>(segment.release());  // the chain's now
        } else {
            throw std::length_error("more segments than a chain holds");
        }
    }
    return first;
}

Bytes bytes_of(const rte_mbuf* mbuf) {
    Bytes bytes;
    for (; mbuf != nullptr; mbuf = mbuf->next) {
        const auto* data = rte_pktmbuf_mtod(mbuf, const std::uint8_t*);
        bytes.insert(bytes.end(), data, data + mbuf->data_len);
    }
    return bytes;
}

}  // namespace cachewire::test
