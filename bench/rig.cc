// SPDX-License-Identifier: BSD-3-Clause
#include "rig.h"

#include <bit>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/clock.h"
#include "by_stage.h"
#include "config/load.h"
#include "control/workers.h"
#include "port/port.h"
#include "support/packet_builder.h"

namespace cachewire::bench {

namespace {

constexpr unsigned kBurst = 32;

config::Config load(const std::string& text) {
    config::LoadResult loaded = config::load_text(text, "bench.yaml");
    if (loaded.config) return *loaded.config;
    std::string errors;
    for (const auto& diagnostic : loaded.diagnostics) errors += config::to_string(diagnostic) + "\n";
    throw std::runtime_error(errors);
}

unsigned ring_size(std::size_t frames) { return static_cast<unsigned>(std::bit_ceil(frames + 1)); }

}  // namespace

Rig::Rig(const std::string& name, const std::string& config_text, Frames frames, std::function<void(Frames&)> vary)
    : frames_(std::move(frames)),
      vary_(std::move(vary)),
      pool_(
          port::make_mempool("bench_" + name, static_cast<unsigned>(frames_.size()) + 1024, 256, 2176, SOCKET_ID_ANY)),
      west_("west_" + name, ring_size(frames_.size()), pool_),
      east_("east_" + name, ring_size(frames_.size()), pool_),
      builder_(std::make_unique<control::SnapshotBuilder>(
          std::map<std::string, control::PortInfo>{{"west", {west_.id(), 1, test::kRouterMac}},
                                                   {"east", {east_.id(), 1, test::kRouterMac}}},
          net::HashSeed{}, SOCKET_ID_ANY)),
      routes_(*builder_, publisher_) {
    const config::Config config = load(config_text);
    auto pass = builder_->begin(config, 1);
    builder_->complete(*pass);
    publisher_.publish(builder_->commit(std::move(pass)));
    builder_->grace_period_over();  // nobody had seen a snapshot before
    auto state = control::make_worker_state(rte_lcore_id(), config.sessions.capacity);
    if (config.pipeline.metadata == config::Metadata::mbuf_dynfield)
        state->mbuf_burst = cachewire::pipeline::make_mbuf_burst();
    state_ = state.get();
    worker_ = std::make_unique<cachewire::pipeline::Worker>(
        std::move(state),
        std::vector<cachewire::pipeline::RxQueue>{{*builder_->registry().ports.find("west"), west_.id(), 0}},
        publisher_.add_worker());
    worker_->begin();
    mbufs_.resize(frames_.size());
    take_mbufs();
}

void Rig::take_mbufs() {
    if (rte_pktmbuf_alloc_bulk(pool_, mbufs_.data(), static_cast<unsigned>(mbufs_.size())) != 0)
        throw std::runtime_error("not enough mbufs");
}

// The wire's work, not measured: each mbuf becomes a fresh frame again. Writing leaves headers where they fit: some
// thousand of them in L2, not in L1.
void Rig::refill() {
    if (vary_) vary_(frames_);
    for (std::size_t i = 0; i < mbufs_.size(); ++i) {
        rte_pktmbuf_reset(mbufs_[i]);
        std::memcpy(rte_pktmbuf_append(mbufs_[i], static_cast<std::uint16_t>(frames_[i].size())), frames_[i].data(),
                    frames_[i].size());
    }
    if (west_.offer(mbufs_) != mbufs_.size()) throw std::runtime_error("the ring did not take all frames");
    unsigned sum = 0;
    for (std::size_t i = 0; i < evicting_.size(); i += base::kCacheLine) sum += evicting_[i];
    asm volatile("" : : "r"(sum));
}

void Rig::collect() {
    const unsigned n = east_.collect(mbufs_);
    if (all_dropped_ && n == 0) return take_mbufs();
    if (n != (all_dropped_ ? 0 : mbufs_.size()))
        throw std::runtime_error(
            fmt::format("{} of {} frames came out; the bench's configuration loses packets", n, mbufs_.size()));
}

Slice Rig::run(const std::function<void()>& step) {
    refill();
    const std::uint64_t begin = base::now_tsc();
    for (std::size_t done = 0; done < mbufs_.size(); done += kBurst) step();
    const std::uint64_t end = base::now_tsc();
    collect();
    return {end - begin, mbufs_.size()};
}

std::vector<std::uint8_t> Rig::frame(unsigned i) const {
    const auto* bytes = rte_pktmbuf_mtod(mbufs_[i], const std::uint8_t*);
    return {bytes, bytes + mbufs_[i]->data_len};
}

Slice Rig::io() {
    return run([this] {
        rte_mbuf* burst[kBurst];
        const std::uint16_t n = rte_eth_rx_burst(west_.id(), 0, burst, kBurst);
        rte_eth_tx_burst(east_.id(), 0, burst, n);
    });
}

namespace {
// The name that callgrind is told to collect under.
[[gnu::noinline]] void measured_by_stage(cachewire::pipeline::WorkerState& worker,
                                         const cachewire::pipeline::Snapshot& snapshot,
                                         const cachewire::pipeline::RxQueue& queue) noexcept {
    iterate_by_stage(worker, snapshot, queue);
}
}  // namespace

Slice Rig::by_stage() {
    return run([this] { measured_by_stage(*state_, snapshot(), queue()); });
}

Slice Rig::pipeline() {
    return run([this] { worker_->iterate(); });
}

}  // namespace cachewire::bench
