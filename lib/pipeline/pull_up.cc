// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/pull_up.h"

#include <algorithm>
#include <cstring>

#include <rte_mbuf.h>

namespace cachewire::pipeline {

namespace {

// Bytes and lengths of a segment with another owner are not ours to change.
bool is_ours(const rte_mbuf* segment) noexcept {
    return rte_mbuf_refcnt_read(segment) == 1 && (segment->ol_flags & (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL)) == 0;
}

}  // namespace

bool pull_up(rte_mbuf* mbuf, std::uint32_t wanted) noexcept {
    if (mbuf->data_len >= wanted) return true;
    if (!is_ours(mbuf) || wanted - mbuf->data_len > rte_pktmbuf_tailroom(mbuf)) return false;
    while (mbuf->data_len < wanted) {
        rte_mbuf* const segment = mbuf->next;
        if (segment == nullptr || !is_ours(segment)) return false;
        const auto n = static_cast<std::uint16_t>(std::min<std::uint32_t>(wanted - mbuf->data_len, segment->data_len));
        std::memcpy(rte_pktmbuf_mtod_offset(mbuf, std::uint8_t*, mbuf->data_len),
                    rte_pktmbuf_mtod(segment, const std::uint8_t*), n);
        mbuf->data_len = static_cast<std::uint16_t>(mbuf->data_len + n);
        segment->data_off = static_cast<std::uint16_t>(segment->data_off + n);
        segment->data_len = static_cast<std::uint16_t>(segment->data_len - n);
        if (segment->data_len == 0) {
            mbuf->next = segment->next;
            --mbuf->nb_segs;
            segment->next = nullptr;
            rte_pktmbuf_free_seg(segment);
        }
    }
    return true;
}

}  // namespace cachewire::pipeline
