// SPDX-License-Identifier: BSD-3-Clause
#include "control/handoff_mesh.h"

#include <algorithm>
#include <new>

namespace cachewire::control {

namespace {

using pipeline::HandoffRing;
using pipeline::SendRing;
using pipeline::WorkerState;

// Places rings one behind the other.
class Shelf {
  public:
    explicit Shelf(std::byte* at) : at_(at) {}
    template <class Ring>
    Ring* put() {
        static_assert(sizeof(Ring) % base::kCacheLine == 0);
        auto* ring = new (at_) Ring;
        at_ += sizeof(Ring);
        return ring;
    }

  private:
    std::byte* at_;
};

// A worker that holds a TX queue which others send by.
template <class F>
void for_each_send(std::span<const PortQueues> ports, unsigned workers, F&& f) {
    for (const PortQueues& port : ports)
        for (unsigned from = 0; from < workers; ++from) {
            const unsigned holder = pipeline::tx_place(from, port.port, port.tx, workers).holder;
            if (holder != from) f(from, holder, port.port);
        }
}

}  // namespace

std::vector<std::vector<pipeline::RxQueue>> assign_queues(std::span<const PortQueues> ports, unsigned workers) {
    std::vector<std::vector<pipeline::RxQueue>> queues(workers);
    unsigned next = 0;
    for (const PortQueues& port : ports)
        for (std::uint16_t queue = 0; queue < port.rx; ++queue)
            queues[next++ % workers].push_back({port.port, port.ethdev, queue});
    return queues;
}

void HandoffMesh::connect(std::span<WorkerState* const> workers, std::span<const PortQueues> ports,
                          const pipeline::Owners& owners) {
    const auto count = static_cast<unsigned>(workers.size());
    if (count < 2) return;
    std::vector<std::size_t> bytes(count, (count - 1) * sizeof(HandoffRing));
    for_each_send(ports, count, [&](unsigned, unsigned holder, std::uint16_t) { bytes[holder] += sizeof(SendRing); });
    std::vector<Shelf> shelves;
    for (unsigned w = 0; w < count; ++w) {
        memory_.emplace_back(bytes[w], workers[w]->socket);
        shelves.emplace_back(memory_.back().data());
        pipeline::Handoff& handoff = workers[w]->handoff;
        handoff.workers = count;
        handoff.owners = owners;
        handoff.peers.resize(count);
        handoff.send_out.resize(pipeline::kMaxPorts);
        handoff.send_in.resize(pipeline::kMaxPorts);
    }
    for (unsigned to = 0; to < count; ++to)
        for (unsigned from = 0; from < count; ++from) {
            if (from == to) continue;
            auto* ring = shelves[to].put<HandoffRing>();
            workers[from]->handoff.peers[to].out = ring;
            workers[to]->handoff.peers[from].in = ring;
        }
    for_each_send(ports, count, [&](unsigned from, unsigned holder, std::uint16_t port) {
        auto* ring = shelves[holder].put<SendRing>();
        workers[from]->handoff.send_out[port] = ring;
        workers[holder]->handoff.send_in[port].push_back(ring);
    });
    for (const PortQueues& port : ports) linked_[port.port] = port.tx;
}

void HandoffMesh::add_port(std::span<WorkerState* const> workers, const PortQueues& port) {
    const auto count = static_cast<unsigned>(workers.size());
    if (count < 2) return;
    const auto [known, fresh] = linked_.try_emplace(port.port, port.tx);
    if (!fresh && known->second == port.tx) return;
    known->second = port.tx;
    for (WorkerState* worker : workers) {
        worker->handoff.send_out[port.port] = nullptr;
        worker->handoff.send_in[port.port].clear();
    }
    for_each_send({&port, 1}, count, [&](unsigned from, unsigned holder, std::uint16_t index) {
        memory_.emplace_back(sizeof(SendRing), workers[holder]->socket);
        auto* ring = new (memory_.back().data()) SendRing;
        workers[from]->handoff.send_out[index] = ring;
        workers[holder]->handoff.send_in[index].push_back(ring);
    });
}

std::size_t HandoffMesh::bytes() const noexcept {
    std::size_t sum = 0;
    for (const base::HugeArray& memory : memory_) sum += memory.size();
    return sum;
}

// Two full rings a worker: more of them full at once means workers that stand still, and a pool that is empty then is
// the device's rx_nombuf.
std::size_t HandoffMesh::mbufs(std::size_t workers, std::size_t ports) noexcept {
    if (workers < 2) return 0;
    return workers * (std::min<std::size_t>(workers - 1, 2) * pipeline::kHandoffSlots + ports * pipeline::kSendSlots);
}

}  // namespace cachewire::control
