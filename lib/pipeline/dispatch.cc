// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/dispatch.h"

#include <algorithm>
#include <array>

#include <rte_mbuf.h>

#include "base/clock.h"
#include "base/prefetch.h"
#include "pipeline/bucket_move.h"
#include "pipeline/bypass.h"
#include "pipeline/forwarding.h"

namespace cachewire::pipeline {

namespace {

// Slots ahead. What they hold was last written, or read, by the other lcore.
constexpr std::uint32_t kGiveAhead = 64;
constexpr std::uint32_t kTakeAhead = 12;

using ParseAgain = PipelineAfter<stages::Rx::kWrites, stages::Parse>;
constexpr std::uint8_t kPiece = net::kFirstFragment | net::kLaterFragment;

HeaderPlace place_of(const Lane& lane) noexcept {
    return {lane.mbuf, lane.l3_offset, lane.l4_offset, lane.l3_length, (lane.flags & kLaneIpv6) != 0};
}

// What doesn't name its session by itself. Pieces have two stations: the worker that all pieces of their addresses go
// to, which knows the first one's ports, and then the owner of the session. An ICMP error goes to the owner of what it
// quotes. false: dropped.
[[gnu::noinline]] bool find_hidden_owner(WorkerState& worker, const Snapshot& snapshot, Burst& burst,
                                         Burst::LaneIndex i, unsigned& owner) noexcept {
    Lane& lane = burst.lane(i);
    net::FlowKey& key = burst.key(i);
    const Owners& owners = worker.handoff.owners;
    owner = owners[owner_bucket(owner_hash(snapshot, lane, key))];
    if (snapshot.tenants[lane.tenant].sessions == SessionMode::none || (lane.flags & kLaneIcmpError) != 0) return true;
    if (!is_unfollowed_piece(lane, key) || owner != worker.index) return true;
    const Piece piece = follow_first_fragment(worker, snapshot.hash_seed, place_of(lane), key, lane.hash);
    if (piece == Piece::overlap) return burst.drop(i, DropReason::fragment_offset);
    lane.flags |= kLaneFollowed;
    if (piece == Piece::unknown) lane.flags |= kLaneStray;
    owner = owners[owner_bucket(lane.hash)];
    return true;
}

bool hand_over(WorkerState& worker, const Snapshot& snapshot, Burst& burst, Burst::LaneIndex i,
               unsigned owner) noexcept {
    const Lane& lane = burst.lane(i);
    HandoffRing& ring = *worker.handoff.peers[owner].out;
    Handed* slot = ring.claim();
    if (slot == nullptr) return burst.drop(i, DropReason::handoff_full);
    base::prefetch_write(&ring.to_put(kGiveAhead).lane);
    base::prefetch_write(&ring.to_put(kGiveAhead).key);
    slot->lane = lane;
    slot->key = burst.key(i);
    slot->frame = rte_pktmbuf_mtod(lane.mbuf, const void*);
    slot->generation = snapshot.generation;
    worker.handoff.note_unpublished(owner);
    return false;
}

void prefetch_slot(const Handed& slot) noexcept {
    base::prefetch_read(&slot.lane);
    base::prefetch_read(&slot.key);
}

// A reload came between: tenants and interfaces may be others now. As received, so it can be parsed anew.
[[gnu::noinline]] void parse_again(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
    std::array<std::uint16_t, kMaxLanes> flags;
    for (const auto i : burst.live()) {
        Lane& lane = burst.lane(i);
        flags[i] = lane.flags & kLaneRetried;
        stages::Rx::begin_lane(lane, stages::Rx::fresh_lane(lane.in_port), lane.mbuf);
    }
    ParseAgain::run(worker, snapshot, burst);
    for (const auto i : burst.live()) burst.lane(i).flags |= flags[i];
}

unsigned take_from(WorkerState& worker, const Snapshot& snapshot, Peer& peer) noexcept {
    Burst& burst = worker.burst;
    HandoffRing& ring = *peer.in;
    const unsigned count = std::min<unsigned>(peer.ready, kMaxLanes);
    burst.begin(count);
    bool outdated = false, pieces = false;
    for (unsigned k = 0; k < std::min(count, kTakeAhead); ++k) prefetch_slot(ring.to_take(k));
    for (unsigned k = 0; k < count; ++k) {
        // Not past what is there: those lines the sender is about to write, and would have to fetch again.
        if (k + kTakeAhead < count) prefetch_slot(ring.to_take(kTakeAhead));
        const auto i = static_cast<Burst::LaneIndex>(k);
        const Handed& from = ring.take();
        // The TX stage writes to both.
        base::prefetch_write(from.lane.mbuf);
        base::prefetch_write(from.frame);
        burst.lane(i) = from.lane;
        burst.key(i) = from.key;
        outdated |= from.generation != snapshot.generation;
        pieces |= is_unfollowed_piece(from.lane, from.key);
    }
    ring.release();
    worker.handoff.in_rings -= count;
    worker.handoff_counters.taken.add(count);
    worker.now_tsc = worker.last_tsc = base::now_tsc();
    go_on(worker, snapshot, outdated, pieces);
    return count;
}

unsigned take_frames(WorkerState& worker, std::size_t port, SendRing& ring) noexcept {
    port::TxBuffer& buffer = worker.tx[port];
    const unsigned room = port::kTxBufferSize - buffer.size();
    const unsigned count = std::min<unsigned>(ring.ready(), room);
    for (unsigned k = 0; k < count; ++k) {
        rte_mbuf* mbuf = ring.take();
        base::prefetch_read(mbuf);  // flush reads its length
        buffer.push(mbuf);
    }
    if (count != 0) ring.release();
    worker.handoff.in_rings -= count;
    worker.ledger.held += count;
    worker.handoff_counters.sends_taken.add(count);
    return count;
}

void count_shutdown(WorkerState& worker, std::uint16_t tenant) noexcept {
    --worker.handoff.in_rings;
    ++worker.ledger.dropped;
    worker.tenants[tenant].drops[static_cast<unsigned>(DropReason::shutdown)].add(1);
}

}  // namespace

std::uint32_t owner_hash(const Snapshot& snapshot, const Lane& lane, const net::FlowKey& key) noexcept {
    if ((lane.flags & kLaneIcmpError) == 0 || snapshot.tenants[lane.tenant].sessions == SessionMode::none)
        return lane.hash;
    return quoted_hash(snapshot.hash_seed, place_of(lane), key).value_or(lane.hash);
}

bool is_unfollowed_piece(const Lane& lane, const net::FlowKey& key) noexcept {
    return (key.match_flags & kPiece) != 0 && (lane.flags & kLaneFollowed) == 0;
}

void go_on(WorkerState& worker, const Snapshot& snapshot, bool outdated, bool pieces) noexcept {
    Burst& burst = worker.burst;
    if (outdated) [[unlikely]]
        parse_again(worker, snapshot, burst);
    if (outdated || pieces || worker.handoff.parking != nullptr) [[unlikely]]
        hand_over_foreign(worker, snapshot, burst);
    if (burst.has_work()) Back::run(worker, snapshot, burst);
}

void hand_over_foreign(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
    const Owners& owners = worker.handoff.owners;
    const unsigned before = burst.size() + static_cast<unsigned>(burst.dropped().size());
    burst.filter([&](auto i) {
        const Lane& lane = burst.lane(i);
        unsigned owner;
        if (((burst.key(i).match_flags & kPiece) | (lane.flags & kLaneIcmpError)) != 0) [[unlikely]] {
            if (!find_hidden_owner(worker, snapshot, burst, i, owner)) return false;
        } else {
            owner = owners[owner_bucket(lane.hash)];
        }
        return owner == worker.index || hand_over(worker, snapshot, burst, i, owner);
    });
    const unsigned given = before - burst.size() - static_cast<unsigned>(burst.dropped().size());
    worker.handoff.in_rings += given;
    worker.handoff_counters.given.add(given);
    if (worker.handoff.parking != nullptr) [[unlikely]]
        park_arrivals(worker, snapshot, burst);
}

void look_into_rings(WorkerState& worker) noexcept {
    for (Peer& peer : worker.handoff.peers)
        if (peer.in != nullptr) peer.ready = peer.in->ready();
}

unsigned take_handed(WorkerState& worker, const Snapshot& snapshot) noexcept {
    unsigned packets = 0;
    for (Peer& peer : worker.handoff.peers)
        if (peer.ready != 0) packets += take_from(worker, snapshot, peer);
    return packets;
}

// Ports behind the snapshot's last one are being put together.
unsigned take_sends(WorkerState& worker, const Snapshot& snapshot) noexcept {
    unsigned frames = 0;
    for (std::size_t port = 0; port < snapshot.ports.size(); ++port)
        for (SendRing* ring : worker.handoff.send_in[port]) frames += take_frames(worker, port, *ring);
    return frames;
}

void drop_handed(WorkerState& worker) noexcept {
    for (Peer& peer : worker.handoff.peers) {
        if (peer.in == nullptr) continue;
        while (peer.in->ready() != 0) {
            const Handed& from = peer.in->take();
            rte_pktmbuf_free(from.lane.mbuf);
            count_shutdown(worker, from.lane.tenant);
        }
        peer.in->release();
    }
    for (const auto& rings : worker.handoff.send_in)
        for (SendRing* ring : rings) {
            while (ring->ready() != 0) {
                rte_pktmbuf_free(ring->take());
                count_shutdown(worker, kNoTenant);
            }
            ring->release();
        }
    publish_iteration(worker);
}

}  // namespace cachewire::pipeline
