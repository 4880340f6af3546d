// SPDX-License-Identifier: BSD-3-Clause
#include "peer_wires.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_mbuf.h>

#include "base/clock.h"
#include "net/headers.h"
#include "support/packet_builder.h"
#include "traffic.h"

namespace cachewire::bench {

namespace {

namespace fs = std::filesystem;

// Large bursts: each costs a line of the ring's that the forwarder has, and one as fast as the sender would be
// measured by how often they take it from each other.
constexpr unsigned kPeerRing = 1024, kPeerBurst = 256, kMostQueues = 8;
// A ring lasts for 50 us at 20 Mpps.
constexpr unsigned kFullMicroseconds = 2;
constexpr auto kAnswerTime = std::chrono::seconds(3);
constexpr auto kConnectTime = std::chrono::milliseconds(300);
const char* const kPeerSides[] = {"west", "east"};

std::string peer_socket(const std::string& folder, unsigned side) {
    return fmt::format("{}/{}.sock", folder, kPeerSides[side]);
}

rte_mempool* make_peer_pool(const char* name, unsigned count, unsigned cache, std::uint16_t room) {
    rte_mempool* pool = rte_pktmbuf_pool_create(name, count, cache, 0, room, SOCKET_ID_ANY);
    if (pool == nullptr) throw std::runtime_error("peer: no memory for mbufs");
    return pool;
}

}  // namespace

std::string peer_device(const std::string& folder, unsigned side) {
    return fmt::format("net_memif{},role=server,socket={},socket-abstract=no,mac={}", side, peer_socket(folder, side),
                       kPeerMacs[side]);
}

PeerPort::PeerPort(std::string name, const std::string& socket, unsigned rx_queues, rte_mempool* pool)
    : name_(std::move(name)), rx_queues_(rx_queues) {
    const std::string arguments = fmt::format("role=client,socket={},socket-abstract=no{}", socket,
                                              rte_eal_has_hugepages() != 0 ? ",zero-copy=yes" : "");
    if (rte_eal_hotplug_add("vdev", name_.c_str(), arguments.c_str()) < 0 ||
        rte_eth_dev_get_port_by_name(name_.c_str(), &id_) < 0)
        throw std::runtime_error("peer: no memif port; is DPDK's memif driver installed?");
    rte_eth_conf configuration{};
    bool is_good = rte_eth_dev_configure(id_, static_cast<std::uint16_t>(rx_queues_), 1, &configuration) == 0 &&
                   rte_eth_tx_queue_setup(id_, 0, kPeerRing, 0, nullptr) == 0;
    for (std::uint16_t queue = 0; is_good && queue < rx_queues_; ++queue)
        is_good = rte_eth_rx_queue_setup(id_, queue, kPeerRing, 0, nullptr, pool) == 0;
    if (!is_good) {
        rte_eal_hotplug_remove("vdev", name_.c_str());
        throw std::runtime_error("peer: the memif port can't be set up");
    }
    // Fails where nobody listens yet: it is not connected then, and tried again.
    (void)rte_eth_dev_start(id_);
}

PeerPort::~PeerPort() {
    rte_eth_dev_stop(id_);
    rte_eth_dev_close(id_);
    rte_eal_hotplug_remove("vdev", name_.c_str());
}

bool PeerPort::is_connected() const {
    rte_eth_link link{};
    return rte_eth_link_get_nowait(id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

PeerWires::PeerWires(std::string folder, unsigned& queues) : folder_(std::move(folder)), queues_(queues) {
    rte_log_set_level_pattern("pmd.net.memif*", RTE_LOG_CRIT);  // that nobody listens yet is no news
    for (unsigned side : {0u, 1u}) fs::remove(peer_socket(folder_, side));
    received_ = make_peer_pool("peer_rx", 16383, 256, 2176);
    // As small as can be, so that what 100 k flows touch stays in L3: a line of an mbuf here, one of a frame there.
    flows_ = make_peer_pool("peer_flows", kPeerFlows, 0, 64);
    frames_.resize(kPeerFlows);
    if (rte_pktmbuf_alloc_bulk(flows_, frames_.data(), kPeerFlows) != 0) throw std::runtime_error("peer: no mbufs");
    std::vector<std::uint8_t> frame = udp_frames(1)[0];
    std::copy_n(test::kRouterMac.bytes.begin(), 6, frame.begin());
    for (unsigned i = 0; i < kPeerFlows; ++i) {
        set_flow(frame, i);
        frames_[i]->data_off = 0;
        std::copy(frame.begin(), frame.end(), rte_pktmbuf_append(frames_[i], static_cast<std::uint16_t>(frame.size())));
    }
}

PeerWires::~PeerWires() {
    for (auto& port : ports_) port.reset();
    memory_.restore();
    rte_mempool_free(received_);
    rte_mempool_free(flows_);
}

bool PeerWires::has_socket(unsigned side) const { return fs::exists(peer_socket(folder_, side)); }

bool PeerWires::are_connected() const {
    return std::all_of(ports_.begin(), ports_.end(), [](const auto& port) { return port && port->is_connected(); });
}

// A forwarder that sends on several queues has to be given as many rings: it writes into the memory of those that it
// wasn't given. It refuses more than it has, so the tries begin with many.
bool PeerWires::connect() {
    for (unsigned side : {0u, 1u}) {
        if (ports_[side] && ports_[side]->is_connected()) continue;
        if (!has_socket(side)) continue;
        if (queues_ != 0) {
            connect(side, queues_);
            continue;
        }
        for (unsigned queues = kMostQueues; queues > 0; --queues)
            if (connect(side, queues)) {
                queues_ = queues;
                break;
            }
    }
    return are_connected();
}

bool PeerWires::connect(unsigned side, unsigned queues) {
    ports_[side].reset();
    memory_.restore();
    ports_[side] = std::make_unique<PeerPort>(fmt::format("net_memif_bench{}", try_++), peer_socket(folder_, side),
                                              queues, received_);
    const auto deadline = std::chrono::steady_clock::now() + kConnectTime;
    while (!ports_[side]->is_connected() && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (!ports_[side]->is_connected()) ports_[side].reset();
    memory_.restore();
    return ports_[side] != nullptr;
}

void PeerWires::note_change(const rte_mbuf& frame) {
    const auto* bytes = rte_pktmbuf_mtod(&frame, const std::uint8_t*);
    const auto* sent = rte_pktmbuf_mtod(frames_[0], const std::uint8_t*);
    const bool macs = std::memcmp(bytes, sent, 12) != 0;
    constexpr std::size_t kTtl = net::kEthernetBytes + 8;
    const bool ttl = bytes[kTtl] + 1 == sent[kTtl];
    change_ = macs ? (ttl ? "new MACs, TTL less" : "new MACs") : ttl ? "TTL less" : "as it was";
}

unsigned PeerWires::receive(unsigned side) {
    std::array<rte_mbuf*, kPeerBurst> burst;
    unsigned received = 0;
    const PeerPort& port = *ports_[side];
    const auto queues = static_cast<std::uint16_t>(port.rx_queues());
    for (std::uint16_t queue = 0; queue < queues; ++queue)
        for (std::uint16_t n = kPeerBurst; n == kPeerBurst;) {
            n = rte_eth_rx_burst(port.id(), queue, burst.data(), kPeerBurst);
            if (n != 0 && side == 1 && change_.empty()) note_change(*burst[0]);
            rte_pktmbuf_free_bulk(burst.data(), n);
            received += n;
        }
    return received;
}

rte_mbuf* PeerWires::answer_to(const rte_mbuf& frame) {
    rte_mbuf* answer = rte_pktmbuf_alloc(received_);
    if (answer == nullptr) return nullptr;
    const auto* from = rte_pktmbuf_mtod(&frame, const std::uint8_t*);
    auto* to = reinterpret_cast<std::uint8_t*>(rte_pktmbuf_append(answer, rte_pktmbuf_data_len(&frame)));
    std::copy_n(from, rte_pktmbuf_data_len(&frame), to);
    // Exchanged addresses and ports leave the checksum as it is. Both of the forwarder's ports take one MAC.
    constexpr std::size_t kSource = net::kEthernetBytes + 12, kPorts = net::kEthernetBytes + net::kIp4Bytes;
    std::swap_ranges(to + kSource, to + kSource + 4, to + kSource + 4);
    std::swap_ranges(to + kPorts, to + kPorts + 2, to + kPorts + 2);
    return answer;
}

void PeerWires::answer() {
    const auto deadline = std::chrono::steady_clock::now() + kAnswerTime;
    for (const rte_mbuf* frame : frames_) {
        rte_mbuf* answer = answer_to(*frame);
        while (answer == nullptr || rte_eth_tx_burst(ports_[1]->id(), 0, &answer, 1) == 0) {
            if (std::chrono::steady_clock::now() > deadline) {
                rte_pktmbuf_free(answer);
                return;
            }
            receive(0), receive(1);
            rte_delay_us_block(kFullMicroseconds);
            if (answer == nullptr) answer = answer_to(*frame);
        }
        receive(0);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    receive(0), receive(1);
}

void PeerWires::run(double seconds, PeerCount& count) {
    const std::uint64_t begin = base::now_tsc();
    const std::uint64_t end = begin + static_cast<std::uint64_t>(seconds * static_cast<double>(base::tsc_hz()));
    const std::uint16_t west = ports_[0]->id();
    change_.clear();
    while (base::now_tsc() < end) {
        if (next_ + kPeerBurst > kPeerFlows) next_ = 0;
        rte_mbuf** const frames = frames_.data() + next_;
        // The driver frees them when they have been taken; they are wanted again.
        for (unsigned i = 0; i < kPeerBurst; ++i) rte_mbuf_refcnt_update(frames[i], 1);
        const std::uint16_t sent = rte_eth_tx_burst(west, 0, frames, kPeerBurst);
        for (unsigned i = sent; i < kPeerBurst; ++i) rte_mbuf_refcnt_update(frames[i], -1);
        next_ += sent;
        ++count.offers, count.refused += sent < kPeerBurst ? 1 : 0, count.taken += sent;
        count.received += receive(1);
        // No room: asking again at once would take the ring's line away from the forwarder each time.
        if (sent < kPeerBurst) rte_delay_us_block(kFullMicroseconds);
    }
    count.seconds += static_cast<double>(base::now_tsc() - begin) / static_cast<double>(base::tsc_hz());
}

}  // namespace cachewire::bench
