// SPDX-License-Identifier: BSD-3-Clause
#include "port/free_mbufs.h"

#include <array>

#include "port/port.h"
#include "support/catch.h"
#include "support/eal.h"

namespace cachewire::port {

TEST_CASE("free: packets of every kind go back to their pools, each once", "[port]") {
    test::ensure_eal();
    rte_mempool* const pools[] = {make_mempool("free_a", 255, 0, 2176, SOCKET_ID_ANY),
                                  make_mempool("free_b", 255, 0, 2176, SOCKET_ID_ANY)};
    const auto taken = [&] { return rte_mempool_in_use_count(pools[0]) + rte_mempool_in_use_count(pools[1]); };
    std::array<rte_mbuf*, kMaxFree> mbufs;
    for (std::size_t i = 0; i < mbufs.size(); ++i)
        REQUIRE((mbufs[i] = rte_pktmbuf_alloc(pools[i % 3 == 0])) != nullptr);
    rte_mbuf* const tail = rte_pktmbuf_alloc(pools[1]);
    REQUIRE(rte_pktmbuf_append(mbufs[5], 10) != nullptr);
    REQUIRE(rte_pktmbuf_append(tail, 10) != nullptr);
    REQUIRE(rte_pktmbuf_chain(mbufs[5], tail) == 0);
    rte_pktmbuf_refcnt_update(mbufs[9], 1);  // somebody else's as well
    rte_mbuf* const shown = rte_pktmbuf_alloc(pools[0]);
    rte_pktmbuf_attach(mbufs[13], shown);  // its data is in another's buffer
    REQUIRE(taken() == kMaxFree + 2);

    free_mbufs(mbufs);
    CHECK(taken() == 2);  // mbufs[9] and `shown` are still held
    CHECK(rte_mbuf_refcnt_read(mbufs[9]) == 1);
    CHECK(rte_mbuf_refcnt_read(shown) == 1);
    rte_pktmbuf_free(mbufs[9]);
    rte_pktmbuf_free(shown);
    CHECK(taken() == 0);
    free_mbufs({});

    // What comes out again is fresh.
    for (rte_mbuf*& mbuf : mbufs) REQUIRE((mbuf = rte_pktmbuf_alloc(pools[0])) != nullptr);
    for (const rte_mbuf* mbuf : mbufs) {
        CHECK(mbuf->next == nullptr);
        CHECK(mbuf->nb_segs == 1);
        CHECK(RTE_MBUF_DIRECT(mbuf));
    }
    free_mbufs(mbufs);
    for (rte_mempool* pool : pools) rte_mempool_free(pool);
}

}  // namespace cachewire::port
