// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/mbuf_layout.h"

#include <rte_errno.h>
#include <rte_mbuf_dyn.h>

#include "base/error.h"
#include "pipeline/receive.h"

namespace cachewire::pipeline {

std::unique_ptr<MbufBurst> make_mbuf_burst() {
    const rte_mbuf_dynfield field = {
        .name = "cachewire_metadata", .size = sizeof(MbufFields), .align = alignof(MbufFields), .flags = 0};
    const int offset = rte_mbuf_dynfield_register(&field);  // the offset it has, when it is registered already
    if (offset < 0) base::check(-rte_errno, "rte_mbuf_dynfield_register (pipeline.metadata: mbuf_dynfield)");
    return std::make_unique<MbufBurst>(static_cast<std::size_t>(offset));
}

unsigned receive_by_mbuf(WorkerState& worker, const Snapshot& snapshot, const RxQueue& queue,
                         std::uint64_t budget) noexcept {
    return receive(worker, snapshot, queue, *worker.mbuf_burst, budget);
}

}  // namespace cachewire::pipeline
