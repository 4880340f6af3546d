// SPDX-License-Identifier: BSD-3-Clause
#include "control/slow_path/frame_sender.h"

#include <cstring>

#include <rte_mbuf.h>

namespace cachewire::control {

using pipeline::Return;
using pipeline::ReturnKind;

FrameSender::FrameSender(const std::vector<pipeline::ReturnRing*>& workers, rte_mempool* pool) : pool_(pool) {
    workers_.reserve(workers.size());
    for (auto* ring : workers) workers_.push_back({ring, {}});
}

FrameSender::~FrameSender() {
    for (Worker& worker : workers_)
        for (const Return& what : worker.waiting) rte_pktmbuf_free(what.mbuf);
}

rte_mbuf* FrameSender::make(std::span<const std::uint8_t> bytes) noexcept {
    rte_mbuf* mbuf = rte_pktmbuf_alloc(pool_);
    char* data = mbuf == nullptr ? nullptr : rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(bytes.size()));
    if (data == nullptr) {
        rte_pktmbuf_free(mbuf);
        ++refused_;
        return nullptr;
    }
    std::memcpy(data, bytes.data(), bytes.size());
    return mbuf;
}

bool FrameSender::send(const OwnInterface& by, const net::Mac& to, std::uint16_t ether_type,
                       std::span<const std::uint8_t> payload, unsigned worker) {
    rte_mbuf* mbuf = make(payload);
    if (mbuf == nullptr) return false;
    by.write_ethernet(
        to, ether_type,
        reinterpret_cast<std::uint8_t*>(rte_pktmbuf_prepend(mbuf, static_cast<std::uint16_t>(by.l2_bytes()))));
    give(worker, {.mbuf = mbuf, .kind = ReturnKind::transmit, .tenant = by.tenant, .port = by.port});
    return true;
}

void FrameSender::give(unsigned worker, const Return& what) {
    Worker& to = workers_[worker];
    if (to.waiting.empty() && to.ring->push(what)) return;
    if (what.kind == ReturnKind::transmit && to.waiting.size() >= kMaxWaiting) {
        rte_pktmbuf_free(what.mbuf);
        ++refused_;
        return;
    }
    to.waiting.push_back(what);
}

void FrameSender::publish() noexcept {
    for (Worker& worker : workers_) {
        while (!worker.waiting.empty() && worker.ring->push(worker.waiting.front())) worker.waiting.pop_front();
        worker.ring->publish();
    }
}

}  // namespace cachewire::control
