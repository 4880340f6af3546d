// SPDX-License-Identifier: BSD-3-Clause
#include "port/port.h"

#include <algorithm>

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>

#include "base/error.h"

namespace cachewire::port {

namespace {

std::uint64_t pool_bytes(unsigned mbufs, unsigned mbuf_size) {
    const auto element = static_cast<std::uint32_t>(sizeof(rte_mbuf) + mbuf_size);
    return std::uint64_t{mbufs} * rte_mempool_calc_obj_size(element, 0, nullptr);
}

std::string how_to_get(std::uint64_t bytes) {
    const std::uint64_t mib = (bytes >> 20) + 1;
    if (rte_eal_has_hugepages() == 0)
        return fmt::format(
            "give EAL more with `-m {}` (what it has now, plus this), or set `memory: {{mbufs: N}}` lower",
            mib + mib / 2 + 64);
    // A tenth on top: the pool's own ring, page ends.
    return fmt::format(
        "reserve huge pages with `echo N > /proc/sys/vm/nr_hugepages`, N at least {} more 2 MB pages than now, or set "
        "`memory: {{mbufs: N}}` lower",
        (mib + mib / 10) / 2 + 1);
}

std::string on_socket(int socket_id) {
    return socket_id == SOCKET_ID_ANY ? "" : fmt::format(" on socket {}", socket_id);
}

std::string explain(int error, unsigned mbufs, unsigned mbuf_size, int socket_id) {
    const std::uint64_t bytes = pool_bytes(mbufs, mbuf_size);
    switch (error) {
        case ENOMEM:
            return fmt::format("{} mbufs of {} bytes need {} MiB{}, which EAL doesn't have: {}", mbufs, mbuf_size,
                               (bytes >> 20) + 1, on_socket(socket_id), how_to_get(bytes));
        case EEXIST:
            return "a pool of that name exists already";
        case ENOENT:
        case EINVAL:
            return fmt::format(
                "{}; is the mempool driver there? EAL loads librte_mempool_ring.so from its plug-in folder",
                rte_strerror(error));
        default:
            return rte_strerror(error);
    }
}

// As rte_pktmbuf_pool_create, but for the flag. On failure nullptr and rte_errno.
rte_mempool* create(const std::string& name, unsigned mbufs, unsigned cache, unsigned mbuf_size, int socket_id,
                    unsigned flags) {
    const auto element = static_cast<unsigned>(sizeof(rte_mbuf) + mbuf_size);
    rte_mempool* pool = rte_mempool_create_empty(name.c_str(), mbufs, element, cache, sizeof(rte_pktmbuf_pool_private),
                                                 socket_id, flags);
    if (pool == nullptr) return nullptr;
    int rc = rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), nullptr);
    if (rc == 0) {
        rte_pktmbuf_pool_private room{};
        room.mbuf_data_room_size = static_cast<std::uint16_t>(mbuf_size);
        rte_pktmbuf_pool_init(pool, &room);
        rc = rte_mempool_populate_default(pool);
    }
    if (rc < 0) {
        rte_mempool_free(pool);
        rte_errno = -rc;
        return nullptr;
    }
    rte_mempool_obj_iter(pool, rte_pktmbuf_init, nullptr);
    return pool;
}

}  // namespace

// Without a NIC that reads by physical address the buffers lie side by side. Else DPDK lets none go over a page of
// memory, and with 4 KB pages (--no-huge) 42 % of the pool is gaps.
rte_mempool* make_mempool(const std::string& name, unsigned mbufs, unsigned cache, unsigned mbuf_size, int socket_id,
                          bool for_nics) {
    // DPDK answers these two with a bare EINVAL.
    const unsigned max_cache = std::min<unsigned>(RTE_MEMPOOL_CACHE_MAX_SIZE, mbufs * 2 / 3);
    if (cache > max_cache)
        throw base::MachineError(fmt::format("mempool {}: a cache of {} is too large for {} mbufs: at most {}", name,
                                             cache, mbufs, max_cache));
    if (mbuf_size <= RTE_PKTMBUF_HEADROOM || mbuf_size > UINT16_MAX)
        throw base::MachineError(fmt::format("mempool {}: an mbuf size of {} is not between {} and {}", name, mbuf_size,
                                             RTE_PKTMBUF_HEADROOM + 1, UINT16_MAX));
    rte_mempool* pool = create(name, mbufs, cache, mbuf_size, socket_id, for_nics ? 0 : RTE_MEMPOOL_F_NO_IOVA_CONTIG);
    if (pool == nullptr)
        throw base::MachineError(fmt::format("mempool {}: {}", name, explain(rte_errno, mbufs, mbuf_size, socket_id)));
    return pool;
}

bool lies_side_by_side(rte_mempool* pool) {
    std::uintptr_t end = 0;
    rte_mempool_obj_iter(
        pool,
        [](rte_mempool* of, void* last, void* mbuf, unsigned) {
            auto& so_far = *static_cast<std::uintptr_t*>(last);
            so_far = std::max(so_far, reinterpret_cast<std::uintptr_t>(mbuf) + of->elt_size + of->trailer_size);
        },
        &end);
    const auto begin = reinterpret_cast<std::uintptr_t>(STAILQ_FIRST(&pool->mem_list)->addr);
    const std::uint64_t each = pool->header_size + pool->elt_size + pool->trailer_size;
    return pool->nb_mem_chunks == 1 && end <= begin + pool->populated_size * each;
}

}  // namespace cachewire::port
