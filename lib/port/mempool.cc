// SPDX-License-Identifier: BSD-3-Clause
#include "port/port.h"

#include <algorithm>

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
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

}  // namespace

rte_mempool* make_mempool(const std::string& name, unsigned mbufs, unsigned cache, unsigned mbuf_size, int socket_id) {
    // DPDK answers these two with a bare EINVAL.
    const unsigned max_cache = std::min<unsigned>(RTE_MEMPOOL_CACHE_MAX_SIZE, mbufs * 2 / 3);
    if (cache > max_cache)
        throw base::MachineError(fmt::format("mempool {}: a cache of {} is too large for {} mbufs: at most {}", name,
                                             cache, mbufs, max_cache));
    if (mbuf_size <= RTE_PKTMBUF_HEADROOM || mbuf_size > UINT16_MAX)
        throw base::MachineError(fmt::format("mempool {}: an mbuf size of {} is not between {} and {}", name, mbuf_size,
                                             RTE_PKTMBUF_HEADROOM + 1, UINT16_MAX));
    rte_mempool* pool =
        rte_pktmbuf_pool_create(name.c_str(), mbufs, cache, 0, static_cast<std::uint16_t>(mbuf_size), socket_id);
    if (pool == nullptr)
        throw base::MachineError(fmt::format("mempool {}: {}", name, explain(rte_errno, mbufs, mbuf_size, socket_id)));
    return pool;
}

}  // namespace cachewire::port
